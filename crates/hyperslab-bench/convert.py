"""The peers' side of conversions: `convert.py CASE SOURCE TARGET` prints the median seconds of a case."""

from peers import case, clear, hdf5, main, median


@case
def hdf5_to_zarr(source, target):
    """The common way: an array with the same chunks, filled by one assignment."""
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
    """Reads one slab of source chunks at a time, so that each chunk is read once."""
    import zarr

    def work():
        field = zarr.open_array(source, mode="r")
        array = zarr.create_array(
            target, shape=field.shape, chunks=(1, *field.shape[1:]), dtype=field.dtype, compressors=None
        )
        for start in range(0, field.shape[0], 64):
            array[start : start + 64] = field[start : start + 64]

    median(work, lambda: clear(target))


if __name__ == "__main__":
    main()
