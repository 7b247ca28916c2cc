"""The peers' side of writing HDF5: `hdf5_write.py CASE [FIELD] FILE` prints the median seconds of a case."""

import os

import h5py
import hdf5plugin
import numpy as np

from peers import case, main, median

CHUNK = (64, 64, 64)
FRAMES, CELLS, EVERY = 200_000, (8, 8), 1000
CHUNKS = 1_000_000


def field(name, synced, **options):
    """Writes the whole field from memory."""

    def work(source, path):
        array = np.load(source)

        def write():
            with h5py.File(path, "w", libver="v110") as file:
                file.create_dataset("x", data=array, chunks=CHUNK, **options)
            if synced:
                handle = os.open(path, os.O_RDWR)
                os.fsync(handle)
                os.close(handle)

        median(write)

    work.__name__ = name + ("_synced" if synced else "")
    case(work)


for synced in (False, True):
    field("write_raw", synced)
    field("write_gzip", synced, compression="gzip", compression_opts=4, shuffle=True)
    field("write_zstd", synced, shuffle=True, **hdf5plugin.Zstd(clevel=3))


@case
def frames(path):
    frame = np.full(CELLS, 7, "f4")

    def write():
        with h5py.File(path, "w", libver="v110") as file:
            data = file.create_dataset("frames", (0, *CELLS), "f4", chunks=(1, *CELLS), maxshape=(None, *CELLS))
            for number in range(FRAMES):
                data.resize(number + 1, axis=0)
                data[number] = frame
                if (number + 1) % EVERY == 0:
                    file.flush()

    median(write)


@case
def chunks(path):
    def write():
        with h5py.File(path, "w", libver="v110") as file:
            data = file.create_dataset("x", (CHUNKS,), "u1", chunks=(1,), maxshape=(None,))
            put = data.id.write_direct_chunk
            for number in range(CHUNKS):
                put((number,), b"\x01")

    median(write)


if __name__ == "__main__":
    main()
