"""h5py's side of the HDF5 cases: `hdf5.py CASE FILE` prints the median seconds and the peak of its private memory in
kibibytes, or creates FILE."""

import statistics
import sys
import threading
import time

import h5py
import hdf5plugin  # noqa: F401
import numpy as np

from peers import boxes

RUNS = 3


class Watch:
    """Measures the peak of private memory beyond that in use at the start."""

    def __init__(self):
        self.before = self.peak = self.own()
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    @staticmethod
    def own():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))

    def look(self):
        while not self.end.wait(0.005):
            self.peak = max(self.peak, self.own())

    def stop(self):
        self.peak = max(self.peak, self.own())
        self.end.set()
        return self.peak - self.before


def median(work):
    watch = Watch()
    work()
    seconds = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        kept = work()  # noqa: F841
        seconds.append(time.perf_counter() - begin)
    print(statistics.median(seconds), watch.stop())


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@case
def full(path):
    field = h5py.File(path)["field"]
    median(lambda: field[...])


@case
def into(path):
    field = h5py.File(path)["field"]
    buffer = np.zeros(field.shape, field.dtype)
    median(lambda: field.read_direct(buffer))


@case
def boxes_(path):
    field = h5py.File(path)["field"]
    wanted = boxes(field.shape)
    median(lambda: [field[box] for box in wanted])


CASES["boxes"] = boxes_


@case
def make_many_chunks(path):
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("x", data=np.arange(3_200_000, dtype="i4"), chunks=(16,), maxshape=(None,))


def opened(path, work):
    def run():
        with h5py.File(path) as file:
            return work(file)

    median(run)


@case
def first(path):
    opened(path, lambda file: file["x"][0])


@case
def all(path):
    opened(path, lambda file: file["x"][...])


@case
def references(path):
    def listing(file):
        found = []
        file["x"].id.chunk_iter(found.append)
        return found

    opened(path, listing)


def make_names(path, libver):
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(100_000):
            file.create_dataset(f"d{number:06}", data=np.arange(4, dtype="i4") + number)


@case
def make_names_old(path):
    make_names(path, "earliest")


@case
def make_names_new(path):
    make_names(path, "latest")


@case
def one(path):
    opened(path, lambda file: file["d054321"][...])


@case
def names(path):
    opened(path, lambda file: list(file))


if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
