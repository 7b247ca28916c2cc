"""Reads a converted array with zarr-python and h5py. Prints its stored chunks and the values at the given positions as JSON."""

import json
import os
import sys

import h5py
import hdf5plugin  # the zstd filter
import zarr

path, node = sys.argv[1:3]
if path.endswith(".zarr"):
    store = zarr.open(path, mode="r")
    array = store if isinstance(store, zarr.Array) else store[node]
    # zarr-python counts chunks by listing the grid.
    chunks = sum(file != "zarr.json" for _, _, files in os.walk(path) for file in files)
else:
    array = h5py.File(path, "r")[node]
    chunks = array.id.get_num_chunks()
shape = array.shape
parts = [array[tuple(slice(at, at + 2) for at in place)].ravel().tolist() for place in json.loads(sys.argv[3])]
print(json.dumps({"chunks": chunks, "shape": list(shape), "parts": parts}))
