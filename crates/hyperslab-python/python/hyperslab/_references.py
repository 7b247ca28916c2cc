"""Virtual references: chunks of any file as keys of a Zarr store, in kerchunk's JSON."""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hyperslab import _native
from hyperslab._errors import UnsupportedError
from hyperslab._store import Group, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

#: The most bytes of one array that are copied into the document instead of being referenced.
INLINE_LIMIT = 64 << 20

_HIDDEN = ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_ARRAY_DIMENSIONS")


def references(
    path: str | os.PathLike[str], *, url: str | None = None, inline_limit: int = INLINE_LIMIT
) -> dict[str, Any]:
    """The arrays of a file as a Zarr store whose chunks stay where they are: kerchunk's version 1 document.

    ``url`` is where readers will find the file; its path when left out. Chunks that no Zarr codec can read in place (a filter that
    was skipped, a clipped chunk at the edge, overlapping writes, texts) are copied into the document; an array that would need more
    than ``inline_limit`` bytes of that is refused by name.

    >>> import hyperslab
    >>> document = hyperslab.references(getfixture("path"), url="t.npz")
    >>> sorted(document["refs"])
    ['.zgroup', 't/.zarray', 't/.zattrs', 't/0.0']
    """
    store = Store(path)
    url = store.file if url is None else url
    refs: dict[str, Any] = {}
    if store.format == "zarr":
        if _native.is_remote(path):
            raise UnsupportedError(f"{store.file}: references to a Zarr store on remote storage")
        refs.update(_zarr_keys(store.file, url))
    else:
        for name, node in _nodes(store):
            prefix = f"{name}/" if name else ""
            if isinstance(node, Group):
                refs[f"{prefix}.zgroup"] = json.dumps({"zarr_format": 2})
                attributes = _json_attributes(node.attrs.readable())
                if attributes:
                    refs[f"{prefix}.zattrs"] = json.dumps(attributes)
            else:
                refs.update(_array(store, node, prefix, url, inline_limit))
    return {"version": 1, "refs": refs}


def _nodes(store: Store) -> Iterator[tuple[str, Any]]:
    root = store["/"]
    yield "", root
    if isinstance(root, Group):
        for path, node in root.walk():
            if isinstance(node, (Group, _native.Array)):
                yield path.strip("/"), node


def _zarr_keys(file: str, url: str) -> Iterator[tuple[str, Any]]:
    """A Zarr store's own keys: documents copied, chunks by address."""
    for folder, _, names in os.walk(file):
        for name in names:
            full = os.path.join(folder, name)
            key = os.path.relpath(full, file).replace(os.sep, "/")
            if name in (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json"):
                with open(full, encoding="utf-8") as document:
                    yield key, document.read()
            else:
                yield key, [f"{url.rstrip('/')}/{key}"]


def _array(store: Store, array: _native.Array, prefix: str, url: str, limit: int) -> Iterator[tuple[str, Any]]:
    rows = _rows(array)
    form = _form(store, array, rows)
    attributes = _json_attributes(array.attrs.readable())
    attributes["_ARRAY_DIMENSIONS"] = _dimension_names(array)
    yield f"{prefix}.zattrs", json.dumps(attributes)
    yield f"{prefix}.zarray", json.dumps(form.document(array, rows.chunks))
    inlined = 0
    for coord, row in rows.by_coord.items():
        key = prefix + (".".join(map(str, coord)) or "0")
        if row is not None and form.referable:
            target = f"{url.rstrip('/')}/{row.blob}" if row.blob else url
            yield key, [target, row.offset, row.length]
            continue
        content = form.inline(array, coord, rows.chunks)
        inlined += len(content)
        if inlined > limit:
            raise UnsupportedError(
                f"{store.file}: references to {array.path}: {form.reason or 'chunks that cannot be referenced'}, and more than "
                f"{limit} bytes of it would be copied"
            )
        yield key, "base64:" + base64.b64encode(content).decode("ascii")


class _Row(NamedTuple):
    blob: str
    offset: int
    length: int
    plain: bool


class _Rows(NamedTuple):
    """The chunks of an array; ``None`` where a chunk cannot be referenced."""

    chunks: tuple[int, ...]
    by_coord: dict[tuple[int, ...], _Row | None]


def _rows(array: _native.Array) -> _Rows:
    refs = array.chunk_refs()
    if array.chunks is None:
        return _one_piece(array, refs)
    found: dict[tuple[int, ...], _Row | None] = {}
    for number, coord in enumerate(map(tuple, refs.coords.tolist())):
        row = _Row(
            str(refs.blobs[number]), int(refs.offsets[number]), int(refs.lengths[number]), bool(refs.plain[number])
        )
        clipped = any(
            (at + 1) * chunk > extent for at, chunk, extent in zip(coord, array.chunks, array.shape, strict=True)
        )
        whole = not clipped or row.length == _chunk_bytes(array) or not _clips(array, refs)
        alone = coord not in found and refs.filter_masks[number] == 0 and refs.layers[number] == 0
        found[coord] = row if alone and whole else None
    return _Rows(array.chunks, found)


def _chunk_bytes(array: _native.Array) -> int:
    size = array.dtype.itemsize
    for extent in array.chunks or array.shape:
        size *= extent
    return size


def _clips(array: _native.Array, refs: Any) -> bool:
    """Does the format store chunks at the edge clipped? HDF5 does not."""
    return not _is_hdf5(array.file)


def _is_hdf5(path: str) -> bool:
    if os.path.isdir(path):
        return False
    with open(path, "rb") as file:
        # The signature stands at 0, 512, 1024, 2048 …
        offset, end = 0, os.path.getsize(path)
        while offset < end:
            file.seek(offset)
            if file.read(8) == b"\x89HDF\r\n\x1a\n":
                return True
            offset = offset * 2 or 512
    return False


def _one_piece(array: _native.Array, refs: Any) -> _Rows:
    """An array stored in one piece is one chunk, where its parts follow each other."""
    import numpy as np

    shape = tuple(max(extent, 1) for extent in array.shape)
    origin = (0,) * len(shape)
    if len(refs.offsets) == 0:
        return _Rows(shape, {})
    order = np.lexsort(refs.coords.T[::-1]) if refs.coords.shape[1] else np.arange(len(refs.offsets))
    offsets, lengths = refs.offsets[order], refs.lengths[order]
    follows = bool((offsets[1:] == offsets[:-1] + lengths[:-1]).all()) and len(set(refs.blobs.tolist())) == 1
    total = int(lengths.sum())
    if follows and bool((refs.layers == 0).all()):
        return _Rows(shape, {origin: _Row(str(refs.blobs[0]), int(offsets[0]), total, bool(refs.plain.all()))})
    return _Rows(shape, {origin: None})


class _Form(NamedTuple):
    """How a Zarr reader gets elements from the stored bytes."""

    dtype: str
    order: Literal["C", "F"]
    codecs: list[dict[str, Any]]
    referable: bool
    reason: str

    def document(self, array: _native.Array, chunks: tuple[int, ...]) -> dict[str, Any]:
        return {
            "zarr_format": 2,
            "shape": list(array.shape),
            "chunks": list(chunks),
            "dtype": self.dtype,
            "order": self.order,
            "fill_value": _fill(array),
            "filters": self.codecs or None,
            "compressor": None,
        }

    def inline(self, array: _native.Array, coord: tuple[int, ...], chunks: tuple[int, ...]) -> bytes:
        """The bytes that the codecs turn into this chunk, padded where the array ends."""
        import numpy as np

        box = tuple(slice(at * by, (at + 1) * by) for at, by in zip(coord, chunks, strict=True))
        part = np.asarray(array[box])
        if part.shape != chunks:
            filler = "" if self.dtype == "|O" else 0
            whole = np.full(chunks, filler, dtype=part.dtype) if part.dtype.kind != "V" else np.zeros(chunks, part.dtype)
            whole[tuple(slice(0, extent) for extent in part.shape)] = part
            part = whole
        if self.dtype == "|O":
            return _encode(part.ravel(), self.codecs)
        flat = np.asarray(part, dtype=self.dtype).ravel(order=self.order)
        return _encode(flat, self.codecs)


def _form(store: Store, array: _native.Array, rows: _Rows) -> _Form:
    if array.dtype.kind == "O":
        return _Form("|O", "C", [{"id": "vlen-utf8"}], False, "texts of any length")
    native = array.dtype.str
    codecs = _codecs(array)
    if codecs is None:
        return _Form(native, "C", [], False, f"the filters {[filter['name'] for filter in array.filters]}")
    if array.nullable or array.dtype.kind == "V":
        return _Form(json.loads(json.dumps(array.dtype.str)), "C", [], False, "elements that are structs or may be missing")
    orders: tuple[Literal["C", "F"], ...] = ("C", "F")
    types = (array.dtype.str, array.dtype.newbyteorder(">").str)
    candidates = [_Form(dtype, order, codecs, True, "") for order in orders for dtype in types]
    for coord, row in rows.by_coord.items():
        if row is None:
            continue
        stored = _stored(store, row)
        kept = [form for form in candidates if _reads(form, array, coord, rows.chunks, stored)]
        if not kept:
            return _Form(native, "C", [], False, "stored bytes that no Zarr codec reads")
        candidates = kept
        if len({(form.dtype, form.order) for form in candidates}) == 1:
            break
    return candidates[0]


def _codecs(array: _native.Array) -> list[dict[str, Any]] | None:
    """The filters as numcodecs knows them, in the order of writing; ``None`` when it lacks one."""
    codecs: list[dict[str, Any]] = []
    for filter in array.filters:
        name, level = filter["name"], filter.get("level", 1)
        if name == "shuffle":
            codecs.append({"id": "shuffle", "elementsize": filter.get("element_size", array.dtype.itemsize)})
        elif name == "gzip":
            codecs.append({"id": "zlib", "level": level})
        elif name == "zstd":
            codecs.append({"id": "zstd", "level": level})
        elif name == "fletcher32":
            codecs.append({"id": "fletcher32"})
        elif name == "bzip2":
            codecs.append({"id": "bz2", "level": level})
        elif name == "blosc" and filter.get("codec"):
            shuffle = filter.get("shuffle", 1)
            codecs.append({"id": "blosc", "cname": filter["codec"], "clevel": level, "shuffle": shuffle})
        else:
            return None
    return codecs


def _stored(store: Store, row: _Row) -> bytes:
    path = os.path.join(store.file, row.blob) if row.blob else store.file
    with open(path, "rb") as file:
        file.seek(row.offset)
        return file.read(row.length)


def _reads(form: _Form, array: _native.Array, coord: tuple[int, ...], chunks: tuple[int, ...], stored: bytes) -> bool:
    """Do the codecs turn the stored bytes into the chunk's elements?"""
    import numpy as np

    box = tuple(slice(at * by, (at + 1) * by) for at, by in zip(coord, chunks, strict=True))
    expected = np.asarray(array[box])
    try:
        decoded = np.frombuffer(_decode(stored, form.codecs), dtype=form.dtype).reshape(chunks, order=form.order)
    except (ValueError, RuntimeError):
        return False
    inside: NDArray[Any] = decoded[tuple(slice(0, extent) for extent in expected.shape)]
    return bool(np.ascontiguousarray(inside, dtype=expected.dtype).tobytes() == np.ascontiguousarray(expected).tobytes())


def _decode(stored: bytes, codecs: list[dict[str, Any]]) -> bytes:
    if not codecs:
        return stored
    import numcodecs

    content: Any = stored
    for codec in reversed(codecs):
        content = numcodecs.get_codec(dict(codec)).decode(content)
    return bytes(memoryview(content).cast("B")) if not isinstance(content, bytes) else content


def _encode(elements: NDArray[Any], codecs: list[dict[str, Any]]) -> bytes:
    content: Any = elements
    if not codecs:
        return elements.tobytes()
    import numcodecs

    for codec in codecs:
        content = numcodecs.get_codec(dict(codec)).encode(content)
    return bytes(content)


def _fill(array: _native.Array) -> Any:
    value = array.fill_value
    if value is None:
        return None
    if isinstance(value, (str, bytes)):
        return base64.b64encode(value).decode() if isinstance(value, bytes) else value
    if getattr(value, "dtype", None) is not None and value.dtype.kind == "f":
        if value != value:
            return "NaN"
        if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
    if getattr(value, "dtype", None) is not None and value.dtype.kind in "V":
        return base64.b64encode(value.tobytes()).decode()
    if getattr(value, "dtype", None) is not None and value.dtype.kind in "mM":
        return int(value.astype("int64"))
    return _plain(value)


def _dimension_names(array: _native.Array) -> list[str]:
    return [name.rsplit("/", 1)[-1] if name else f"{array.name or 'data'}_{axis}" for axis, name in enumerate(array.dims)]


def _json_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in attributes.items():
        if name in _HIDDEN:
            continue
        value = _plain(value)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            continue
        found[name] = value
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
