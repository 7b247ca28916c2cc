"""The Python side of the bench: `python.py CASE LIBRARY FILE` prints the median seconds to a NumPy array.

Every library gets an object that is indexed with slices; what is timed is the indexing alone, after opening.
"""

import pathlib
import subprocess
import sys
import time

import numpy as np
from peers import boxes, case, main, median

INDICES = 100_000


def opened(library, path):
    """What the library calls an array."""
    if library == "hyperslab":
        import hyperslab

        return hyperslab.open_array(path)
    if library == "h5py":
        import h5py

        try:
            import hdf5plugin  # noqa: F401
        except ImportError:
            pass
        file = h5py.File(path)
        return file[next(iter(file))]
    if library == "tiledb":
        import tiledb

        array = tiledb.open(path, config={"sm.compute_concurrency_level": 2, "sm.io_concurrency_level": 2})
        name = array.attr(0).name
        return array if name == "" else Attribute(array, name)
    if library == "zarr":
        import zarr

        found = zarr.open(path, mode="r")
        return found if isinstance(found, zarr.Array) else next(iter(found.arrays()))[1]
    if library == "tet":
        return Tet(path)
    raise SystemExit(f"no library {library}")


class Attribute:
    """One attribute of a TileDB array."""

    def __init__(self, array, name):
        self.array, self.name, self.shape = array, name, array.shape

    def __getitem__(self, key):
        return self.array[key][self.name]


class Tet:
    """tet-py reads whole datasets and boxes by functions."""

    def __init__(self, path):
        import tet

        self.file = tet.open(path)
        names = self.file.dataset_names
        self.name = (names() if callable(names) else names)[0]
        self.shape = self.file.dataset(self.name).shape

    def __getitem__(self, key):
        if key is Ellipsis:
            return self.file.read_numpy(self.name)
        box = []
        for wanted, extent in zip(key, self.shape, strict=True):
            start, stop = (wanted, wanted + 1) if isinstance(wanted, int) else wanted.indices(extent)[:2]
            box.append({"start": start, "stop": stop, "step": 1})
        return self.file.read_numpy(self.name, selection=box)


@case
def full(library, path):
    array = opened(library, path)
    median(lambda: array[...])


@case
def small_boxes(library, path):
    array = opened(library, path)
    wanted = boxes(array.shape)
    median(lambda: [np.asarray(array[box]).sum() for box in wanted])


def plane(axis, library, path):
    array = opened(library, path)
    key = tuple(n // 2 + 1 if k == axis else slice(None) for k, n in enumerate(array.shape))
    median(lambda: np.asarray(array[key]).sum())


@case
def plane_0(library, path):
    plane(0, library, path)


@case
def plane_1(library, path):
    plane(1, library, path)


@case
def plane_2(library, path):
    plane(2, library, path)


def indices(length):
    return np.sort(np.random.default_rng(7).choice(length, INDICES, replace=False))


@case
def listed(library, path):
    """100,000 positions along one axis; h5py wants them sorted. Once, as h5py takes long, so the file is made warm before."""
    pathlib.Path(path).read_bytes()
    array = opened(library, path)
    wanted = indices(array.shape[0])
    begin = time.perf_counter()
    array[wanted]
    print(time.perf_counter() - begin)


def write_line(path, **filters):
    import h5py

    with h5py.File(path, "w") as file:
        data = np.random.default_rng(1).random(1 << 24, "float32")
        file.create_dataset("t", data=data, chunks=(1 << 16,), **filters)


@case
def make_line(path):
    write_line(path)


@case
def make_line_gzip(path):
    write_line(path, compression="gzip", shuffle=True)


SAMPLES, SAMPLE = 4096, (64, 64)


def samples():
    """Images with structure, as measured ones have."""
    rows = np.add.outer(np.arange(SAMPLE[0]), np.arange(SAMPLE[1]))
    noise = np.random.default_rng(2).integers(0, 8, (SAMPLES, *SAMPLE))
    return ((rows + noise) % 256).astype("f4")


@case
def make_samples(path):
    """Chunks of 16 samples."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=samples(), chunks=(16, *SAMPLE), compression="gzip", shuffle=True)


@case
def batches(library, path):
    """A batch of 64 random samples: sorted, as h5py wants them."""
    array = opened(library, path)
    random = np.random.default_rng(9)
    wanted = [np.sort(random.choice(SAMPLES, 64, replace=False)) for _ in range(10)]
    seconds = []
    for batch in wanted:
        begin = time.perf_counter()
        array[batch]
        seconds.append(time.perf_counter() - begin)
    print(sorted(seconds)[len(seconds) // 2])


def appended(library, path, count, each):
    """Seconds for a sample that is added to a compressed array, the file opened once or for `each`."""
    import h5py
    import hyperslab

    images = samples()[:count]
    with h5py.File(path, "w") as file:
        options = {"chunks": (16, *SAMPLE), "compression": "gzip", "shuffle": True}
        file.create_dataset("x", data=images[:1], maxshape=(None, *SAMPLE), **options)
    opening = (h5py if library == "h5py" else hyperslab).File
    begin = time.perf_counter()
    for part in np.array_split(images[1:], count - 1 if each else 1):
        with opening(path, "a") as file:
            for image in part:
                if library == "h5py":
                    file["x"].resize(len(file["x"]) + 1, axis=0)
                    file["x"][-1] = image
                else:
                    file["x"].append(image)
    print((time.perf_counter() - begin) / (count - 1))
    with h5py.File(path) as file:
        assert np.array_equal(file["x"][...], images)


@case
def append_many(library, path):
    appended(library, path, 1001, each=False)


@case
def append_each(library, path):
    appended(library, path, 101, each=True)


@case
def tiny(library, path):
    """One call of a tiny read, after opening."""
    array = opened(library, path)
    key, calls = (slice(0, 2), slice(0, 2), slice(0, 2)), 2000

    def work():
        for _ in range(calls):
            array[key]

    work()
    begin = time.perf_counter()
    work()
    print((time.perf_counter() - begin) / calls)


@case
def importing(library, _path):
    """What importing the module adds to importing NumPy: the best of several fresh processes."""
    script = f"import numpy, time; t = time.perf_counter(); import {library}; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in range(7)]
    print(sorted(float(run.stdout) for run in runs)[3])


if __name__ == "__main__":
    main()
