"""Options for remote storage: fsspec's names, converted for the engine."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from hyperslab import _native
from hyperslab._errors import InvalidError

#: A mapping from the user, the pairs stored in a pickle, or an obstore store.
StorageOptions: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]] | Any


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


def located(
    location: str | os.PathLike[str], options: StorageOptions | None
) -> tuple[str, StorageOptions | None]:
    """The location and its options. An obstore store may be passed as options; a relative location is then relative to it.

    >>> located("x.zarr", {"anon": True})
    ('x.zarr', {'anon': True})
    """
    path = os.fspath(location)
    kind = type(options)
    if kind.__module__.partition(".")[0] != "obstore":
        return path, options
    store: Any = options
    if getattr(store, "credential_provider", None) is not None:
        raise InvalidError("an obstore store with a credential provider is not supported; pass the credentials")
    settings = dict(getattr(store, "config", None) or {}) | dict(getattr(store, "client_options", None) or {})
    prefix = str(getattr(store, "prefix", None) or "")
    match kind.__name__:
        case "S3Store":
            root = f"s3://{settings.pop('bucket')}/{prefix}"
        case "GCSStore":
            root = f"gs://{settings.pop('bucket')}/{prefix}"
        case "AzureStore":
            root = f"az://{settings.pop('container_name')}/{prefix}"
        case "HTTPStore":
            root = str(store.url)
        case "LocalStore":
            root, settings = prefix, {}
        case other:
            raise InvalidError(f"an obstore {other} is not supported")
    return f"{root.rstrip('/')}/{path}".rstrip("/"), settings


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    # The value may be secret.
    raise InvalidError(f"storage option {name!r} must be a string, a number or a boolean, not {type(value).__name__}")


def check_remote(options: list[tuple[str, str]], anonymous: bool, *places: str | os.PathLike[str]) -> None:
    """Reject options that would have no effect."""
    if (options or anonymous) and not any(map(_native.is_remote, places)):
        raise InvalidError("storage_options and anonymous only apply to URLs, not to local paths")


def new_opening(location: str | os.PathLike[str]) -> str | None:
    """A name for one opening of a URL. Processes that receive its arrays share an open store only if the names match,
    because the object may have changed between two openings."""
    return uuid.uuid4().hex if _native.is_remote(location) else None
