"""Options for remote storage: fsspec's names, converted for the engine."""

from __future__ import annotations

import os
import uuid
from collections import OrderedDict
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


#: Options that may be pickled. All others may be secret, such as keys, tokens and connection strings.
_PUBLIC = frozenset(
    "account_name allow_http allow_invalid_certificates ambient_credentials anon anonymous aws_default_region "
    "aws_endpoint aws_endpoint_url aws_region aws_virtual_hosted_style_request azure_storage_account_name base_url "
    "bucket cache client_id connect_timeout container_name default_region endpoint endpoint_url max_retries merge_gap "
    "profile read_timeout region region_name request_payer requester_pays retry_timeout skip_signature tenant_id "
    "timeout use_emulator user_agent virtual_hosted_style_request".split()
)

#: Secrets of this process by opening, so that a store can be unpickled where it was opened. The oldest are forgotten.
_given: OrderedDict[str, list[tuple[str, str]]] = OrderedDict()
_MOST_GIVEN = 4096

#: Options for unpickled stores by the start of their URL.
_provided: dict[str, list[tuple[str, str]]] = {}


def split(options: list[tuple[str, str]], opening: str | None) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """The options that may be pickled, and the names of the others, which this process remembers for the opening.

    >>> split([("endpoint_url", "http://localhost"), ("secret", "hush")], "docs")
    ([('endpoint_url', 'http://localhost')], ('secret',))
    >>> recalled("s3://bucket/x.zarr", ("secret",), "docs")
    [('secret', 'hush')]
    """
    # A proxy may be given with a password.
    secrets = [(name, value) for name, value in options if name.lower() not in _PUBLIC or "@" in value]
    if secrets and opening is not None:
        _given[opening] = secrets
        while len(_given) > _MOST_GIVEN:
            _given.popitem(last=False)
    names = tuple(name for name, _ in secrets)
    return [(name, value) for name, value in options if name not in names], names


def recalled(path: str, withheld: tuple[str, ...], opening: str | None) -> list[tuple[str, str]] | None:
    """The options that a pickle does not contain: those given when the store was opened in this process, or those that
    :func:`provide_credentials` was given. ``None`` if there are none."""
    if not withheld:
        return []
    if opening in _given:
        return _given[opening]
    # Match whole parts: s3://bucket must not match s3://bucket-of-others.
    starts = [start for start in _provided if path == start or path.startswith(start.rstrip("/") + "/")]
    return _provided[max(starts, key=len)] if starts else None


def provide_credentials(url: str, storage_options: StorageOptions) -> None:
    """Give this process the credentials for stores that it unpickles, for URLs that start with ``url``.

    Pickles of stores and arrays never contain keys, tokens or other secrets from ``storage_options``. A process that
    unpickles them takes its credentials from the environment (``AWS_ACCESS_KEY_ID`` …), from profile files, or from this
    function, called on each worker: ``client.run(hyperslab.provide_credentials, "s3://bucket", options)``.

    >>> import hyperslab
    >>> hyperslab.provide_credentials("s3://example", {"key": "…", "secret": "…"})
    """
    _provided[url] = flat(storage_options)


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
