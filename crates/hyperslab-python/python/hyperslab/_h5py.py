"""h5py's methods for arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab._errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from hyperslab._native import Array

#: The filters that h5py counts as compression.
COMPRESSIONS = ("gzip", "lzf", "szip", "zstd", "lz4", "blosc", "blosc2", "bzip2", "zfp", "bitshuffle", "lzma", "zlib", "deflate")


class _View:
    """An array whose values are converted after reading."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the converted elements."""
        return self._array.dtype

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: Any) -> Any:
        return self._change(self._array[key])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        values = np.asarray(self[...])
        return values if dtype is None else values.astype(dtype, copy=bool(copy))

    def _change(self, values: Any) -> Any:
        raise NotImplementedError


class AstypeView(_View):
    """Elements converted to another type."""

    def __init__(self, array: Array, dtype: DTypeLike) -> None:
        super().__init__(array)
        self._dtype = np.dtype(dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The requested type."""
        return self._dtype

    def _change(self, values: Any) -> Any:
        return values.astype(self._dtype)


class TextView(_View):
    """Bytes decoded to text."""

    def __init__(self, array: Array, encoding: str | None, errors: str) -> None:
        super().__init__(array)
        self._encoding, self._errors = encoding or "utf-8", errors

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of Python strings."""
        return np.dtype(object)

    def _one(self, value: Any) -> Any:
        if isinstance(value, bytes):
            return value.rstrip(b"\0").decode(self._encoding, self._errors)
        return value if value is None else str(value)

    def _change(self, values: Any) -> Any:
        if not isinstance(values, np.ndarray):
            return self._one(values)
        out = np.empty(values.shape, object)
        for index in np.ndindex(values.shape):
            out[index] = self._one(values[index])
        return out


class FieldsView(_View):
    """Some members of structs."""

    def __init__(self, array: Array, names: str | list[str]) -> None:
        super().__init__(array)
        self._names = names

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the selected members."""
        if isinstance(self._names, str):
            return self._array.dtype[self._names]
        return np.dtype([(name, self._array.dtype[name]) for name in self._names])

    def _change(self, values: Any) -> Any:
        if isinstance(self._names, str):
            return values[self._names]
        out = np.empty(np.shape(values), self.dtype)
        for name in self._names:
            out[name] = values[name]
        return out if np.ndim(values) else out[()]


def astype(array: Array, dtype: DTypeLike) -> AstypeView:
    """The array with its elements converted to another type."""
    return AstypeView(array, dtype)


def asstr(array: Array, encoding: str | None, errors: str) -> TextView:
    """The array with bytes decoded to text."""
    if array.dtype.kind not in "OSU":
        raise InvalidError(f"{array.path}: asstr() is for texts, not {array.dtype}")
    return TextView(array, encoding, errors)


def fields(array: Array, names: str | Sequence[str]) -> FieldsView:
    """Members of an array of structs."""
    wanted = [names] if isinstance(names, str) else list(names)
    known = array.dtype.names or ()
    for name in wanted:
        if name not in known:
            raise InvalidError(f"{array.path} has no member {name!r}; it has {', '.join(known) or 'none'}")
    return FieldsView(array, names if isinstance(names, str) else wanted)


def iter_chunks(array: Array, sel: Any) -> Iterator[tuple[slice, ...]]:
    """Slices of the chunks that a selection touches, clipped to it."""
    chunks = array.chunks or array.shape
    bounds = _bounds(array, sel)
    axes = []
    for (start, stop), chunk in zip(bounds, chunks, strict=True):
        first = start // chunk * chunk if chunk else start
        own = [slice(max(at, start), min(at + chunk, stop), 1) for at in range(first, stop, chunk or 1)]
        axes.append(own)
    return iter(itertools.product(*axes))


def _bounds(array: Array, sel: Any) -> list[tuple[int, int]]:
    given = () if sel is None else sel if isinstance(sel, tuple) else (sel,)
    if Ellipsis in given:
        at = given.index(Ellipsis)
        given = (*given[:at], *[slice(None)] * (array.ndim - len(given) + 1), *given[at + 1 :])
    if len(given) > array.ndim:
        raise InvalidError(f"{array.path} has {array.ndim} dimensions, not {len(given)}")
    given = (*given, *[slice(None)] * (array.ndim - len(given)))
    bounds = []
    for part, extent in zip(given, array.shape, strict=True):
        if isinstance(part, slice):
            start, stop, step = part.indices(extent)
            if step != 1:
                raise InvalidError("iter_chunks takes slices without steps")
        else:
            at = int(part)
            start, stop = (at + extent if at < 0 else at), (at + extent if at < 0 else at) + 1
        bounds.append((start, max(start, stop)))
    return bounds


def read_direct(array: Array, dest: NDArray[Any], source_sel: Any, dest_sel: Any) -> None:
    """Read into a part of the caller's array."""
    source = ... if source_sel is None else source_sel
    part = dest if dest_sel is None else dest[dest_sel]
    # Indexing with slices gives a view of the caller's array, into which the engine can read directly.
    view = isinstance(part, np.ndarray) and (part is dest or np.shares_memory(part, dest))
    if view and part.flags.c_contiguous and part.dtype == array.dtype and array.dtype.kind != "O" and not array.nullable:
        array.read_into(part, source)
        return
    dest[... if dest_sel is None else dest_sel] = array[source]


def compression(array: Array) -> str | None:
    """The compression among the filters."""
    found = _compression(array)
    return None if found is None else {"zlib": "gzip", "deflate": "gzip"}.get(found["name"], found["name"])


def compression_opts(array: Array) -> Any:
    """The level of the compression."""
    found = _compression(array)
    return None if found is None else found.get("level")


def _compression(array: Array) -> Mapping[str, Any] | None:
    return next((filter for filter in array.filters if filter["name"] in COMPRESSIONS), None)


def filters_of(
    compression: str | int | None,
    compression_opts: Any,
    shuffle: bool | None,
    fletcher32: bool | None,
) -> list[dict[str, Any]]:
    """Convert h5py's filter arguments. A number is a gzip level."""
    filters: list[dict[str, Any]] = [{"name": "shuffle"}] if shuffle else []
    if compression is True:
        compression = "gzip"
    if isinstance(compression, int) and not isinstance(compression, bool):
        compression, compression_opts = "gzip", compression
    if isinstance(compression, str):
        # libhdf5's default.
        level = 4 if compression == "gzip" and compression_opts is None else compression_opts
        if level is not None and not isinstance(level, int | np.integer):
            raise InvalidError(f"compression_opts of {compression} is a level, not {level!r}; filters= takes other parameters")
        filters.append({"name": compression} if level is None else {"name": compression, "level": int(level)})
    elif compression:
        raise InvalidError(f"compression is a name or a level of gzip, not {compression!r}")
    return filters + ([{"name": "fletcher32"}] if fletcher32 else [])
