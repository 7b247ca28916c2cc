"""Arrays of many fragments, to be consolidated. With `check`, compares what the library reads with the record.

    fragments.py ROOT            writes the arrays and records their content
    fragments.py ROOT check      compares
"""

import json
import os
import sys

import numpy as np
import tiledb

from cases import Cases, dense_nodes, fresh, sparse_nodes

F = tiledb.FilterList


def make(root):
    fresh(root)
    cases = Cases(root)
    for orders in [("row-major", "row-major"), ("col-major", "col-major")]:
        name = f"dense-{orders[0]}"
        path = cases.path(name)
        dims = [tiledb.Dim(name=n, domain=(1, 30), tile=7, dtype="int32") for n in "xy"]
        attrs = [tiledb.Attr(name="a", dtype="int32", filters=F([tiledb.ZstdFilter(2)])), tiledb.Attr(name="s", dtype="ascii", var=True)]
        tiledb.Array.create(path, tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=attrs, cell_order=orders[0], tile_order=orders[1]))
        for at in range(1, 8):
            low = at * 2
            shape = (9, 5 + at)
            with tiledb.open(path, "w", timestamp=at * 10) as array:
                array[low : low + shape[0], 3 : 3 + shape[1]] = {
                    "a": np.arange(shape[0] * shape[1], dtype="int32").reshape(shape) + at * 1000,
                    "s": np.array([f"{at}:{i}" for i in range(shape[0] * shape[1])], dtype=object).reshape(shape),
                }
        cases.expect_dense(name)
    for order in ["row-major", "col-major", "hilbert"]:
        for duplicates in [False, True]:
            name = f"sparse-{order}-{duplicates}"
            path = cases.path(name)
            dims = [tiledb.Dim(name="x", domain=(0, 999), tile=50, dtype="int32"), tiledb.Dim(name="y", domain=(-5.0, 5.0), tile=1.0, dtype="float64")]
            attrs = [tiledb.Attr(name="a", dtype="int32"), tiledb.Attr(name="n", dtype="float32", nullable=True), tiledb.Attr(name="s", dtype="ascii", var=True)]
            tiledb.Array.create(path, tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=attrs, sparse=True, cell_order=order, allows_duplicates=duplicates, capacity=8))
            for at in range(10, 60, 10):
                x = np.arange(at, at + 40, 2 if at % 20 else 3, dtype="int32")
                with tiledb.open(path, "w", timestamp=at) as array:
                    array[x, (x % 9) - 4.0] = {
                        "a": x * 10 + at, "n": np.array([None if v % 4 == 0 else float(v) for v in x], dtype=object),
                        "s": np.array([f"w{v % 7}" for v in x], dtype=object),
                    }
            with tiledb.open(path, "d", timestamp=35) as array:
                array.query(cond="a > 250 and a < 420").submit()
            cases.expect_sparse(name)
            for at in [(0, 20), (0, 36), (15, 45)]:
                cases.expect_sparse(name, at=at, label=f"at-{at[0]}-{at[1]}")


    for duplicates in [False, True]:
        deleted(cases, duplicates)


def deleted(cases, duplicates):
    """The library consolidates the first fragments and applies a delete to them. More of both follow."""
    name = f"sparse-deleted-{duplicates}"
    path = cases.path(name)
    axis = tiledb.Dim(name="x", domain=(0, 999), tile=50, dtype="int32")
    schema = tiledb.ArraySchema(domain=tiledb.Domain(axis), attrs=[tiledb.Attr(name="a", dtype="int32")], sparse=True, allows_duplicates=duplicates, capacity=8)
    tiledb.Array.create(path, schema)

    def write(at):
        x = np.arange(at, at + 40, 2, dtype="int32")
        with tiledb.open(path, "w", timestamp=at) as array:
            array[x] = x * 10 + at

    def delete(at, condition):
        with tiledb.open(path, "d", timestamp=at) as array:
            array.query(cond=condition).submit()

    for at in [10, 20, 30]:
        write(at)
    delete(35, "a > 250 and a < 420")
    tiledb.consolidate(path)
    tiledb.vacuum(path)
    for at in [40, 50]:
        write(at)
    delete(55, "a > 500 and a < 600")
    cases.expect_sparse(name)
    for at in [(0, 36), (0, 45), (0, 52)]:
        cases.expect_sparse(name, at=at, label=f"at-{at[0]}-{at[1]}")


def rows(node):
    names = sorted(node["columns"])
    return sorted(json.dumps(row) for row in zip(*[node["columns"][name] for name in names]))


def check(root):
    for name in sorted(os.listdir(root)):
        folder = os.path.join(root, name)
        for file in os.listdir(folder):
            if not file.endswith(".json"):
                continue
            with open(os.path.join(folder, file)) as text:
                record = json.load(text)
            uri = os.path.join(folder, "array")
            if name.startswith("dense"):
                assert json.loads(json.dumps(dense_nodes(uri, record.get("at")))) == record["nodes"], (name, file)
            else:
                assert rows(sparse_nodes(uri, record.get("at"))["/"]) == rows(record["nodes"]["/"]), (name, file)


if __name__ == "__main__":
    (check if "check" in sys.argv else make)(sys.argv[1])
