"""Reads the output of `tests/peers.rs` with the formats' own implementations, and compares the values."""

import pathlib
import sys

import h5py
import hdf5plugin  # noqa: F401  (registers its filters)
import numcodecs
import numpy as np

FOLDER = pathlib.Path(sys.argv[1])


def hdf5(stored, raw, size, number, parameters):
    data = np.frombuffer(raw, f"<u{size}")
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk(data.shape)
    if number == 4:
        dcpl.set_szip(4 if parameters[0] & 4 else 32, parameters[1])
    elif number == 3:
        dcpl.set_fletcher32()
    elif number == 2:
        dcpl.set_shuffle()
    else:
        dcpl.set_filter(number, 0, tuple(parameters))
    with h5py.File("memory", driver="core", backing_store=False, mode="w") as file:
        space = h5py.h5s.create_simple(data.shape)
        node = h5py.h5d.create(file.id, b"a", h5py.h5t.py_create(data.dtype), space, dcpl)
        node.write_direct_chunk((0,), stored, 0)
        del node
        return file["a"][:].tobytes()


def main():
    bad = 0
    for line in (FOLDER / "manifest").read_text().splitlines():
        index, size, kind, *rest = line.split()
        raw = (FOLDER / f"{index}.raw").read_bytes()
        stored = (FOLDER / f"{index}.stored").read_bytes()
        try:
            if kind == "numcodecs":
                back = bytes(getattr(numcodecs, rest[0])().decode(stored))
            else:
                back = hdf5(stored, raw, int(size), int(rest[0]), [int(word) for word in rest[1:]])
            if back != raw:
                raise ValueError("other values")
        except Exception as error:
            bad += 1
            print(line, len(raw), error)
    sys.exit(bad > 0)


main()
