"""Reads stores with their reference libraries: a line `KIND<tab>PATH` is answered by a line of hashes, or `refused REASON`.

Zarr stores have two hashes, separated by a bar: from the documents of the nodes, and from consolidated metadata."""

import hashlib
import json
import os
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")


class Digest:
    def __init__(self):
        self.hash = hashlib.sha256()

    def text(self, *words):
        self.hash.update(repr(words).encode())

    def array(self, name, values):
        values = np.asarray(values)
        self.text(name, str(values.dtype), values.shape)
        self.hash.update(np.ascontiguousarray(values).tobytes())

    def attributes(self, name, attributes):
        self.text(name, json.dumps({key: str(value) for key, value in attributes.items()}, sort_keys=True))

    def done(self):
        return self.hash.hexdigest()[:32]


def hdf5(path):
    import h5py

    digest = Digest()
    with h5py.File(path, "r") as file:

        def visit(name, node):
            digest.attributes(name, dict(node.attrs))
            if isinstance(node, h5py.Dataset):
                digest.array(name, node[()])

        visit("/", file)
        file.visititems(visit)
    return digest.done()


def netcdf(path):
    import netCDF4

    digest = Digest()
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        digest.attributes("/", file.__dict__)
        for name, variable in file.variables.items():
            digest.attributes(name, variable.__dict__)
            digest.array(name, variable[...])
    return digest.done()


def zarr_by(path, use_consolidated):
    import zarr

    digest = Digest()
    group = zarr.open_group(path, mode="r", use_consolidated=use_consolidated)
    digest.attributes("/", dict(group.attrs))
    for name, node in sorted(group.members(max_depth=None)):
        digest.attributes(name, dict(node.attrs))
        if isinstance(node, zarr.Array):
            digest.array(name, node[...] if node.ndim else node[()])
    return digest.done()


def zarr_both(path):
    return zarr_by(path, False) + "|" + zarr_by(path, None)


def zv(path):
    from zarr_vectors.types.points import read_points
    from zarr_vectors.core.store import open_store

    digest, store = Digest(), open_store(path)
    levels = sorted(name for name in os.listdir(path) if name.isdigit())
    named = json.dumps(json.load(open(os.path.join(path, "zarr.json")))["attributes"], sort_keys=True)
    digest.text(named)
    for level in levels:
        # A level that the root does not list does not exist yet.
        if level == "0" or f'"level": {level}' in named or f'"path": "{level}"' in named:
            read = read_points(path, level=int(level))
            digest.array(level, read["positions"])
    return digest.done()


def tiledb(path):
    import tiledb as library

    digest = Digest()

    def visit(uri, name):
        kind = library.object_type(uri)
        digest.text(name, kind)
        if kind == "group":
            with library.Group(uri) as group:
                digest.attributes(name, dict(group.meta.items()))
                members = sorted((member.name or os.path.basename(member.uri), member.uri) for member in group)
            for own, uri in members:
                visit(uri, own)
        elif kind == "array":
            with library.open(uri) as array:
                digest.attributes(name, {key: value for key, value in array.meta.items()})
                domain = array.nonempty_domain()
                digest.text(domain)
                if domain is not None:
                    values = array[tuple(slice(int(low), int(high) + 1) for low, high in domain)]
                    for own, column in sorted(values.items()) if isinstance(values, dict) else [("", values)]:
                        digest.array(own, column)
        else:
            raise ValueError(f"{uri} is neither array nor group")

    visit(path, "/")
    return digest.done()


def npy(path):
    digest = Digest()
    digest.array("/", np.load(path))
    return digest.done()


def npz(path):
    digest = Digest()
    with np.load(path) as file:
        for name in sorted(file.files):
            digest.array(name, file[name])
    return digest.done()


def tet(path):
    import tet as library

    digest, file = Digest(), library.open(path)
    for number in range(len(file.dataset_names)):
        dataset = file.dataset(number)
        digest.array(dataset.name, dataset.to_numpy(file))
    return digest.done()


def arrow(path):
    import pyarrow.feather

    return table(pyarrow.feather.read_table(path))


def parquet(path):
    import pyarrow.parquet

    return table(pyarrow.parquet.read_table(path))


def table(rows):
    digest = Digest()
    for name in rows.column_names:
        digest.array(name, rows[name].to_numpy())
    return digest.done()


def plain(path):
    return hashlib.sha256(open(path, "rb").read()).hexdigest()[:32]


KINDS = {
    "hdf5": hdf5, "netcdf": netcdf, "zarr": zarr_both, "zv": zv, "tiledb": tiledb, "npy": npy, "npz": npz,
    "tet": tet, "arrow": arrow, "parquet": parquet, "bytes": plain,
}

for line in sys.stdin:
    kind, path = line.rstrip("\n").split("\t")
    if not os.path.lexists(path):
        answer = "absent"
    else:
        try:
            answer = KINDS[kind](path)
        except Exception as problem:  # Libraries raise any exception for a damaged file.
            answer = "refused " + " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
    print(answer, flush=True)
