"""The peers' side of the folds: `query.py CASE FILE` prints the median seconds of a case."""

import numpy as np

from peers import case, hdf5, main, median


@case
def numpy_sum(path):
    array = np.load(path)
    median(array.sum)


def along(axis):
    def work(path):
        array = np.load(path)
        median(lambda: array.sum(axis=axis))

    return work


for axis in range(3):
    work = along(axis)
    work.__name__ = f"numpy_axis_{axis}"
    case(work)


def whole(open_array, fold):
    def work(path):
        array = open_array(path)
        median(lambda: fold(array))

    return work


def tiledb_array(path):
    import tiledb

    return tiledb.open(path, ctx=tiledb.Ctx({"sm.compute_concurrency_level": "2", "sm.io_concurrency_level": "2"}))


def zarr_array(path):
    import zarr

    return zarr.open_array(path, mode="r")


for what in ["mean", "sum"]:
    # h5py and zarr-python have no reductions; their users read the values and reduce them with NumPy.
    for name, opened in [("hdf5", hdf5), ("zarr", zarr_array)]:
        work = whole(opened, lambda array, what=what: getattr(array[...], what)())
        work.__name__ = f"{name}_{what}"
        case(work)
    work = whole(
        tiledb_array,
        # The library computes the aggregate itself.
        lambda array, what=what: array.query(attrs=[array.attr(0).name]).agg(what)[:],
    )
    work.__name__ = f"tiledb_{what}"
    case(work)


def tet_fold(what):
    def work(path):
        import tet

        file = tet.open(path)
        name = file.dataset_names()[0] if callable(file.dataset_names) else file.dataset_names[0]
        # The library's own reductions and threads.
        median(lambda: getattr(file, what)(name))

    return work


for what in ["mean", "sum"]:
    work = tet_fold(what)
    work.__name__ = f"tet_{what}"
    case(work)


@case
def make_tiny_hdf5(source, path):
    import h5py

    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("field", data=np.load(source), chunks=(4, 4, 4))


if __name__ == "__main__":
    main()
