"""Exceptions. ``kind`` is a stable identifier for programs; the message is for users."""

from __future__ import annotations


class HyperslabError(Exception):
    """The base class of all exceptions of this module.

    >>> import hyperslab
    >>> try:
    ...     hyperslab.open(getfixture("path"))["/nothing"]
    ... except hyperslab.HyperslabError as error:
    ...     error.kind
    'not_found'
    """

    kind: str = "error"
    #: Details beyond the message: the store, the structure, the byte.
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
    """The bytes are corrupt. ``details`` names the store, the structure and the byte."""

    kind = "corrupt"


class UnsupportedError(HyperslabError, NotImplementedError):
    """The bytes are valid, but this build does not read or write them."""

    kind = "unsupported"


class InvalidError(HyperslabError, ValueError):
    """The request is impossible."""

    kind = "invalid"


class IndexOutOfBounds(InvalidError, IndexError):
    """An index that is out of bounds."""


class NotFoundError(HyperslabError, KeyError):
    """A node or column that does not exist."""

    kind = "not_found"


class IoError(HyperslabError, OSError):
    """The operating system reported an error."""

    kind = "io"


class MissingFileError(IoError, FileNotFoundError):
    """A file or directory that does not exist."""
