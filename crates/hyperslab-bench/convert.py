"""The peers' side of conversions: `convert.py CASE SOURCE TARGET` prints the median seconds of a case."""

import shutil

from peers import case, hdf5, main, median


@case
def hdf5_to_zarr(source, target):
    """What people write: an array of the same chunks, filled in one assignment."""
    import zarr
    from zarr.codecs import ZstdCodec

    def work():
        shutil.rmtree(target, ignore_errors=True)
        field = hdf5(source)
        array = zarr.create_array(
            target, shape=field.shape, chunks=field.chunks, dtype=field.dtype, compressors=ZstdCodec(level=3)
        )
        array[...] = field[...]

    median(work)


@case
def zarr_to_planes(source, target):
    """A slab of source chunks at a time, so that each is read once."""
    import zarr

    def work():
        shutil.rmtree(target, ignore_errors=True)
        field = zarr.open_array(source, mode="r")
        array = zarr.create_array(
            target, shape=field.shape, chunks=(1, *field.shape[1:]), dtype=field.dtype, compressors=None
        )
        for start in range(0, field.shape[0], 64):
            array[start : start + 64] = field[start : start + 64]

    median(work)


if __name__ == "__main__":
    main()
