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


if __name__ == "__main__":
    CASES[sys.argv[1]](sys.argv[2])
