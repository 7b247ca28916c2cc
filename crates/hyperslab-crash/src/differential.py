"""Reads damaged stores with their reference libraries, for the differential campaign.

A line `KIND<tab>PATH` is answered by one line of JSON: `{"nodes": {PATH: NODE}}` or `{"refused": REASON}`. A node is
`{"shape", "type", "sum"}` for numbers (the sum is the CRC-32 of the elements, little-endian), `{"rows"}` for sparse arrays,
`{"read": true}` for other values, `{"large": true}` for those not read, or `{"refused": REASON}`. The process ends if a store takes too long or too much memory.
"""

import json
import os
import resource
import signal
import sys
import warnings
import zlib

import numpy as np

warnings.simplefilter("ignore")
MOST_BYTES = 1 << 24
SECONDS = 10


def reason(problem):
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]


def described(values):
    values = np.asarray(values)
    if values.dtype.kind not in "iuf":
        return {"read": True}
    shape = list(values.shape)
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    # Every NaN is the same value.
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    kind = values.dtype.kind + str(values.dtype.itemsize)
    return {"shape": shape, "type": kind, "sum": zlib.crc32(values.tobytes())}


def attempt(nodes, name, read):
    try:
        nodes[name] = read()
    except Exception as problem:  # Libraries raise any exception for a damaged file.
        nodes[name] = {"refused": reason(problem)}


def array(node):
    if node.nbytes > MOST_BYTES:
        return {"large": True}
    return described(node[...] if node.ndim else node[()])


def hdf5(path):
    import h5py
    import hdf5plugin  # noqa: F401 (registers filters)

    nodes = {}
    with h5py.File(path, "r") as file:

        def visit(group, name, above):
            above = above | {h5py.h5o.get_info(group.id).addr}
            for key in group:
                full = f"{name}/{key}"
                kind = group.get(key, getlink=True)
                if isinstance(kind, h5py.ExternalLink):
                    continue
                try:
                    node = group[key]
                except Exception as problem:
                    nodes[full] = {"refused": reason(problem)}
                    continue
                if isinstance(node, h5py.Dataset):
                    attempt(nodes, full, lambda node=node: array(node) if node.shape is not None else {"read": True})
                # A group may contain itself.
                elif isinstance(node, h5py.Group) and h5py.h5o.get_info(node.id).addr not in above:
                    visit(node, full, above)

        visit(file, "", frozenset())
    return nodes


def zarr(path):
    import zarr as library

    nodes = {}
    root = library.open(path, mode="r")
    if isinstance(root, library.Array):
        attempt(nodes, "/", lambda: array(root))
        return nodes
    for name, node in root.members(max_depth=None):
        if isinstance(node, library.Array):
            attempt(nodes, "/" + name, lambda node=node: array(node))
    return nodes


def tiledb(path):
    import tiledb as library

    nodes = {}

    def visit(uri, name):
        kind = library.object_type(uri)
        if kind == "group":
            with library.Group(uri) as group:
                members = [(member.name or os.path.basename(member.uri), member.uri) for member in group]
            for own, uri in members:
                visit(uri, f"{name}/{own}")
            return
        with library.open(uri) as opened:
            if opened.schema.sparse:
                nodes[name or "/"] = {"rows": rows(opened)}
                return
            count = int(np.prod([int(size) for size in opened.shape], dtype=object))
            if count * 8 * opened.nattr > MOST_BYTES:
                nodes[name or "/"] = {"large": True}
                return
            values = opened[...]
            columns = values if isinstance(values, dict) else {opened.attr(0).name: values}
            for own, column in columns.items():
                nodes[f"{name}/{own or 'a0'}"] = described(column)

    def rows(opened):
        return len(next(iter(opened[:].values())))

    visit(path, "")
    if not nodes:
        raise ValueError("neither array nor group")
    return nodes


KINDS = {"hdf5": hdf5, "zarr": zarr, "tiledb": tiledb}

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for line in sys.stdin:
    kind, path = line.rstrip("\n").split("\t")
    # Without a handler, the alarm ends the process, even inside a library.
    signal.alarm(SECONDS)
    try:
        answer = {"nodes": KINDS[kind](path)}
    except Exception as problem:
        answer = {"refused": reason(problem)}
    signal.alarm(0)
    print(json.dumps(answer), flush=True)
