"""The peers' side of NetCDF classic: `netcdf3.py CASE FILE` prints the median seconds of a case, or makes FILE."""

import netCDF4
import numpy as np
import scipy.io
from peers import case, main, median

# 256 MiB: 64 planes of 1024 × 1024.
SHAPE = (64, 1024, 1024)
STRIDES = (slice(None, None, 4), slice(None, None, 8), slice(None, None, 8))


def make(path, first):
    """The field as one variable; a second one keeps the records of both apart."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, extent in zip("tyx", (first, *SHAPE[1:]), strict=True):
            file.createDimension(name, extent)
        field, count = file.createVariable("field", "f4", ("t", "y", "x")), file.createVariable("count", "i4", ("t",))
        random = np.random.default_rng(3)
        for plane in range(SHAPE[0]):
            field[plane] = random.random(SHAPE[1:], "f4")
            count[plane] = plane


@case
def make_fixed(path):
    make(path, SHAPE[0])


@case
def make_records(path):
    make(path, None)


def read(library, path, key):
    """A copy in the machine's byte order, as both libraries are used."""
    if library == "scipy":
        file = scipy.io.netcdf_file(path, mmap=True)
        field = file.variables["field"]
        # A view of the mapped file would fail when the file is closed.
        median(lambda: field[key].astype("f4"))
        del field
        file.close()
    else:
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            field = file["field"]
            median(lambda: field[key])


@case
def full(library, path):
    read(library, path, Ellipsis)


@case
def strided(library, path):
    read(library, path, STRIDES)


if __name__ == "__main__":
    main()
