"""An xarray engine for every format: ``xarray.open_dataset(path, engine="hyperslab")``.

Arrays are read on demand, on all cores and without the GIL; ``chunks={}`` follows the file's own chunks. The engine is
chosen automatically for ``.tet`` files and TileDB folders, and for URLs with the extension of any format if no other engine
takes them.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Dataset, DataTree, Variable
from xarray.backends.common import AbstractDataStore, BackendArray, BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from hyperslab import _native
from hyperslab._errors import InvalidError
from hyperslab._storage import check_remote, flat, located, new_opening, split
from hyperslab._store import Group, Store, _node, _open_cached

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hyperslab._attributes import Attributes
    from hyperslab._storage import StorageOptions

#: Attributes that NetCDF-4 and Zarr writers use internally.
_HIDDEN = frozenset(
    "CLASS NAME DIMENSION_LIST REFERENCE_LIST DIMENSION_LABELS _Netcdf4Dimid _Netcdf4Coordinates _nc3_strict "
    "_NCProperties _ARRAY_DIMENSIONS".split()
)
_ONLY_DIMENSION = "This is a netCDF dimension but not a netCDF variable"
#: The formats of the NetCDF library.
_NETCDF = frozenset({"hdf5", "netcdf3"})


class HyperslabArray(BackendArray):
    """An array that is read when it is indexed."""

    __slots__ = ("dtype", "native", "shape")

    def __init__(self, array: _native.Array) -> None:
        self.native = array
        self.shape = array.shape
        self.dtype = _dtype(array)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        return await indexing.async_explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read_elsewhere
        )

    async def _read_elsewhere(self, key: tuple[Any, ...]) -> Any:
        # Reading releases the GIL, so other requests of the event loop continue.
        return await asyncio.to_thread(self._read, key)

    def _read(self, key: tuple[Any, ...]) -> Any:
        values = self.native.oindex[key]
        if isinstance(values, np.ma.MaskedArray):
            missing = np.nan if self.dtype.kind == "f" else None
            values = np.ma.filled(values.astype(self.dtype), missing)
        return np.asarray(values, dtype=None if self.dtype.kind == "O" else self.dtype)

    def __dask_tokenize__(self) -> Any:
        return self.native.__dask_tokenize__()


def _dtype(array: _native.Array) -> np.dtype[Any]:
    """The type reported to xarray: strings as strings, nullable numbers as floats."""
    if array.nullable and array.dtype.kind in "iub":
        return np.dtype("float64")
    if array.nullable and array.dtype.kind not in "f":
        return np.dtype("O")
    if array.dtype.kind == "O":
        dtype: np.dtype[Any] = create_vlen_dtype(str)  # type: ignore[no-untyped-call]
        return dtype
    return array.dtype


class HyperslabDataStore(AbstractDataStore):
    """One group of a store for xarray. Pickled as a path."""

    def __init__(self, path: str, group: str | None = None, options: dict[str, Any] | None = None) -> None:
        self.path = _native.absolute_location(path)
        self.group = group or "/"
        self.options = options or {}

    @property
    def opened(self) -> Store:
        """The store, opened once per process."""
        return _open_cached(self.path, self.options)

    def _root(self) -> Group | _native.Array:
        native = self.opened._native
        node = _node(native, "/" + self.group.strip("/"))
        if not isinstance(node, (Group, _native.Array)):
            raise InvalidError(f"{native.path}: {self.group} is not a group")
        return node

    def arrays(self) -> dict[str, _native.Array]:
        """The arrays of the group, by name. A store that consists of one array calls it ``data``."""
        root = self._root()
        if isinstance(root, _native.Array):
            return {root.name or "data": root}
        return dict(root.arrays())

    def get_attrs(self) -> dict[str, Any]:
        root = self._root()
        if isinstance(root, _native.Array):
            return {}
        return _attributes(root.attrs, self.opened.format)

    def get_encoding(self) -> dict[str, Any]:
        if self.opened.format not in _NETCDF:
            return {}
        growing = {
            name
            for array in self.arrays().values()
            for name, extent in zip(array.dims, array.maxshape, strict=True)
            if extent is None and name is not None
        }
        return {"unlimited_dims": growing}

    def get_dimensions(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for variable in self.get_variables().values():
            found.update({str(name): size for name, size in variable.sizes.items()})
        return found

    def get_variables(self) -> dict[str, Variable]:
        arrays = self.arrays()
        sizes: dict[int, list[str]] = {}
        variables = {}
        for name, array in arrays.items():
            if array.is_dimension or str(array.attrs.readable().get("NAME", "")).startswith(_ONLY_DIMENSION):
                continue
            dims = _dimensions(array, sizes)
            variables[name] = self._variable(array, dims)
        for array in arrays.values():
            _add_labels(variables, array)
        return variables

    def _variable(self, array: _native.Array, dims: tuple[str, ...]) -> Variable:
        attributes = _attributes(array.attrs, self.opened.format)
        encoding: dict[str, Any] = {"source": self.opened.file, "original_shape": array.shape}
        if self.opened.format == "hdf5":
            encoding.update(_netcdf_encoding(array))
        if array.chunks is not None:
            encoding["chunksizes"] = array.chunks
            encoding["preferred_chunks"] = dict(zip(dims, array.chunks, strict=True))
        data = indexing.LazilyIndexedArray(HyperslabArray(array))
        return Variable(dims, data, attributes, encoding)

    def close(self) -> None:
        """Do nothing: arrays hold what they need, and the store is shared within the process."""


def _dimensions(array: _native.Array, sizes: dict[int, list[str]]) -> tuple[str, ...]:
    """The dimension names. Unnamed dimensions are named by their size, as in NetCDF."""
    taken: list[str] = []
    for name, extent in zip(array.dims, array.shape, strict=True):
        if name is None or name in taken:
            known = sizes.setdefault(extent, [])
            free = [own for own in known if own not in taken]
            if not free:
                free = [f"phony_dim_{sum(map(len, sizes.values()))}"]
                known.append(free[0])
            name = free[0]
        taken.append(name.rsplit("/", 1)[-1])
    return tuple(taken)


def _add_labels(variables: dict[str, Variable], array: _native.Array) -> None:
    """Turn labels stored with an array into coordinates."""
    for name, labels in zip(array.dims, array.labels, strict=True):
        if name is not None and isinstance(labels, np.ndarray) and name not in variables:
            variables[name] = Variable((name,), labels)


def _attributes(attributes: Attributes, format: str) -> dict[str, Any]:
    found = {}
    for name, value in attributes.readable().items():
        if name in _HIDDEN:
            continue
        if format in _NETCDF and isinstance(value, np.ndarray) and value.shape == (1,):
            value = value[0]  # NetCDF writes single values so
        found[name] = value
    return found


def _netcdf_encoding(array: _native.Array) -> dict[str, Any]:
    """The storage of a variable under the names of xarray's NetCDF engines, so that ``to_netcdf`` stores it the same
    way."""
    filters = {each["name"]: each for each in array.filters}
    compressors = {"zlib": "gzip", "szip": "szip", "zstd": "zstd", "bzip2": "bzip2", "blosc": "blosc"}
    encoding: dict[str, Any] = {name: own in filters for name, own in compressors.items()}
    level = next((each["level"] for each in filters.values() if "level" in each), 0)
    return encoding | {
        "shuffle": "shuffle" in filters,
        "complevel": level,
        "fletcher32": "fletcher32" in filters,
        "contiguous": array.chunks is None,
        "chunksizes": array.chunks,
    }


class HyperslabEntrypoint(BackendEntrypoint):
    """HDF5, NetCDF, TileDB, Zarr, ``.tet`` and NumPy files, read in parallel."""

    description = "Open HDF5, NetCDF, TileDB, Zarr, .tet and NumPy files with Hyperslab"
    supports_groups = True
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "group",
        "format",
        "mapped",
        "threads",
        "external",
        "storage_options",
        "anonymous",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Accept ``.tet`` files, TileDB folders, and URLs by their extension. xarray asks its own engines first."""
        try:
            path = os.fspath(filename_or_obj)
            if not isinstance(path, str):
                return False
            if _native.is_remote(path):
                return _native.format_of_name(path) is not None
            if os.path.isdir(path):
                names = ("__schema", "__group", "__array_schema.tdb", "__tiledb_group.tdb")
                return any(os.path.exists(os.path.join(path, name)) for name in names)
            with open(path, "rb") as file:
                return file.read(4) == b"TETR"
        except (OSError, TypeError):
            return False

    def open_dataset(  # type: ignore[override]
        self,
        filename_or_obj: str | os.PathLike[str],
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        format: str | None = None,
        mapped: bool = True,
        threads: int | None = None,
        external: str = "beside",
        storage_options: StorageOptions | None = None,
        anonymous: bool = False,
    ) -> Dataset:
        path, settings = located(filename_or_obj, storage_options)
        opening = _options(path, format, mapped, threads, external, settings, anonymous)
        return StoreBackendEntrypoint().open_dataset(
            HyperslabDataStore(path, group, opening),
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, group: str | None = None, **options: Any
    ) -> dict[str, Dataset]:
        """All groups that contain arrays, directly or below, by path."""
        opening = {name: options.pop(name) for name in _OPENING if name in options}
        location, opening["storage_options"] = located(filename_or_obj, opening.get("storage_options"))
        # Share one opening between all groups.
        opening = _options(location, **opening)
        store = HyperslabDataStore(location, group, opening)
        root = store._root()
        paths = [store.group]
        if isinstance(root, Group):
            paths += [path for path, node in root.walk() if isinstance(node, Group)]
        base = "/" + store.group.strip("/")
        found = {}
        for path in paths:
            inside = "/" + path.strip("/")
            name = inside if base == "/" else inside[len(base) :] or "/"
            each = HyperslabDataStore(location, path, opening)
            found[name] = StoreBackendEntrypoint().open_dataset(each, **options)
        return found

    def open_datatree(self, filename_or_obj: Any, *, drop_variables: Any = None, **options: Any) -> DataTree:
        """All groups as a tree."""
        groups = self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options)
        return DataTree.from_dict(groups)


#: The parameters for opening a store. The others are for decoding.
_OPENING = ("format", "mapped", "threads", "external", "storage_options", "anonymous")


def _options(
    path: str,
    format: str | None = None,
    mapped: bool = True,
    threads: int | None = None,
    external: str = "beside",
    storage_options: StorageOptions | None = None,
    anonymous: bool = False,
) -> dict[str, Any]:
    """The options that differ from the default, in a form that can be compared."""
    settings = flat(storage_options)
    check_remote(settings, anonymous, path)
    opening = new_opening(path)
    settings, withheld = split(settings, opening)
    given = {
        "format": format,
        "mapped": None if mapped else False,
        "threads": threads,
        "external": None if external == "beside" else external,
        "storage_options": tuple(settings) or None,
        "anonymous": anonymous or None,
        "_opening": opening,
        "_withheld": withheld or None,
    }
    return {name: value for name, value in given.items() if value is not None}
