"""What can go wrong. ``kind`` is a stable word for programs; the message is for people."""

from __future__ import annotations


class HyperslabError(Exception):
    """The base of everything that is raised here.

    >>> import hyperslab
    >>> try:
    ...     hyperslab.open(getfixture("path"))["/nothing"]
    ... except hyperslab.HyperslabError as error:
    ...     error.kind
    'not_found'
    """

    kind: str = "error"
    #: What the error knows beyond its message: the store, the structure, the byte.
    details: dict[str, object]

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.details))


def _rebuild(cls: type[HyperslabError], message: str, details: dict[str, object]) -> HyperslabError:
    return cls(message, **details)


class CorruptError(HyperslabError):
    """The bytes are wrong. ``details`` names the store, the structure and the byte."""

    kind = "corrupt"


class UnsupportedError(HyperslabError, NotImplementedError):
    """The bytes are right, and this build does not read or write them."""

    kind = "unsupported"


class InvalidError(HyperslabError, ValueError):
    """The request cannot be."""

    kind = "invalid"


class IndexOutOfBounds(InvalidError, IndexError):
    """Brackets that an array does not have."""


class NotFoundError(HyperslabError, KeyError):
    """A node or column that is not there."""

    kind = "not_found"


class IoError(HyperslabError, OSError):
    """The operating system said no."""

    kind = "io"


class MissingFileError(IoError, FileNotFoundError):
    """A file or directory that is not there."""
