"""Create, convert and compare stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from hyperslab import _native
from hyperslab._attributes import NewAttributes
from hyperslab._errors import HyperslabError, InvalidError, NotFoundError
from hyperslab._grow import GrowingArray, axis_of
from hyperslab._h5py import filters_of
from hyperslab._options import chunk_options, names_of
from hyperslab._storage import check_remote, flat
from hyperslab._store import Group, Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, DTypeLike

    from hyperslab._storage import StorageOptions

    Filters = str | Sequence[str | Mapping[str, Any]]

    class ArrowRows(Protocol):
        """Rows that are exported as Arrow's C stream."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class NewGroup:
    """A group of a store that is being written, with h5py's methods."""

    def __init__(self, writer: Writer, path: str) -> None:
        self._writer = writer
        self._path = path

    @property
    def path(self) -> str:
        """The path in the store."""
        return self._path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._path.rsplit("/", 1)[-1]

    @property
    def attrs(self) -> NewAttributes:
        """The attributes of the group, which can be changed until the store is finished."""
        return self._writer._attributes_of(self._path)

    def create_group(self, path: str, attrs: Mapping[str, Any] | None = None) -> NewGroup:
        """Create a group and its parents."""
        return self._writer._new_group(self._below(path), attrs)

    def require_group(self, path: str) -> NewGroup:
        """The group of this name, created if it is missing."""
        found = self.get(path)
        if found is None:
            return self.create_group(path)
        if not isinstance(found, NewGroup):
            raise TypeError(f"{self._below(path)} is an array, not a group")
        return found

    def create_array(
        self,
        path: str,
        data: ArrayLike | None = None,
        *,
        shape: Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        chunks: Sequence[int] | None = None,
        filters: Filters | None = None,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        maxshape: Sequence[int | None] | None = None,
    ) -> _native.ArrayWriter:
        """Create an array from ``data``, or from a ``shape`` and ``dtype`` to be filled by assignment.

        ``filters`` are given in the order of writing: ``"shuffle,gzip:9"``, ``["shuffle", "gzip:9"]`` or
        ``[{"name": "gzip", "level": 9}]``.

        Assignments of whole chunks are stored at once, from any thread. Parts wait in memory until their chunk is complete;
        at the end, missing cells get the fill value. Each chunk is stored once.
        """
        import numpy as np

        if data is not None:
            data = np.asarray(data)
            shape = data.shape if shape is None else shape
            dtype = data.dtype if dtype is None else dtype
        if shape is None or dtype is None:
            raise InvalidError(f"{path}: pass data, or a shape and a dtype")
        path = self._below(path)
        self._writer._parents(path)
        array = self._writer._native.array(
            path,
            shape=shape,
            dtype=dtype,
            chunks=chunks,
            filters=filters,
            dims=dims,
            attrs=dict(attrs or {}),
            fill_value=fill_value,
            maxshape=maxshape,
        )
        self._writer._made[path] = array
        if data is not None:
            array[...] = data
        return array

    def create_dataset(
        self,
        name: str,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        data: ArrayLike | None = None,
        *,
        chunks: bool | int | Sequence[int] | None = None,
        maxshape: int | None | Sequence[int | None] = (),
        compression: str | int | None = None,
        compression_opts: Any = None,
        shuffle: bool | None = None,
        fletcher32: bool | None = None,
        fillvalue: Any = None,
        filters: Filters | None = None,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> _native.ArrayWriter:
        """Like h5py: create an array from ``data``, or from a ``shape`` and ``dtype``. Works with every format that
        supports the filters.

        ``compression`` is a name or a level of gzip, ``compression_opts`` its level; ``chunks=True`` chooses chunks.
        ``maxshape=None`` lets every dimension grow.

        >>> import hyperslab, numpy as np
        >>> path = getfixture("tmp_path") / "new.h5"
        >>> with hyperslab.File(path, "w") as file:
        ...     t = file.create_dataset("g/t", data=np.arange(6.0), chunks=(3,), compression="gzip", maxshape=(None,))
        ...     t.attrs["units"] = "K"
        >>> array = hyperslab.open(path)["g/t"]
        >>> array.compression, array.compression_opts, array.maxshape, array.attrs["units"]
        ('gzip', 4, (None,), 'K')
        """
        import numpy as np

        extents = (shape,) if isinstance(shape, int | np.integer) else shape
        if data is not None:
            data = _as_array(data, dtype)
            if extents is not None and tuple(extents) != data.shape:
                data = data.reshape(extents)
            extents = data.shape
        if extents is None:
            raise InvalidError(f"{name}: pass data, or a shape")
        if dtype is None and data is None:
            dtype = "f4"  # h5py's default
        if filters is not None and (compression or shuffle or fletcher32):
            raise InvalidError("filters excludes compression, shuffle and fletcher32")
        made = filters_of(compression, compression_opts, shuffle, fletcher32) if filters is None else filters
        most = (None,) * len(extents) if maxshape is None else (maxshape,) if isinstance(maxshape, int) else tuple(maxshape)
        own: Sequence[int] | None = None
        if not isinstance(chunks, bool) and chunks is not None:
            own = (chunks,) if isinstance(chunks, int | np.integer) else chunks
        return self.create_array(
            name,
            data,
            shape=tuple(extents),
            dtype=dtype,
            chunks=own,
            filters=made,
            dims=dims,
            attrs=attrs,
            fill_value=fillvalue,
            maxshape=most or None,
        )

    def require_dataset(self, name: str, shape: int | Sequence[int], dtype: DTypeLike, **options: Any) -> Any:
        """The array with this name, created if it is missing. Raises ``TypeError`` if it has another shape or type."""
        import numpy as np

        found = self.get(name)
        if found is None:
            return self.create_dataset(name, shape, dtype, **options)
        extents = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        if isinstance(found, NewGroup) or tuple(found.shape) != extents:
            raise TypeError(f"{self._below(name)} exists, but is not an array of shape {extents}")
        if not np.can_cast(np.dtype(dtype), found.dtype):
            raise TypeError(f"{self._below(name)} exists with the type {found.dtype}, not {np.dtype(dtype)}")
        return found

    def __getitem__(self, name: str) -> Any:
        """A new or existing group or array."""
        return self._writer._find(self._below(name))

    def __setitem__(self, name: str, data: ArrayLike) -> None:
        self.create_dataset(name, data=data)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """Like ``group[name]``, with a default if the name does not exist."""
        try:
            return self[name]
        except NotFoundError:
            return default

    def keys(self) -> list[str]:
        """The names directly below, existing ones first."""
        return self._writer._names(self._path)

    def values(self) -> list[Any]:
        """The nodes directly below."""
        return [self[name] for name in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        """The names and nodes directly below."""
        return [(name, self[name]) for name in self.keys()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        return f"<hyperslab.NewGroup {self._path!r}: {len(self)} nodes>"

    def _below(self, name: str) -> str:
        if not isinstance(name, str):
            raise InvalidError(f"node names must be strings, not {type(name).__name__}")
        return _normal(name if name.startswith("/") else f"{self._path}/{name}")


class Writer(NewGroup):
    """A store that is being written, returned by :func:`create`. Nothing is visible until the block ends without an
    exception."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        overwrite: bool = False,
        append: bool = False,
        shards: Sequence[int] | None = None,
    ) -> None:
        super().__init__(self, "/")
        self._old = Store(path, format=format) if append else None
        format = self._old.format if self._old is not None else format
        self._native = _native.Writer(path, format=format, overwrite=overwrite, append=append, shards=shards)
        self._file = os.fspath(path)
        self._groups: set[str] = set()
        self._made: dict[str, Any] = {}
        self._noted: dict[str, NewAttributes] = {}
        self._grown: dict[str, GrowingArray] = {}
        self._finished = False

    @property
    def filename(self) -> str:
        """The final path of the store."""
        return self._file

    @property
    def mode(self) -> str:
        """h5py's mode of a store opened for writing."""
        return "r+"

    def extend(self, path: str, data: ArrayLike, axis: int | str = 0) -> None:
        """Extend an array of the store: append ``data`` along an axis, given by number or name.

        Requires a store opened by :func:`append`, and works once per array. To append one sample at a time, use
        ``store["t"].append(sample)``.
        """
        array = None if self._old is None else self._old[path]
        if not isinstance(array, _native.Array):
            raise InvalidError(f"{path}: only an array of an existing store can be made longer")
        self._native.extend(array, data, axis_of(array, axis))

    def update_attrs(self, path: str, attrs: Mapping[str, Any]) -> None:
        """Set attributes of a group or array. Replaces attributes with the same names and keeps the others.

        For a store opened by :func:`append`, supported in HDF5, TileDB and Zarr.
        """
        self._native.attributes(_normal(path), dict(attrs))

    def _new_group(self, path: str, attrs: Mapping[str, Any] | None) -> NewGroup:
        self._parents(path)
        if path not in self._groups:
            self._native.group(path, dict(attrs or {}))
            self._groups.add(path)
            self._noted.setdefault(path, NewAttributes(attrs or {}))
        elif attrs:
            self._attributes_of(path).update(attrs)
        return NewGroup(self, path)

    def _parents(self, path: str) -> None:
        parts = path.strip("/").split("/")[:-1]
        if path != "/":
            self._parent("/")
        for depth in range(1, len(parts) + 1):
            self._parent("/" + "/".join(parts[:depth]))

    def _parent(self, path: str) -> None:
        if path not in self._groups:
            self._native.group(path, {})
            self._groups.add(path)

    def _attributes_of(self, path: str) -> NewAttributes:
        if path not in self._noted:
            old = self._old.get(path) if self._old is not None else None
            self._noted[path] = NewAttributes({} if old is None else old.attrs.readable())
        return self._noted[path]

    def _find(self, path: str) -> Any:
        if path in self._made:
            return self._made[path]
        if path == "/" or path in self._groups:
            return self if path == "/" else NewGroup(self, path)
        old = None if self._old is None else self._old.get(path)
        if old is None:
            raise NotFoundError(f"{self._file}: there is no node {path}")
        if isinstance(old, _native.Array):
            return self._grown.setdefault(path, GrowingArray(old, self._attributes_of(path)))
        return NewGroup(self, path) if isinstance(old, Group) else old

    def _names(self, path: str) -> list[str]:
        old = None if self._old is None else self._old.get(path)
        names = dict.fromkeys(old if isinstance(old, Group) else ())
        base = path.rstrip("/") + "/"
        for known in (*self._groups, *self._made):
            if known != "/" and known.startswith(base):
                names[known[len(base) :].split("/", 1)[0]] = None
        return list(names)

    def commit(self) -> None:
        """Make everything visible at once."""
        for growing in self._grown.values():
            for values, axis in growing.take():
                self._native.extend(growing.array, values, axis)
        for path, attrs in (*self._noted.items(), *((path, array.attrs) for path, array in self._made.items())):
            changed = attrs.take_changed()
            if changed:
                if path == "/":
                    self._parent("/")
                self._native.attributes(path, changed)
        self._native.commit()
        self._finished = True

    def abandon(self) -> None:
        """Discard everything."""
        self._native.abandon()
        self._finished = True

    def close(self) -> None:
        """Like :meth:`commit`. A second call does nothing."""
        if not self._finished:
            self.commit()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()
        else:
            self.close()

    def __repr__(self) -> str:
        state = "finished" if self._finished else f"{len(self)} nodes, not finished"
        return f"<hyperslab.Writer {self._file!r}: {state}>"


def _as_array(data: ArrayLike, dtype: DTypeLike | None) -> Any:
    """Convert data to a NumPy array. Variable-length strings become Python objects, as in h5py."""
    import numpy as np

    from hyperslab._casting import convert

    values = np.asarray(data)
    if dtype is not None and np.dtype(dtype).kind != "O" and values.dtype != np.dtype(dtype):
        return convert(values, np.dtype(dtype))
    return values.astype(object) if values.dtype.kind == "U" else values


def _normal(path: str) -> str:
    return "/" + "/".join(part for part in path.split("/") if part and part != ".")


def create(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    overwrite: bool = False,
    shards: Sequence[int] | None = None,
) -> Writer:
    """Start a new store. By default, the format follows from the extension.

    >>> import hyperslab, numpy as np
    >>> path = getfixture("tmp_path") / "new.tet"
    >>> with hyperslab.create(path) as new:
    ...     _ = new.create_array("/t", np.arange(12.0).reshape(3, 4), chunks=(2, 2), dims=("y", "x"))
    >>> hyperslab.open(path)["/t"].mean("y")
    array([4., 5., 6., 7.])
    """
    return Writer(path, format=format, overwrite=overwrite, shards=shards)


def File(
    path: str | os.PathLike[str],
    mode: str = "r",
    *,
    format: str | None = None,
    **options: Any,
) -> Store | Writer:
    """Open a store with h5py's name and modes, in any format: ``r`` reads; ``w`` creates a store and replaces an existing
    one; ``x`` and ``w-`` create a store that must not exist; ``r+`` extends an existing store; ``a`` extends or creates
    one.

    A new store is an HDF5 file unless its extension names another format. Unlike in h5py, nothing is visible before the end
    of the block (or ``close()``), and an exception discards everything. Stored values cannot be changed, but arrays can
    grow.

    >>> import hyperslab
    >>> with hyperslab.File(getfixture("tmp_path") / "x.h5", "w") as file:
    ...     file["x"] = [1.5, 2.5]
    ...     file.attrs["title"] = "two numbers"
    >>> with hyperslab.File(getfixture("tmp_path") / "x.h5") as file:
    ...     file["x"][:], file.attrs["title"]
    (array([1.5, 2.5]), 'two numbers')
    """
    if mode == "r":
        return Store(path, format=format, **options)
    if mode not in ("w", "w-", "x", "a", "r+"):
        raise ValueError(f"mode {mode!r}: choose r, r+, w, w-, x or a")
    if mode == "r+" or (mode == "a" and os.path.exists(path)):
        return Writer(path, format=format, append=True, **options)
    named = format or _native.format_of_name(path) or "hdf5"
    return Writer(path, format=named, overwrite=mode == "w", **options)


def convert(
    source: str | os.PathLike[str] | Store | ArrowRows,
    target: str | os.PathLike[str],
    *,
    format: str | None = None,
    node: str | None = None,
    select: str | None = None,
    rename: Mapping[str, str] | None = None,
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    chunks: Sequence[int] | Mapping[str, int] | str | None = None,
    shards: Sequence[int] | None = None,
    filters: Filters | None = None,
    overwrite: bool = False,
    strict: bool = False,
    append: bool = False,
    dimensions: str | Sequence[str] | None = None,
    duplicates: bool | None = None,
    order: str | None = None,
    storage_options: StorageOptions | None = None,
    anonymous: bool = False,
) -> dict[str, Any]:
    """Convert a store to another format. The target appears complete or not at all.

    Source and target may be URLs; a target URL must be in a bucket (``s3://bucket/…``). ``storage_options`` and
    ``anonymous`` are as for :func:`open` and apply to both. If the source needs other options, pass it as an open store.

    ``select`` cuts every array along the dimensions that it names (``"time=2020-01, lat=30..60"``). ``rename``, ``drop`` and
    ``keep`` name nodes; coordinates are kept with the nodes that they describe. ``chunks`` is a shape, the extents of some
    dimensions (``{"time": 31}``, -1 for all of one), or ``"auto"``.

    A table (also from a ``.csv``, ``.parquet`` or ``.arrow`` file, an array of structs, or an object in memory with
    ``__arrow_c_stream__``: a data frame of pandas or polars, an Arrow table, a :class:`Table`) becomes a sparse TileDB array.
    ``dimensions`` names the columns of its dimensions, and ``order`` its sort order (``"row-major"``, ``"column-major"``, ``"hilbert"``). Several
    rows may have the same coordinates only with ``duplicates``. ``append`` adds rows or arrays to an existing target.

    >>> import hyperslab
    >>> target = getfixture("tmp_path") / "t.zarr"
    >>> hyperslab.convert(getfixture("path"), target, chunks=(2, 3))["arrays"]
    1
    >>> hyperslab.open(target)["/t"].chunks
    (2, 3)
    """
    settings = flat(storage_options)
    if isinstance(source, Store):
        check_remote(settings, anonymous, target)
        opened = source._native
    elif hasattr(source, "__arrow_c_stream__"):
        check_remote(settings, anonymous, target)
        opened = _native.store_of_rows(source)
    else:
        check_remote(settings, anonymous, source, target)
        remote = _native.is_remote(source)
        options = settings if remote else None
        opened = Store(source, storage_options=options, anonymous=anonymous and remote)._native
    return _native.convert(
        opened,
        target,
        format=format,
        node=node,
        selection=select,
        rename=list((rename or {}).items()),
        drop=names_of(drop),
        keep=names_of(keep),
        **chunk_options(chunks),
        shards=shards,
        filters=filters,
        overwrite=overwrite,
        strict=strict,
        append=append,
        dimensions=None if dimensions is None else names_of(dimensions),
        duplicates=duplicates,
        order=order,
        storage_options=settings,
        anonymous=anonymous,
    )


def verify(
    path: str | os.PathLike[str],
    *,
    deep: bool = False,
    format: str | None = None,
    storage_options: StorageOptions | None = None,
    anonymous: bool = False,
) -> dict[str, Any]:
    """Check a store. Returns findings and recommendations; a store that cannot be opened counts as damaged.

    >>> import hyperslab
    >>> hyperslab.verify(getfixture("path"))["ok"]
    True
    """
    try:
        with Store(path, format=format, storage_options=storage_options, anonymous=anonymous) as store:
            report: dict[str, Any] = store.verify(deep)
            return report
    except OSError:
        raise
    except HyperslabError as error:
        finding = {"check": "parse", "severity": "error", "ok": False, "detail": str(error)}
        return {"ok": False, "findings": [finding], "recommendations": []}


def append(path: str | os.PathLike[str], *, format: str | None = None) -> Writer:
    """Extend an existing store: new arrays and groups, more values for existing arrays, attributes. Nothing is visible
    before the end of the block, and an exception discards everything.

    Supports ``.tet``, HDF5, TileDB and Zarr. An HDF5 array can grow along dimensions up to their ``maxshape``, a TileDB
    array up to the end of its domain. If the process is killed while the block ends, each array of an HDF5, TileDB or Zarr
    store is in its old or its new state; in a ``.tet`` file, all arrays are in the same state.

    >>> import hyperslab, numpy as np
    >>> path = getfixture("tmp_path") / "days.tet"
    >>> with hyperslab.create(path) as new:
    ...     _ = new.create_array("/t", np.zeros((2, 3)), chunks=(4, 3), maxshape=(None, 3), dims=("day", "x"))
    >>> with hyperslab.append(path) as more:
    ...     more.extend("/t", np.ones((1, 3)), axis="day")
    >>> hyperslab.open(path)["/t"][...].tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    return Writer(path, format=format, append=True)


def diff(
    a: str | os.PathLike[str] | Store,
    b: str | os.PathLike[str] | Store,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    attributes: bool = True,
) -> dict[str, Any]:
    """Compare two stores of any formats: nodes, types, shapes, values and attributes, with the result of ``tet diff
    --json``. Compares chunk by chunk, so neither store must fit in memory. NaN equals NaN.

    >>> import hyperslab
    >>> hyperslab.diff(getfixture("path"), getfixture("path"))["same"]
    True
    """
    one = a if isinstance(a, Store) else Store(a)
    other = b if isinstance(b, Store) else Store(b)
    report: dict[str, Any] = _native.diff(one._native, other._native, rtol=rtol, atol=atol, attributes=attributes)
    return report
