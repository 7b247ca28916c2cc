"""A parser for VirtualiZarr: ``HyperslabParser()(url, registry)`` returns a store of references to the file's chunks."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np

from hyperslab._errors import NotFoundError, UnsupportedError
from hyperslab._references import INLINE_LIMIT, references

_DOCUMENTS = (".zgroup", ".zattrs", ".zarray")


class HyperslabParser:
    """Reads the chunk index of any file or store that Hyperslab opens, without libhdf5.

    A VirtualiZarr parser is any callable that takes a URL and a registry of object stores. VirtualiZarr holds references only,
    so an array of which chunks would have to be copied is an error; ``skip`` names arrays to leave out.
    """

    def __init__(
        self, *, group: str | None = None, skip: tuple[str, ...] = (), inline_limit: int = INLINE_LIMIT
    ) -> None:
        self.group = group
        self.skip = skip
        self.inline_limit = inline_limit

    def __call__(self, url: str, registry: Any) -> Any:
        """The file at ``url`` as a ``ManifestStore``."""
        from virtualizarr.manifests import ManifestStore

        parsed = urlparse(url)
        path = unquote(parsed.path) if parsed.scheme == "file" else url
        document: Any = references(path, url=url, inline_limit=self.inline_limit)
        nodes: dict[str, dict[str, Any]] = {}
        for key, value in document["refs"].items():
            node, _, name = key.rpartition("/")
            if name in _DOCUMENTS:
                value = json.loads(value)
            elif isinstance(value, list) and len(value) == 1:
                store, inner = registry.resolve(value[0])
                value = [value[0], 0, store.head(inner)["size"]]
            nodes.setdefault(node, {})[name] = value
        root = (self.group or "").strip("/")
        if root not in nodes:
            raise NotFoundError(f"{url}: there is no group {self.group}")
        if ".zarray" in nodes[root]:
            # A store that is one array becomes a group with the array's name, which VirtualiZarr needs.
            name = root.rpartition("/")[2] or "data"
            return ManifestStore(group=_group({"": {}, name: nodes[root]}, "", ()), registry=registry)
        return ManifestStore(group=_group(nodes, root, self.skip), registry=registry)


def _group(nodes: dict[str, dict[str, Any]], path: str, skip: tuple[str, ...]) -> Any:
    from virtualizarr.manifests import ManifestGroup

    prefix = f"{path}/" if path else ""
    arrays, groups = {}, {}
    for node, content in nodes.items():
        name = node[len(prefix) :]
        if not node.startswith(prefix) or not name or "/" in name or node.strip("/") in {item.strip("/") for item in skip}:
            continue
        if ".zarray" in content:
            arrays[name] = _array(node, content)
        else:
            groups[name] = _group(nodes, node, skip)
    return ManifestGroup(arrays=arrays, groups=groups, attributes=nodes[path].get(".zattrs", {}))


def _array(path: str, content: dict[str, Any]) -> Any:
    from virtualizarr.manifests import ManifestArray
    from virtualizarr.manifests.utils import create_v3_array_metadata

    array, attributes = content[".zarray"], dict(content.get(".zattrs", {}))
    dtype = _dtype(array["dtype"])
    filters = [*(array["filters"] or []), *([array["compressor"]] if array["compressor"] else [])]
    codecs = [{"name": f"numcodecs.{codec['id']}", "configuration": _without_id(codec)} for codec in filters]
    if array["order"] == "F":
        reverse = list(range(len(array["shape"])))[::-1]
        codecs.insert(0, {"name": "transpose", "configuration": {"order": reverse}})
    names = attributes.pop("_ARRAY_DIMENSIONS", None)
    metadata = create_v3_array_metadata(
        shape=tuple(array["shape"]),
        chunk_shape=tuple(array["chunks"]),
        data_type=dtype,
        codecs=codecs,
        fill_value=_fill_value(array["fill_value"], dtype),
        dimension_names=names,
        attributes=attributes,
    )
    chunks = {key: value for key, value in content.items() if key not in _DOCUMENTS}
    return ManifestArray(metadata=metadata, chunkmanifest=_manifest(path, array, chunks))


def _without_id(codec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in codec.items() if key != "id"}


def _dtype(document: Any) -> np.dtype[Any]:
    """The type of a Zarr v2 document: a name, or the members of a struct."""
    if isinstance(document, str):
        return np.dtype(document)
    return np.dtype([(name, _dtype(base), *map(tuple, shape)) for name, base, *shape in document])


def _fill_value(document: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return np.nan if document is None else float(document)
    return None if dtype.names else document


def _manifest(path: str, array: dict[str, Any], chunks: dict[str, Any]) -> Any:
    from virtualizarr.manifests import ChunkManifest

    shape = tuple(-(-extent // chunk) for extent, chunk in zip(array["shape"], array["chunks"], strict=True))
    paths = np.full(shape, "", dtype=np.dtypes.StringDType())
    offsets, lengths = np.zeros(shape, "uint64"), np.zeros(shape, "uint64")
    for key, value in chunks.items():
        if isinstance(value, str):
            raise UnsupportedError(
                f"/{path}: chunk {key} has no codec in Zarr and would be copied, which VirtualiZarr does not allow; "
                f"leave the array out with skip=({path!r},)"
            )
        at = tuple(int(part) for part in key.split(".")) if shape else ()
        paths[at], offsets[at], lengths[at] = value
    return ChunkManifest.from_arrays(paths=paths, offsets=offsets, lengths=lengths, validate_paths=False)
