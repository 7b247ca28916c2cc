"""Runs the cases of the ``hyperslab.torch`` tests in a process with PyTorch or its stand-in: ``python torch_script.py FILE
CASE``."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

COUNT, SIZE = 203, 6


def images() -> Any:
    return np.arange(COUNT * SIZE, dtype="float32").reshape(COUNT, SIZE)


def labels() -> Any:
    return np.arange(COUNT, dtype="int64") * 10


def check_pairs(batches: list[Any], whole: bool = True) -> list[int]:
    """Check that every sample occurs once, beside its label. Returns the numbers in order."""
    order: list[int] = []
    for pictures, numbers in batches:
        pictures, numbers = np.asarray(pictures.numpy()), np.asarray(numbers.numpy())
        rows = (numbers // 10).tolist() if np.ndim(numbers) else [int(numbers) // 10]
        pictures = pictures if np.ndim(numbers) else pictures[None]
        assert np.array_equal(pictures, images()[rows]), rows
        order += rows
    if whole:
        assert sorted(order) == list(range(COUNT)), order
    return order


def run(path: str, case: str) -> Any:
    from torch.utils.data import DataLoader

    import hyperslab
    from hyperslab.torch import Dataset, IterableDataset

    nodes = ("/images", "/labels")
    if case == "items":
        data = Dataset(path, *nodes)
        assert len(data) == COUNT
        check_pairs([data[5], data[-1], data[[7, 3, 7]]], whole=False)
        one = Dataset(hyperslab.open(path)["/images"])
        assert np.array_equal(one[4].numpy(), images()[4])
        doubled = Dataset(path, "/images", transform=lambda sample: sample.numpy() * 2)
        assert np.array_equal(doubled[4], images()[4] * 2)
        text = Dataset(path, "/names")
        assert text[3] == "n3" and text[[1, 2]] == ["n1", "n2"]
        try:
            Dataset(path, "/images", "/short")
        except hyperslab.InvalidError as error:
            assert "samples" in str(error)
        else:
            raise AssertionError("arrays of two lengths")
        return "ok"
    if case.startswith("map"):
        _, workers, context = case.split("-")
        loader = DataLoader(Dataset(path, *nodes), batch_size=16, shuffle=True, num_workers=int(workers), multiprocessing_context=context if int(workers) else None)
        order = check_pairs(list(loader))
        assert order != sorted(order)
        return "ok"
    if case.startswith("iterable"):
        _, workers, context = case.split("-")
        options: dict[str, Any] = {"num_workers": int(workers), "multiprocessing_context": context if int(workers) else None}
        data = IterableDataset(path, *nodes, shuffle=True, seed=3, mix=2)
        first = check_pairs(list(DataLoader(data, batch_size=16, **options)))
        again = check_pairs(list(DataLoader(data, batch_size=16, **options)))
        data.set_epoch(1)
        other = check_pairs(list(DataLoader(data, batch_size=16, **options)))
        if int(workers) == 0:
            assert first == again and first != other and first != sorted(first)
        whole = IterableDataset(path, *nodes, batch_size=16)
        sizes = [len(batch[1]) for batch in DataLoader(whole, batch_size=None, **options)]
        assert sum(sizes) == COUNT and max(sizes) == 16
        if int(workers) == 0:
            assert sizes == [16] * 12 + [11] and len(whole) == 13
            assert check_pairs(list(whole)) == list(range(COUNT))
        return "ok"
    if case == "parts":
        rows: list[int] = []
        for rank in range(3):
            part = IterableDataset(path, *nodes, shuffle=True, part=(rank, 3))
            own = check_pairs(list(part), whole=False)
            assert len(own) == len(part)
            rows += own
        assert sorted(rows) == list(range(COUNT))
        dropped = IterableDataset(path, *nodes, batch_size=16, drop_last=True)
        assert [len(batch[1]) for batch in dropped] == [16] * 12 and len(dropped) == 12
        return "ok"
    raise AssertionError(case)


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2])))
