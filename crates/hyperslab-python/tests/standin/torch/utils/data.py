"""The protocol of PyTorch's ``DataLoader``: map-style and iterable data sets, workers by fork and spawn, ``__getitems__``,
collation, ``get_worker_info``. Batches of workers come back in turn, as there."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch


class IterableDataset:
    """Marks a data set that is iterated."""


@dataclass
class WorkerInfo:
    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    return _info


def default_collate(batch: list[Any]) -> Any:
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(batch)
    if isinstance(first, tuple):
        return [default_collate(list(same)) for same in zip(*batch, strict=True)]
    if isinstance(first, int | float):
        return torch.tensor(batch)
    return batch


def _fetch(dataset: Any, indices: Any, collate: Callable[[Any], Any] | None) -> Any:
    if not isinstance(indices, list) or collate is None:
        return dataset[indices]
    if getattr(dataset, "__getitems__", None):
        return collate(dataset.__getitems__(indices))
    return collate([dataset[index] for index in indices])


def _work(number: int, workers: int, dataset: Any, tasks: Any, answers: Any, batch: int | None) -> None:
    global _info
    _info = WorkerInfo(number, workers, number, dataset)
    try:
        if isinstance(dataset, IterableDataset):
            for item in _iterate(dataset, batch):
                answers.put((number, item))
        else:
            while (task := tasks.get()) is not None:
                order, indices, collates = task
                answers.put((order, _fetch(dataset, indices, default_collate if collates else None)))
    except Exception as error:  # noqa: BLE001
        answers.put(("error", repr(error)))
    answers.put(("end", number))


def _iterate(dataset: Any, batch: int | None) -> Iterator[Any]:
    if batch is None:
        yield from dataset
        return
    items: list[Any] = []
    for item in dataset:
        items.append(item)
        if len(items) == batch:
            yield default_collate(items)
            items = []
    if items:
        yield default_collate(items)


class DataLoader:
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Any = None,
        num_workers: int = 0,
        multiprocessing_context: str | None = None,
    ) -> None:
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers
        self.context, self.sampler = multiprocessing_context or "fork", sampler
        if isinstance(dataset, IterableDataset) and (shuffle or sampler is not None):
            raise ValueError("an IterableDataset has no shuffle option or sampler")
        self.shuffle = shuffle

    def _tasks(self) -> list[Any]:
        order = list(self.sampler) if self.sampler is not None else list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(0).shuffle(order)
        if self.batch_size is None:
            return order
        return [order[at : at + self.batch_size] for at in range(0, len(order), self.batch_size)]

    def __iter__(self) -> Iterator[Any]:
        iterable = isinstance(self.dataset, IterableDataset)
        if self.num_workers == 0:
            if iterable:
                yield from _iterate(self.dataset, self.batch_size)
                return
            for task in self._tasks():
                yield _fetch(self.dataset, task, default_collate if self.batch_size is not None else None)
            return
        context = multiprocessing.get_context(self.context)
        tasks, answers = context.Queue(), context.Queue()
        if not iterable:
            for order, indices in enumerate(self._tasks()):
                tasks.put((order, indices, self.batch_size is not None))
            for _ in range(self.num_workers):
                tasks.put(None)
        workers = [
            context.Process(target=_work, args=(number, self.num_workers, self.dataset, tasks, answers, self.batch_size))
            for number in range(self.num_workers)
        ]
        for worker in workers:
            worker.start()
        found, ended = [], 0
        while ended < self.num_workers:
            order, item = answers.get(timeout=120)
            if order == "error":
                raise RuntimeError(item)
            if order == "end":
                ended += 1
            else:
                found.append((order, item))
        for worker in workers:
            worker.join()
        yield from (item for _, item in (found if iterable else sorted(found, key=lambda pair: pair[0])))
