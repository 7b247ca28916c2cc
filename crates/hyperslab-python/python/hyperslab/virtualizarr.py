"""A parser for VirtualiZarr: ``HyperslabParser()(url, registry)`` returns a store of references to the file's chunks."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlparse

from hyperslab._references import INLINE_LIMIT, references


class HyperslabParser:
    """Reads the chunk index of HDF5, ``.tet``, NumPy and Zarr files without libhdf5.

    A VirtualiZarr parser is any callable that takes a URL and a registry of object stores.
    """

    def __init__(self, *, group: str | None = None, inline_limit: int = INLINE_LIMIT) -> None:
        self.group = group
        self.inline_limit = inline_limit

    def __call__(self, url: str, registry: Any) -> Any:
        """The file at ``url`` as a ``ManifestStore``."""
        from virtualizarr.manifests import ManifestStore
        from virtualizarr.parsers.kerchunk.translator import manifestgroup_from_kerchunk_refs

        parsed = urlparse(url)
        path = unquote(parsed.path) if parsed.scheme == "file" else url
        document: Any = references(path, url=url, inline_limit=self.inline_limit)
        group = manifestgroup_from_kerchunk_refs(document, group=self.group)
        return ManifestStore(group=group, registry=registry)
