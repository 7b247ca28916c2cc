"""The peers' side of the benchmarks: `peers.py CASE FILE` prints the median seconds of a case, or creates FILE.

The scripts of single areas import `case`, `median`, `clear`, `boxes` and `main` from here.
"""

import pathlib
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


def median(work, prepare=lambda: None):
    """Runs the work once to warm up, then several times. The preparation of a run is not timed."""
    seconds = []
    for _ in range(RUNS + 1):
        prepare()
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    print(statistics.median(seconds[1:]))


def clear(path):
    """Empties the files of a folder and moves them aside, as the Rust side does."""
    path = pathlib.Path(path)
    if not path.exists():
        return
    aside = path.with_name("emptied")
    aside.mkdir(exist_ok=True)
    emptied = path.rename(aside / str(sum(1 for _ in aside.iterdir())))
    for file in emptied.rglob("*"):
        if file.is_file():
            file.write_bytes(b"")


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


def main():
    CASES[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
