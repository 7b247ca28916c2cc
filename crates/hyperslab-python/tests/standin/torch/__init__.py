"""A stand-in for PyTorch, whose wheels are too large for these tests: the few calls that ``hyperslab.torch`` makes, with
PyTorch's behaviour. If the real PyTorch is installed, the tests also run with it."""
from __future__ import annotations

from typing import Any

import numpy as np


class Tensor:
    """Numbers that share the memory of a NumPy array."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def numpy(self) -> Any:
        return self.values

    def tolist(self) -> Any:
        return self.values.tolist()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)


def from_numpy(values: Any) -> Tensor:
    """Like PyTorch, accept only arrays in native byte order. An array that is not writable is a warning there, and an error
    here."""
    if not isinstance(values, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(values).__name__})")
    if not values.flags.writeable or not values.dtype.isnative:
        raise ValueError("the array is not writable, or not of native byte order")
    return Tensor(values)


def stack(tensors: list[Tensor]) -> Tensor:
    return Tensor(np.stack([tensor.values for tensor in tensors]))


def tensor(values: Any) -> Tensor:
    return Tensor(np.array(values))
