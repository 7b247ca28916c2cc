"""Two worker processes read and reduce an array that exceeds their memory, and write the result in aligned regions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hyperslab

distributed = pytest.importorskip("distributed")
xr = pytest.importorskip("xarray")

SHAPE, CHUNKS = (96, 1024, 1024), (8, 512, 512)


def threads_in_a_task(_: int) -> int:
    from hyperslab._threads import current

    return current()


@pytest.fixture(scope="module")
def client() -> distributed.Client:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="300MiB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def block(number: int) -> np.ndarray:
    return np.full((CHUNKS[0], *SHAPE[1:]), number, "float32")


@pytest.mark.parametrize("ending", ["tet", "zarr"])
def test_more_than_a_worker_holds(client: distributed.Client, tmp_path: Path, ending: str) -> None:
    source, target = tmp_path / f"source.{ending}", tmp_path / f"target.{ending}"
    count = SHAPE[0] // CHUNKS[0]
    with hyperslab.create(source) as new:
        t = new.create_array("/t", shape=SHAPE, dtype="float32", chunks=CHUNKS, filters=["zstd"], dims=("z", "y", "x"))
        for number in range(count):
            t[number * CHUNKS[0] : (number + 1) * CHUNKS[0]] = block(number)
    assert np.prod(SHAPE) * 4 > 300 << 20, "larger than a worker's memory"
    dataset = xr.open_dataset(source, engine="hyperslab", chunks={})
    assert float(dataset.t.mean()) == pytest.approx((count - 1) / 2)
    assert client.submit(threads_in_a_task, 0).result() == 1, "one thread a task"

    means = dataset.t.mean("x").astype("float32").data
    with hyperslab.create(target) as new:
        out = new.create_array("/m", shape=SHAPE[:2], dtype="float32", chunks=CHUNKS[:2])
        futures = {
            client.compute(means.blocks[i, j]): (i, j) for i in range(count) for j in range(means.numblocks[1])
        }
        for future, part in distributed.as_completed(futures, with_results=True):
            i, j = futures[future]
            out[i * CHUNKS[0] : (i + 1) * CHUNKS[0], j * CHUNKS[1] : (j + 1) * CHUNKS[1]] = part
    found = hyperslab.open(target)["/m"][...]
    assert np.array_equal(found[:, 0], np.repeat(np.arange(count), CHUNKS[0]))
    assert (found == found[:, :1]).all()
