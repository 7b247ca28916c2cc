"""Options for remote storage: fsspec's names, converted for the engine."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from hyperslab import _native
from hyperslab._errors import InvalidError

if TYPE_CHECKING:
    import os

#: A mapping from the user, or the pairs stored in a pickle.
StorageOptions: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]


def flat(options: StorageOptions | None) -> list[tuple[str, str]]:
    """Flatten options to names and strings: ``client_kwargs`` are merged in, ``None`` values are left out.

    >>> flat({"anon": True, "client_kwargs": {"endpoint_url": "http://localhost:9000", "region_name": None}})
    [('anon', 'true'), ('endpoint_url', 'http://localhost:9000')]
    """
    found: dict[str, str] = {}
    for name, value in dict(options or {}).items():
        inner = value.items() if name == "client_kwargs" and isinstance(value, Mapping) else [(name, value)]
        for own, setting in inner:
            if setting is not None:
                found[own] = _text(own, setting)
    return sorted(found.items())


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    # The value may be secret.
    raise InvalidError(f"storage option {name!r} must be a string, a number or a boolean, not {type(value).__name__}")


def check_remote(options: list[tuple[str, str]], anonymous: bool, *places: str | os.PathLike[str]) -> None:
    """Refuse options that would have no effect."""
    if (options or anonymous) and not any(map(_native.is_remote, places)):
        raise InvalidError("storage_options and anonymous only apply to URLs, not to local paths")


def new_opening(location: str | os.PathLike[str]) -> str | None:
    """A name for one opening of a URL. Processes that receive its arrays share a store under that name only, because the
    object may differ when it is opened again."""
    return uuid.uuid4().hex if _native.is_remote(location) else None
