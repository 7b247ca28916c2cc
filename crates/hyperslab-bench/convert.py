"""The peers' side of conversions: `convert.py CASE SOURCE TARGET` prints the median seconds of a case."""

import pathlib

from peers import case, clear, hdf5, main, median


@case
def hdf5_to_zarr(source, target):
    """What people write: an array of the same chunks, filled in one assignment."""
    import zarr
    from zarr.codecs import ZstdCodec

    def work():
        field = hdf5(source)
        array = zarr.create_array(
            target, shape=field.shape, chunks=field.chunks, dtype=field.dtype, compressors=ZstdCodec(level=3)
        )
        array[...] = field[...]

    median(work, lambda: clear(target))


@case
def zarr_to_planes(source, target):
    """A slab of source chunks at a time, so that each is read once."""
    import zarr

    def work():
        field = zarr.open_array(source, mode="r")
        array = zarr.create_array(
            target, shape=field.shape, chunks=(1, *field.shape[1:]), dtype=field.dtype, compressors=None
        )
        for start in range(0, field.shape[0], 64):
            array[start : start + 64] = field[start : start + 64]

    median(work, lambda: clear(target))


@case
def make_files(folder):
    """A hundred months of two variables, compressed as people have them."""
    import netCDF4
    import numpy as np

    random = np.random.default_rng(8)
    lat, lon = np.linspace(-90, 90, 73), np.arange(0, 360, 2.5)
    pathlib.Path(folder).mkdir()
    for month in range(100):
        with netCDF4.Dataset(f"{folder}/{month:03}.nc", "w") as file:
            for name, extent in (("time", None), ("lat", lat.size), ("lon", lon.size)):
                file.createDimension(name, extent)
            time = file.createVariable("time", "f8", ("time",))
            time.units, time[:] = "days since 2000-01-01", np.arange(30) + 30 * month
            file.createVariable("lat", "f4", ("lat",))[:] = lat
            file.createVariable("lon", "f4", ("lon",))[:] = lon
            for name in ("t2m", "pr"):
                chunks = (30, lat.size, lon.size)
                values = file.createVariable(name, "f4", ("time", "lat", "lon"), zlib=True, shuffle=True, chunksizes=chunks)
                smooth = 280 - np.abs(lat)[None, :, None] / 3 + np.sin(lon / 60)[None, None]
                values[:] = np.round(smooth + random.normal(size=chunks), 2)


@case
def joined_to_zarr(folder, target):
    import dask
    import xarray

    def work():
        with dask.config.set(scheduler="threads", num_workers=2), xarray.open_mfdataset(f"{folder}/*.nc") as data:
            data.to_zarr(target)

    median(work, lambda: clear(target))


if __name__ == "__main__":
    main()
