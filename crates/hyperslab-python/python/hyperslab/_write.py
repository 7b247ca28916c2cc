"""New stores, conversion, comparison."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hyperslab import _native
from hyperslab._errors import HyperslabError, InvalidError
from hyperslab._store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, DTypeLike


class Writer:
    """A store in the making, as :func:`create` gives it. Nothing is visible before the block ends without an exception."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        overwrite: bool = False,
        shards: Sequence[int] | None = None,
    ) -> None:
        self._native = _native.Writer(path, format=format, overwrite=overwrite, shards=shards)
        self._groups: set[str] = set()
        self._root: Mapping[str, Any] | None = None

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
) -> dict[str, Any]:
    """Converts a store to another format; the target appears whole or not at all.

    >>> import hyperslab
    >>> target = getfixture("tmp_path") / "t.zarr"
    >>> hyperslab.convert(getfixture("path"), target, chunks=(2, 3))["arrays"]
    1
    >>> hyperslab.open(target)["/t"].chunks
    (2, 3)
    """
    opened = source if isinstance(source, Store) else Store(source)
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
    )


def verify(path: str | os.PathLike[str], *, deep: bool = False, format: str | None = None) -> dict[str, Any]:
    """Is it whole? Findings and recommendations; what cannot even be opened is damage too.

    >>> import hyperslab
    >>> hyperslab.verify(getfixture("path"))["ok"]
    True
    """
    try:
        with Store(path, format=format) as store:
            report: dict[str, Any] = store.verify(deep)
            return report
    except OSError:
        raise
    except HyperslabError as error:
        finding = {"check": "parse", "severity": "error", "ok": False, "detail": str(error)}
        return {"ok": False, "findings": [finding], "recommendations": []}


def diff(
    a: str | os.PathLike[str] | Store,
    b: str | os.PathLike[str] | Store,
    *,
    values: bool = True,
) -> list[str]:
    """What differs between two stores, of any two formats: nodes, shapes, types, and with ``values`` elements.

    Compared chunk by chunk, so that neither need fit into memory. Missing numbers are equal to each other.

    >>> import hyperslab
    >>> hyperslab.diff(getfixture("path"), getfixture("path"))
    []
    """
    one = a if isinstance(a, Store) else Store(a)
    other = b if isinstance(b, Store) else Store(b)
    return list(_differences(one, other, values))


def _differences(a: Store, b: Store, values: bool) -> Iterator[str]:
    ours, theirs = _arrays(a), _arrays(b)
    for path in sorted(ours.keys() - theirs.keys()):
        yield f"{path}: only in {a.file}"
    for path in sorted(theirs.keys() - ours.keys()):
        yield f"{path}: only in {b.file}"
    for path in sorted(ours.keys() & theirs.keys()):
        x, y = ours[path], theirs[path]
        if x.shape != y.shape:
            yield f"{path}: shape {x.shape}, {y.shape}"
        elif x.dtype != y.dtype:
            yield f"{path}: type {x.dtype}, {y.dtype}"
        elif values and (count := _different_elements(x, y)):
            yield f"{path}: {count} elements differ"


def _arrays(store: Store) -> dict[str, _native.Array]:
    root = store["/"]
    if isinstance(root, _native.Array):
        return {"/": root}
    return {path: node for path, node in store.walk() if isinstance(node, _native.Array)}


def _different_elements(x: _native.Array, y: _native.Array) -> int:
    import numpy as np

    count = 0
    for box in _boxes(x):
        one, other = np.asarray(x[box]), np.asarray(y[box])
        same = one == other
        if one.dtype.kind in "fcmM":
            same |= (one != one) & (other != other)
        count += int(np.size(same) - np.count_nonzero(same))
    return count


def _boxes(array: _native.Array) -> Iterator[tuple[slice, ...]]:
    """Boxes of whole chunks, a few megabytes each."""
    import itertools

    if not array.shape:
        yield ()
        return
    step = list(array.chunks or array.shape)
    item = max(array.dtype.itemsize, 1)
    cells = 1
    for extent in step:
        cells *= extent
    for axis in range(len(step) - 1, -1, -1):
        while step[axis] < array.shape[axis] and cells * 2 * item <= 64 << 20:
            cells *= 2
            step[axis] *= 2
    if array.chunks is None:
        step[0] = max(1, min(step[0], (64 << 20) * step[0] // max(cells * item, 1)))
    for start in itertools.product(*(range(0, extent, by) for extent, by in zip(array.shape, step, strict=True))):
        yield tuple(slice(at, at + by) for at, by in zip(start, step, strict=True))
