"""How remote storage is reached: fsspec's words, as the engine takes them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from hyperslab import _native
from hyperslab._errors import InvalidError

if TYPE_CHECKING:
    import os

#: A mapping as users write it, or the pairs that a pickle carries.
StorageOptions: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]


def flat(options: StorageOptions | None) -> list[tuple[str, str]]:
    """Names and texts: ``client_kwargs`` taken out of their dictionary, what is ``None`` left out.

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
    raise InvalidError(f"storage option {name!r} is a text, a number or a truth value, not {type(value).__name__}")


def check_remote(options: list[tuple[str, str]], anonymous: bool, *places: str | os.PathLike[str]) -> None:
    """Refuses options that nothing would use."""
    if (options or anonymous) and not any(map(_native.is_remote, places)):
        raise InvalidError("storage_options and anonymous are for URLs; this is a path")


def new_opening(location: str | os.PathLike[str]) -> str | None:
    """A name for one opening of a URL. Processes that get its arrays share what they opened under that name, and no more:
    the object may be another one when it is opened again."""
    return uuid.uuid4().hex if _native.is_remote(location) else None
