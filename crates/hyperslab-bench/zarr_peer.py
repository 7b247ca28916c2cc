"""zarr-python's and tensorstore's side of the benchmarks: `zarr_peer.py CASE FILE …` prints the median seconds of a case, or creates FILE."""

import sys

import numpy as np
import zarr
from peers import CHUNK, boxes, clear, median

CASES = {}
SHARD = (256, 256, 256)


def case(function):
    CASES[function.__name__] = function
    return function


def create(path, shape, kind):
    from zarr.codecs import ZstdCodec

    return zarr.create_array(
        path,
        shape=shape,
        chunks=CHUNK,
        dtype="float32",
        shards=SHARD if "shards" in kind else None,
        compressors=ZstdCodec(level=3) if "zstd" in kind else None,
    )


@case
def make(source, path, kind):
    field = np.load(source, mmap_mode="r")
    create(path, field.shape, kind)[...] = field


def tensorstore(path):
    import tensorstore as ts

    return ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}).result()


@case
def python_full(path):
    array = zarr.open_array(path, mode="r")
    median(lambda: array[...])


@case
def python_boxes(path):
    array = zarr.open_array(path, mode="r")
    wanted = boxes(array.shape)
    median(lambda: [array[box] for box in wanted])


@case
def tensorstore_full(path):
    array = tensorstore(path)
    median(lambda: array.read().result())


@case
def tensorstore_boxes(path):
    array = tensorstore(path)
    wanted = boxes(array.shape)
    median(lambda: [array[box].read().result() for box in wanted])


@case
def python_write(source, path, kind):
    field = np.load(source)

    def write():
        create(path, field.shape, kind)[...] = field

    median(write, lambda: clear(path))


@case
def tensorstore_write(source, path, kind):
    field = np.load(source)

    def write():
        create(path, field.shape, kind)
        tensorstore(path).write(field).result()

    median(write, lambda: clear(path))


if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
