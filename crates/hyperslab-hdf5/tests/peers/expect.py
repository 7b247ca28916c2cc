"""Describes what h5py reads from a file, as JSON in the form of `Values::to_json`, for the Rust tests."""

import json
import math
import sys

import h5py
import numpy as np


def number(value):
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def text_or_hex(value):
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def plain(file, value):
    """One element as JSON."""
    if isinstance(value, h5py.RegionReference):
        return "region of " + file[value].name if value else ""
    if isinstance(value, h5py.Reference):
        return file[value].name if value else ""
    if isinstance(value, np.void):
        if value.dtype.names:
            return {name: plain(file, value[name]) for name in value.dtype.names}
        return {"hex": value.tobytes().hex()}
    # Before integers, because NumPy treats timedelta64 as one.
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return {"time": str(value)}
    if isinstance(value, np.ndarray):
        return [plain(file, item) for item in value]
    if isinstance(value, (bytes, np.bytes_)):
        return text_or_hex(bytes(value))
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (np.integer, int)):
        return int(value)
    if isinstance(value, (np.floating, float)):
        return number(value)
    if isinstance(value, (np.complexfloating, complex)):
        return [number(value.real), number(value.imag)]
    raise TypeError(f"{type(value)} {value!r}")


def nested(file, values):
    if isinstance(values, h5py.Empty):
        return []
    if isinstance(values, np.ndarray) and values.ndim > 0:
        return [nested(file, item) for item in values]
    if isinstance(values, np.ndarray):
        return plain(file, values[()])
    return plain(file, values)


def expect(path):
    """Every dataset of a file: shape, values, attributes."""
    nodes = {}

    def attributes(item):
        found = {}
        for name in item.attrs:
            try:
                found[name] = nested(file, item.attrs[name])
            except (OSError, TypeError) as error:
                found[name] = {"h5py": str(error)}
        return found

    with h5py.File(path, "r") as file:

        def visit(name, item):
            node = {"attributes": attributes(item)}
            if isinstance(item, h5py.Dataset):
                node["kind"] = "array"
                node["shape"] = None if item.shape is None else list(item.shape)
                node["chunks"] = list(item.chunks) if item.chunks else None
                node["dtype"] = str(item.dtype)
                if item.dtype.kind in "iufbc" and item.dtype.itemsize < 16 and item.shape is not None:
                    values = np.ascontiguousarray(item[()])
                    native = values.astype(values.dtype.newbyteorder("="))
                    node["raw"] = native.tobytes().hex()
                else:
                    node["values"] = nested(file, item[()])
            elif isinstance(item, h5py.Group):
                node["kind"] = "group"
                node["children"] = sorted(item.keys())
            else:
                node["kind"] = "type"
            nodes["/" + name] = node

        nodes["/"] = {"kind": "group", "children": sorted(file.keys()), "attributes": attributes(file)}
        file.visititems(visit)
    return nodes


if __name__ == "__main__":
    with open(sys.argv[2], "w") as out:
        json.dump(expect(sys.argv[1]), out)
