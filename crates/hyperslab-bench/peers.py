"""The peers' side of the bench: `peers.py CASE FILE` prints the median seconds of a case, or makes FILE."""

import statistics
import sys
import time

import numpy as np

RUNS, BOXES, BOX = 3, 100, 32


def boxes(shape):
    """The same pseudo-random boxes as the Rust side."""
    state, starts = 12345, []
    for _ in range(BOXES):
        start = []
        for extent in shape:
            state = (state * 1103515245 + 12345) % 2**31
            start.append(state % (extent - BOX))
        starts.append(tuple(slice(s, s + BOX) for s in start))
    return starts


def median(work):
    work()
    seconds = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    print(statistics.median(seconds))


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@case
def npy_boxes(path):
    array = np.load(path, mmap_mode="r")
    wanted = boxes(array.shape)
    median(lambda: [np.array(array[box]) for box in wanted])


@case
def tet_full(path):
    import tet

    file = tet.open(path)
    name = file.dataset_names()[0] if callable(file.dataset_names) else file.dataset_names[0]
    median(lambda: file.read_numpy(name))


@case
def tet_boxes(path):
    import tet

    file = tet.open(path)
    name = file.dataset_names()[0] if callable(file.dataset_names) else file.dataset_names[0]
    dataset = file.dataset(name)
    wanted = [
        [{"start": s.start, "stop": s.stop, "step": 1} for s in box] for box in boxes(dataset.shape)
    ]
    median(lambda: [file.read_numpy(name, selection=box) for box in wanted])


CHUNK = (64, 64, 64)


def make_hdf5(source, path, **filters):
    import h5py

    field = np.load(source, mmap_mode="r")
    with h5py.File(path, "w") as file:
        file.create_dataset("field", data=field, chunks=CHUNK, **filters)


@case
def make_hdf5_raw(source, path):
    make_hdf5(source, path)


@case
def make_hdf5_gzip(source, path):
    make_hdf5(source, path, shuffle=True, compression="gzip", compression_opts=4)


@case
def make_hdf5_zstd(source, path):
    import hdf5plugin

    make_hdf5(source, path, shuffle=True, **hdf5plugin.Zstd(clevel=3))


def hdf5(path):
    import h5py
    import hdf5plugin  # noqa: F401

    return h5py.File(path)["field"]


@case
def hdf5_full(path):
    field = hdf5(path)
    median(lambda: field[...])


@case
def hdf5_into(path):
    field = hdf5(path)
    buffer = np.zeros(field.shape, field.dtype)
    median(lambda: field.read_direct(buffer))


@case
def hdf5_boxes(path):
    field = hdf5(path)
    wanted = boxes(field.shape)
    median(lambda: [field[box] for box in wanted])


def make_tiledb(source, path, filters):
    import tiledb

    field = np.load(source, mmap_mode="r")
    axes = [tiledb.Dim(f"d{i}", domain=(0, n - 1), tile=64, dtype=np.int64) for i, n in enumerate(field.shape)]
    attribute = tiledb.Attr("field", dtype=field.dtype, filters=tiledb.FilterList(filters))
    tiledb.Array.create(path, tiledb.ArraySchema(domain=tiledb.Domain(*axes), attrs=[attribute]))
    with tiledb.open(path, "w") as array:
        array[:] = np.array(field)


@case
def make_tiledb_raw(source, path):
    make_tiledb(source, path, [])


@case
def make_tiledb_zstd(source, path):
    import tiledb

    make_tiledb(source, path, [tiledb.ZstdFilter(3)])


def tiledb_array(path):
    import tiledb

    return tiledb.open(path)


@case
def tiledb_full(path):
    array = tiledb_array(path)
    median(lambda: array[:]["field"])


@case
def tiledb_boxes(path):
    array = tiledb_array(path)
    wanted = boxes(array.shape)
    median(lambda: [array[box]["field"] for box in wanted])


if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
