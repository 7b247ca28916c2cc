"""Existing arrays of a store opened for appending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab._casting import fit
from hyperslab._errors import InvalidError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from hyperslab._attributes import NewAttributes
    from hyperslab._native import Array


def axis_of(array: Array, axis: int | str) -> int:
    """The number of an axis, given by number (negative ones count from the end) or by name."""
    if isinstance(axis, str):
        if axis not in array.dims:
            raise InvalidError(f"{array.path} has no dimension {axis}; it has {array.dims}")
        return array.dims.index(axis)
    return axis + array.ndim if axis < 0 else axis


class GrowingArray:
    """An array of an existing store that is being extended. Reading returns the stored values. New values are appended
    along one axis, by :meth:`append`, or by :meth:`resize` and assignment as in h5py. They are stored when the store is
    finished."""

    def __init__(self, array: Array, attrs: NewAttributes) -> None:
        #: The array as stored.
        self.array = array
        self.attrs = attrs
        self._axis = 0
        self._grown = 0
        # Grows with spare capacity, so that appending samples one at a time does not copy all earlier ones.
        self._buffer: NDArray[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension, including the appended ones."""
        shape = list(self.array.shape)
        if shape:
            shape[self._axis] += self._grown
        return tuple(shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object))

    def __len__(self) -> int:
        return self.shape[0]

    def resize(self, size: int | Sequence[int], axis: int | str | None = None) -> None:
        """Extend the array along one axis. Unassigned cells hold the fill value."""
        wanted = list(self.shape)
        if axis is not None:
            wanted[axis_of(self.array, axis)] = int(size)  # type: ignore[arg-type]
        else:
            wanted = list(size) if not isinstance(size, int | np.integer) else [int(size)]
        if len(wanted) != self.array.ndim:
            raise InvalidError(f"{self.array.path} has {self.array.ndim} dimensions, not {len(wanted)}")
        changed = [number for number, (new, old) in enumerate(zip(wanted, self.shape, strict=True)) if new != old]
        if not changed:
            return
        if len(changed) > 1 or (self._grown and changed != [self._axis]):
            raise UnsupportedError(f"{self.array.path}: growing along several axes at once; finish the store after each")
        number = changed[0]
        count = wanted[number] - self.array.shape[number]
        if count < self._grown:
            raise UnsupportedError(f"{self.array.path}: making an array shorter; hyperslab.convert() writes a part of it")
        self._axis = number
        self._make_room(count)
        self._grown = count

    def append(self, values: ArrayLike, axis: int | str = 0) -> None:
        """Append values: one sample without the axis, or several with it."""
        number = axis_of(self.array, axis)
        values = fit(values, self.array.dtype)
        if values.ndim == self.array.ndim - 1:
            values = np.expand_dims(values, number)
        if values.ndim != self.array.ndim:
            raise InvalidError(f"{self.array.path}: cannot append shape {values.shape} to shape {self.shape}")
        before, count = self._grown, values.shape[number]
        self.resize(self.shape[number] + count, axis=number)
        if count:
            self._place(slice(before, before + count))[...] = values

    def _make_room(self, count: int) -> None:
        held = 0 if self._buffer is None else self._buffer.shape[self._axis]
        if count <= held:
            return
        shape = list(self.array.shape)
        shape[self._axis] = max(count, 2 * held)
        fill = self.array.fill_value
        if self.array.dtype.kind == "O" or fill is None:
            fill = "" if self.array.dtype.kind == "O" else np.zeros((), self.array.dtype)[()]
        grown = np.full(shape, fill, self.array.dtype)
        if self._buffer is not None:
            grown[self._along(slice(0, held))] = self._buffer
        self._buffer = grown

    def _along(self, part: slice) -> tuple[slice, ...]:
        return tuple(part if number == self._axis else slice(None) for number in range(self.array.ndim))

    def _place(self, part: slice) -> NDArray[Any]:
        assert self._buffer is not None
        return self._buffer[self._along(part)]

    def __getitem__(self, key: Any) -> Any:
        if self._grown:
            raise UnsupportedError(f"{self.array.path}: reading an array that is being made longer; finish the store and open it again")
        return self.array[key]

    def __setitem__(self, key: Any, values: ArrayLike) -> None:
        parts = list(key) if isinstance(key, tuple) else [key]
        if any(part is Ellipsis for part in parts):
            at = next(number for number, part in enumerate(parts) if part is Ellipsis)
            parts[at : at + 1] = [slice(None)] * (self.array.ndim - len(parts) + 1)
        parts += [slice(None)] * (self.array.ndim - len(parts))
        if len(parts) != self.array.ndim:
            raise InvalidError(f"{self.array.path} has {self.array.ndim} dimensions, not {len(parts)}")
        old, whole = self.array.shape[self._axis], self.shape[self._axis]
        part = parts[self._axis]
        if isinstance(part, slice):
            start, stop, step = part.indices(whole)
            parts[self._axis] = slice(start - old, max(stop, start) - old, step)
            first = start if stop > start else old
        else:
            at = int(part)
            first = at + whole if at < 0 else at
            if not 0 <= first < whole:
                raise IndexError(f"index {at} is out of bounds for axis {self._axis} of length {whole}")
            parts[self._axis] = first - old
        if first < old or not self._grown:
            raise UnsupportedError(f"{self.array.path}: changing values that are stored; only the cells that resize() added can be assigned")
        self._place(slice(0, self._grown))[tuple(parts)] = fit(values, self.array.dtype)

    def take(self) -> Iterator[tuple[NDArray[Any], int]]:
        """The values to store, and their axis."""
        if self._grown and self._buffer is not None:
            yield self._place(slice(0, self._grown)), self._axis
            self._grown, self._buffer = 0, None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[...], dtype=dtype)

    def __repr__(self) -> str:
        more = f", {self._grown} added" if self._grown else ""
        return f"<hyperslab.GrowingArray {self.array.path!r} {self.array.dtype} {self.shape}{more}>"
