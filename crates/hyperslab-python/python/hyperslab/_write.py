"""New stores, conversion, comparison."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hyperslab import _native
from hyperslab._errors import HyperslabError, InvalidError
from hyperslab._storage import check_remote, flat
from hyperslab._store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, DTypeLike

    from hyperslab._storage import StorageOptions


class Writer:
    """A store in the making, as :func:`create` gives it. Nothing is visible before the block ends without an exception."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        overwrite: bool = False,
        append: bool = False,
        shards: Sequence[int] | None = None,
    ) -> None:
        self._old = Store(path, format=format) if append else None
        format = self._old.format if self._old is not None else format
        self._native = _native.Writer(path, format=format, overwrite=overwrite, append=append, shards=shards)
        self._groups: set[str] = set()

    def create_group(self, path: str, attrs: Mapping[str, Any] | None = None) -> None:
        """Makes a group, and those above it."""
        path = _normal(path)
        self._parents(path)
        if path not in self._groups:
            self._native.group(path, dict(attrs or {}))
            self._groups.add(path)

    def create_array(
        self,
        path: str,
        data: ArrayLike | None = None,
        *,
        shape: Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        chunks: Sequence[int] | None = None,
        filters: Sequence[str | Mapping[str, Any]] | None = None,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        maxshape: Sequence[int | None] | None = None,
    ) -> _native.ArrayWriter:
        """Makes an array: of ``data``, or of a ``shape`` and ``dtype``, to be filled by assignment.

        Assignments of whole chunks are stored at once, from any thread; parts wait in memory for the rest of their chunk,
        and at the end the fill value is in the rest. Each chunk is stored once.
        """
        import numpy as np

        if data is not None:
            data = np.asarray(data)
            shape = data.shape if shape is None else shape
            dtype = data.dtype if dtype is None else dtype
        if shape is None or dtype is None:
            raise InvalidError(f"{path}: data, or a shape and a type")
        path = _normal(path)
        self._parents(path)
        array = self._native.array(
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
        if data is not None:
            array[...] = data
        return array

    def extend(self, path: str, data: ArrayLike, axis: int | str = 0) -> None:
        """Makes an array of the store longer: ``data`` stands behind the last values along an axis, given by number or name.

        Only where the store was opened by :func:`append`, once an array.
        """
        array = None if self._old is None else self._old[path]
        if not isinstance(array, _native.Array):
            raise InvalidError(f"{path}: only an array of an existing store can be made longer")
        if isinstance(axis, str):
            if axis not in array.dims:
                raise InvalidError(f"{path} has no dimension {axis}; it has {array.dims}")
            axis = array.dims.index(axis)
        self._native.extend(array, data, axis + array.ndim if axis < 0 else axis)

    def update_attrs(self, path: str, attrs: Mapping[str, Any]) -> None:
        """Gives a group or array of an existing store attributes: those of the same names are replaced, its others stay.

        Where the store was opened by :func:`append`; HDF5, TileDB and Zarr.
        """
        self._native.attributes(_normal(path), dict(attrs))

    def _parents(self, path: str) -> None:
        parts = path.strip("/").split("/")[:-1]
        if path != "/" and "/" not in self._groups:
            self._native.group("/", {})
            self._groups.add("/")
        for depth in range(1, len(parts) + 1):
            parent = "/" + "/".join(parts[:depth])
            if parent not in self._groups:
                self._native.group(parent, {})
                self._groups.add(parent)

    def commit(self) -> None:
        """Makes everything visible at once."""
        self._native.commit()

    def abandon(self) -> None:
        """Leaves nothing behind."""
        self._native.abandon()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.abandon()


def _normal(path: str) -> str:
    return "/" + "/".join(part for part in path.split("/") if part and part != ".")


def create(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    overwrite: bool = False,
    shards: Sequence[int] | None = None,
) -> Writer:
    """Starts a new store; the format follows from the ending when left out.

    >>> import hyperslab, numpy as np
    >>> path = getfixture("tmp_path") / "new.tet"
    >>> with hyperslab.create(path) as new:
    ...     _ = new.create_array("/t", np.arange(12.0).reshape(3, 4), chunks=(2, 2), dims=("y", "x"))
    >>> hyperslab.open(path)["/t"].mean("y")
    array([4., 5., 6., 7.])
    """
    return Writer(path, format=format, overwrite=overwrite, shards=shards)


def convert(
    source: str | os.PathLike[str] | Store,
    target: str | os.PathLike[str],
    *,
    format: str | None = None,
    node: str | None = None,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    filters: Sequence[str | Mapping[str, Any]] | None = None,
    overwrite: bool = False,
    strict: bool = False,
    append: bool = False,
    dimensions: Sequence[str] | None = None,
    duplicates: bool | None = None,
    order: str | None = None,
    storage_options: StorageOptions | None = None,
    anonymous: bool = False,
) -> dict[str, Any]:
    """Converts a store to another format; the target appears whole or not at all.

    Source and target may be URLs, the target one of a bucket (``s3://bucket/…``). ``storage_options`` and ``anonymous`` are as
    for :func:`open`, for both of them; a source that is reached otherwise is given as an open store.

    A table (also one in a ``.csv``, ``.parquet`` or ``.arrow`` file) becomes a sparse TileDB array over the columns named by
    ``dimensions``, sorted in ``order`` (``"row-major"``, ``"column-major"``, ``"hilbert"``), with several rows at the same
    coordinates only where ``duplicates`` allows it. ``append`` adds rows, or arrays, to a target that exists.

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
        opened = source
    else:
        check_remote(settings, anonymous, source, target)
        remote = _native.is_remote(source)
        opened = Store(source, storage_options=settings if remote else None, anonymous=anonymous and remote)
    return _native.convert(
        opened._native,
        target,
        format=format,
        node=node,
        chunks=chunks,
        shards=shards,
        filters=filters,
        overwrite=overwrite,
        strict=strict,
        append=append,
        dimensions=dimensions,
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
    """Is it whole? Findings and recommendations; what cannot even be opened is damage too.

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
    """Adds to a store that is there: new arrays and groups, more values for the arrays that it has, attributes. Nothing is
    visible before the end of the block, and nothing ever after an exception.

    ``.tet``, HDF5, TileDB and Zarr. An HDF5 array grows along dimensions of a ``maxshape`` with room, a TileDB array as far as
    its domain reaches; a TileDB store gets no new arrays. Of an HDF5, TileDB or Zarr store, a writer that is killed while
    the block ends leaves each array as it was or as it becomes; of a ``.tet`` file, all of them alike.

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
    """What differs between two stores, of any two formats: nodes, types, shapes, values and attributes, as
    ``tet diff --json`` tells it. Compared chunk by chunk, so that neither need fit into memory. NaN equals NaN.

    >>> import hyperslab
    >>> hyperslab.diff(getfixture("path"), getfixture("path"))["same"]
    True
    """
    one = a if isinstance(a, Store) else Store(a)
    other = b if isinstance(b, Store) else Store(b)
    report: dict[str, Any] = _native.diff(one._native, other._native, rtol=rtol, atol=atol, attributes=attributes)
    return report
