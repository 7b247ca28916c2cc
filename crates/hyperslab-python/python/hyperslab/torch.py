"""Samples for PyTorch from arrays of any format: rows along the first axis.

:class:`Dataset` returns samples by index, :class:`IterableDataset` streams them chunk by chunk, shuffled by chunk. Both
work in the workers of a ``DataLoader``, forked or spawned: each worker opens the store itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import IterableDataset as _Iterable
from torch.utils.data import get_worker_info

from hyperslab._errors import InvalidError
from hyperslab._native import Array
from hyperslab._store import Store
from hyperslab._threads import threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Dataset", "IterableDataset"]


def _arrays(source: Any, nodes: Sequence[str], decode: bool, options: dict[str, Any]) -> list[Array]:
    """The arrays of a store, or the given arrays. All must have the same length."""
    if isinstance(source, Array):
        found = [source]
    elif isinstance(source, Sequence) and not isinstance(source, str):
        found = list(source)
    else:
        store = source if isinstance(source, Store) else Store(source, **options)
        found = [store[node] for node in nodes] if nodes else [store[store._native.only_node()]]
    if nodes and isinstance(source, Array | list | tuple):
        raise InvalidError("nodes names arrays of a store; pass arrays without it")
    for array in found:
        if not isinstance(array, Array) or array.ndim == 0:
            raise InvalidError(f"samples are rows of arrays; {array!r} has none")
        if len(array) != len(found[0]):
            raise InvalidError(f"{array.path} has {len(array)} samples, {found[0].path} has {len(found[0])}")
    # A tensor holds no dates, so times stay numbers.
    decoded = [array.decoded if decode else array for array in found]
    return [stored if array.dtype.kind == "M" else array for stored, array in zip(found, decoded)]


def _tensor(values: Any) -> Any:
    """A tensor for numbers; strings and dates unchanged."""
    values = np.asarray(np.ma.filled(values) if isinstance(values, np.ma.MaskedArray) else values)
    if values.dtype.kind not in "biufc":
        return values.tolist()
    # A tensor shares the memory and may be written to, so copy read-only views of mapped files.
    if not values.flags.writeable or not values.flags.c_contiguous or not values.dtype.isnative:
        values = np.array(values, dtype=values.dtype.newbyteorder("="), order="C")
    return torch.from_numpy(values)


def _sample(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else tuple(parts)


class _Samples:
    """The common base of both datasets."""

    def __init__(
        self,
        source: Any,
        *nodes: str,
        transform: Callable[[Any], Any] | None = None,
        decode: bool = False,
        **options: Any,
    ) -> None:
        self.arrays = _arrays(source, nodes, decode, options)
        self.transform = transform

    def _read(self, key: Any) -> list[NDArray[Any]]:
        """Rows of all arrays. Workers run in parallel, so each reads on one thread."""
        if get_worker_info() is None:
            return [array[key] for array in self.arrays]
        with threads(1):
            return [array[key] for array in self.arrays]

    def _finish(self, parts: list[Any]) -> Any:
        sample = _sample([_tensor(part) for part in parts])
        return sample if self.transform is None else self.transform(sample)


class Dataset(_Samples):
    """Samples by index: rows of an array, or tuples of rows of several arrays of the same length.

    ``Dataset("train.h5", "/images", "/labels")[5]`` is a pair of tensors. A list of indices reads a whole batch, and each of
    its chunks once; a ``DataLoader`` requests batches automatically. ``transform`` is called with each sample, or with each
    batch that is requested by a list. ``decode`` applies the file's conventions (scale, offset, missing values). Further
    options are those of :func:`hyperslab.open`.

    To avoid the cost of collating a batch: ``DataLoader(data, sampler=BatchSampler(RandomSampler(data), 64, False),
    batch_size=None)``.
    """

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, torch.Tensor):
            index = index.tolist()
        if isinstance(index, list | tuple | np.ndarray):
            return self._finish(self._read(np.asarray(index, dtype="int64")))
        return self._finish([np.asarray(row) if np.ndim(row) else row for row in self._read(int(index))])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return a batch as a list of samples, read at once. A ``DataLoader`` calls this before it collates them."""
        batch = self._read(np.asarray(indices, dtype="int64"))
        return [self._finish([part[row] for part in batch]) for row in range(len(indices))]


class IterableDataset(_Samples, _Iterable):  # type: ignore[misc]
    """Samples chunk by chunk, with each chunk read once: the fastest way to read a compressed file.

    ``shuffle`` changes the order of chunks, and mixes the samples within ``mix`` chunks at a time. The order depends on
    ``seed`` and on the epoch: call :meth:`set_epoch` before each. ``batch_size`` returns batches instead of samples; use
    ``DataLoader(data, batch_size=None)`` then. Workers of a ``DataLoader`` read disjoint chunks; ``part=(rank, count)``
    divides the chunks between processes. Other options are those of :class:`Dataset`.
    """

    def __init__(
        self,
        source: Any,
        *nodes: str,
        shuffle: bool = False,
        seed: int = 0,
        mix: int = 1,
        batch_size: int | None = None,
        drop_last: bool = False,
        part: tuple[int, int] = (0, 1),
        transform: Callable[[Any], Any] | None = None,
        decode: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(source, *nodes, transform=transform, decode=decode, **options)
        if mix < 1 or (batch_size is not None and batch_size < 1) or not 0 <= part[0] < part[1]:
            raise InvalidError("mix and batch_size must be at least 1, and part must be (rank, count) with rank < count")
        self.shuffle, self.seed, self.mix, self.epoch = shuffle, seed, mix, 0
        self.batch_size, self.drop_last, self.part = batch_size, drop_last, part

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which changes the order of samples."""
        self.epoch = epoch

    def _blocks(self) -> list[tuple[int, int]]:
        """Rows of chunks of the first array in the order of this epoch, limited to those of this process and worker."""
        first = self.arrays[0]
        step = max(1, first.chunks[0]) if first.chunks is not None else max(1, (4 << 20) // max(1, first.nbytes // max(1, len(first))))
        starts = np.arange(0, len(first), step)
        if self.shuffle:
            starts = np.random.default_rng([self.seed, self.epoch]).permutation(starts)
        worker = get_worker_info()
        rank, count = self.part
        if worker is not None:
            rank, count = rank * worker.num_workers + worker.id, count * worker.num_workers
        return [(int(start), min(int(start) + step, len(first))) for start in starts[rank::count]]

    def __iter__(self) -> Iterator[Any]:
        blocks = self._blocks()
        return self._rows(blocks) if self.batch_size is None else self._batches(blocks, self.batch_size)

    def _groups(self, blocks: list[tuple[int, int]]) -> Iterator[list[NDArray[Any]]]:
        """The rows of several chunks at a time, mixed."""
        for at in range(0, len(blocks), self.mix):
            own = blocks[at : at + self.mix]
            parts = [self._read(slice(start, stop)) for start, stop in own]
            rows = parts[0] if len(parts) == 1 else [np.concatenate(same) for same in zip(*parts, strict=True)]
            if self.shuffle:
                order = np.random.default_rng([self.seed, self.epoch, own[0][0]]).permutation(len(rows[0]))
                rows = [part[order] for part in rows]
            yield rows

    def _rows(self, blocks: list[tuple[int, int]]) -> Iterator[Any]:
        for rows in self._groups(blocks):
            for row in range(len(rows[0])):
                yield self._finish([part[row] for part in rows])

    def _batches(self, blocks: list[tuple[int, int]], size: int) -> Iterator[Any]:
        rest: list[NDArray[Any]] | None = None
        for rows in self._groups(blocks):
            if rest is not None and len(rest[0]):
                rows = [np.concatenate([old, new]) for old, new in zip(rest, rows, strict=True)]
            whole = len(rows[0]) // size * size
            for at in range(0, whole, size):
                yield self._finish([part[at : at + size] for part in rows])
            rest = [part[whole:] for part in rows]
        if rest is not None and len(rest[0]) and not self.drop_last:
            yield self._finish(rest)

    def __len__(self) -> int:
        """The number of samples or batches of this process. With workers, each worker may end with an incomplete batch."""
        rows = sum(stop - start for start, stop in self._blocks())
        if self.batch_size is None:
            return rows
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)
