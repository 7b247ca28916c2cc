"""Shared by all cases: a folder per array with a JSON record of what the library reads from it."""

import json
import math
import os
import shutil
import sys

import numpy as np
import tiledb

VERSION = "0.36.1"
assert tiledb.__version__ == VERSION, f"tiledb {tiledb.__version__}, expected {VERSION}"


def plain(value):
    """One value as JSON, in the form that the engine prints."""
    if value is None or value is np.ma.masked:
        return None
    if hasattr(value, "item") and isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64, np.void)):
        value = value.item()
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.timedelta64):
        return int(value.astype("int64"))
    if isinstance(value, np.void):
        return [plain(part) for part in value.tolist()]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"hex": value.hex()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return nested(value)
    return value


def nested(array):
    """An array as nested lists."""
    array = array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
    if array.ndim == 0:
        return plain(array[()])
    if array.ndim == 1:
        return [plain(value) for value in array]
    return [nested(part) for part in array]


class Cases:
    def __init__(self, root):
        self.root = root
        self.count = 0

    def path(self, name):
        folder = os.path.join(self.root, name)
        assert not os.path.exists(folder), name
        os.makedirs(folder)
        return os.path.join(folder, "array")

    def expect(self, name, nodes, at=None, key=None, label="expected"):
        """Records the content of a case's array: nodes by path, each `{"values": …}` or `{"columns": …}`."""
        record = {"nodes": nodes}
        if at is not None:
            record["at"] = list(at)
        if key is not None:
            record["key"] = key
        with open(os.path.join(self.root, name, f"{label}.json"), "w") as file:
            json.dump(record, file)
        self.count += 1

    def expect_dense(self, name, at=None, key=None, label="expected", array=None):
        uri = array or os.path.join(self.root, name, "array")
        self.expect(name, dense_nodes(uri, at, key), at, key, label)

    def expect_sparse(self, name, at=None, key=None, label="expected"):
        uri = os.path.join(self.root, name, "array")
        self.expect(name, sparse_nodes(uri, at, key), at, key, label)


def options(at, key):
    extra = {}
    if at is not None:
        extra["timestamp"] = tuple(at)
    if key is not None:
        extra["ctx"] = context(key)
    return extra


def context(key):
    return tiledb.Ctx({"sm.encryption_key": key, "sm.encryption_type": "AES_256_GCM"})


def dense_nodes(uri, at=None, key=None):
    nodes = {}
    with tiledb.open(uri, **options(at, key)) as array:
        got = array[:]
        if not isinstance(got, dict):
            got = {array.schema.attr(0).name: got}
        for index in range(array.schema.nattr):
            attr = array.schema.attr(index)
            values = got[attr.name]
            nodes["/" + (attr.name or f"a{index}")] = {"values": nested(values)}
    return nodes


def sparse_nodes(uri, at=None, key=None, where=None):
    with tiledb.open(uri, **options(at, key)) as array:
        got = array[:] if where is None else where(array)
        return {"/": {"columns": {name: nested(values) for name, values in got.items()}}}


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
