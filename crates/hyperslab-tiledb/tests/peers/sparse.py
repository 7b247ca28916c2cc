"""Sparse arrays over dimension types, orders, duplicates, histories, deletes and consolidation."""

import sys

import numpy as np
import pyarrow as pa
import tiledb

from cases import Cases, fresh, nested

F = tiledb.FilterList


def create(path, dims, attrs, **extra):
    schema = tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=attrs, sparse=True, **extra)
    tiledb.Array.create(path, schema)


def points(count, dtype, seed, low=0, high=100):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (random.random(count) * (high - low) + low).astype(dtype)
    return random.integers(low, high, count).astype(dtype)


def unique(coords):
    """Only the first of equal points."""
    seen, keep = set(), []
    for index, point in enumerate(zip(*[c.tolist() for c in coords])):
        if point not in seen:
            seen.add(point)
            keep.append(index)
    return [c[keep] for c in coords]


def main(root):
    fresh(root)
    cases = Cases(root)
    for dtype in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]:
        for order in ["row-major", "col-major", "hilbert"]:
            for duplicates in [False, True]:
                name = f"type-{dtype}-{order}-{duplicates}"
                path = cases.path(name)
                low = -50 if np.dtype(dtype).kind in "if" and dtype != "uint8" else 0
                kind = np.dtype(dtype).type
                dims = [
                    tiledb.Dim(name="x", domain=(kind(low), kind(100)), tile=kind(10), dtype=dtype),
                    tiledb.Dim(name="y", domain=(kind(0), kind(100)), tile=kind(25), dtype=dtype),
                ]
                attrs = [tiledb.Attr(name="a", dtype="float64"), tiledb.Attr(name="s", dtype="ascii", var=True)]
                extra = {} if order == "hilbert" else {"tile_order": "row-major"}
                create(path, dims, attrs, cell_order=order, allows_duplicates=duplicates, capacity=7, **extra)
                for at in [10, 20, 30]:
                    x, y = points(60, dtype, at, low), points(60, dtype, at + 1)
                    if not duplicates:
                        x, y = unique([x, y])
                    else:
                        x[1], y[1] = x[0], y[0]
                    with tiledb.open(path, "w", timestamp=at) as array:
                        array[x, y] = {"a": np.arange(len(x)) + at * 1000.0, "s": np.array([f"s{i}" * (i % 4) for i in range(len(x))], dtype=object)}
                cases.expect_sparse(name)
                cases.expect_sparse(name, at=(0, 20), label="at-20")
                cases.expect_sparse(name, at=(15, 25), label="at-15-25")

    # Boxes.
    for dtype, order in [("int32", "row-major"), ("float64", "col-major"), ("float32", "hilbert"), ("uint64", "row-major")]:
        name = f"box-{dtype}-{order}"
        path = cases.path(name)
        kind = np.dtype(dtype).type
        dims = [
            tiledb.Dim(name="x", domain=(kind(0), kind(100)), tile=kind(10), dtype=dtype),
            tiledb.Dim(name="y", domain=(kind(0), kind(100)), tile=kind(25), dtype=dtype),
        ]
        create(path, dims, [tiledb.Attr(name="a", dtype="float64")], cell_order=order, capacity=11)
        for at in [10, 20]:
            x, y = unique([points(900, dtype, at), points(900, dtype, at + 1)])
            with tiledb.open(path, "w", timestamp=at) as array:
                array[x, y] = np.arange(len(x)) + at * 1000.0
        for number, box in enumerate([(10, 30, 5, 60), (0, 0, 0, 100), (99, 100, 99, 100), (40, 40, 40, 40), (0, 100, 50, 50)]):
            low, high, bottom, top = (kind(v) for v in box)
            with tiledb.open(path) as array:
                got = array.multi_index[low:high, bottom:top]
            nodes = {"/": {"columns": {k: nested(v) for k, v in got.items()},
                           "region": {"x": [box[0], box[1]], "y": [box[2], box[3]]}}}
            cases.expect(name, nodes, label=f"box-{number}")

    # Text dimensions, beside numbers; nullable and variable-length attributes.
    words = ["a", "b", "abc", "zebra", "tile", "z", "abcdefghij", "abcdefghijk", "m"]
    for order in ["row-major", "col-major", "hilbert"]:
        for pipeline in [None, [tiledb.RleFilter()], [tiledb.DictionaryFilter(), tiledb.ZstdFilter(1)]]:
            tag = "plain" if pipeline is None else type(pipeline[0]).__name__
            name = f"text-{order}-{tag}"
            path = cases.path(name)
            dims = [
                tiledb.Dim(name="t", domain=(None, None), tile=None, dtype="ascii", filters=F(pipeline) if pipeline else None),
                tiledb.Dim(name="x", domain=(0, 1000), tile=100, dtype="int32"),
            ]
            attrs = [
                tiledb.Attr(name="a", dtype="int32", nullable=True),
                tiledb.Attr(name="v", dtype=str, var=True, nullable=True),
                tiledb.Attr(name="l", dtype="float32", var=True),
            ]
            create(path, dims, attrs, cell_order=order, capacity=5)
            for at in [10, 20]:
                t = np.array([words[(i * 5 + at) % 9] for i in range(27)], dtype="S")
                x = np.array([(i * 37 + at) % 1000 for i in range(27)], dtype="int32")
                x[:5] = [1, 2, 3, 4, 5]
                t[:5] = [b"a", b"b", b"abc", b"zebra", b"tile"]
                lists = np.empty(27, dtype=object)
                for i in range(27):
                    lists[i] = np.arange(i % 3 + 1, dtype="float32") + at
                with tiledb.open(path, "w", timestamp=at) as array:
                    array[t, x] = {
                        "a": np.array([None if i % 4 == 0 else i + at for i in range(27)], dtype=object),
                        "v": np.array([None if i % 5 == 0 else "ü" * (i % 3) for i in range(27)], dtype=object),
                        "l": lists,
                    }
            cases.expect_sparse(name)
            cases.expect_sparse(name, at=(0, 10), label="at-10")
            # The package's own slicing hides nulls, so take the rows from a whole read.
            with tiledb.open(path) as array:
                got = {k: nested(v) for k, v in array[:].items()}
            keep = [i for i in range(len(got["t"])) if "abc" <= got["t"][i] <= "tile" and 0 <= got["x"][i] <= 500]
            columns = {k: [v[i] for i in keep] for k, v in got.items()}
            nodes = {"/": {"columns": columns, "region": {"t": ["abc", "tile"], "x": [0, 500]}}}
            cases.expect(name, nodes, label="box")

    # Dates.
    name = "dates"
    path = cases.path(name)
    days = (np.datetime64("2000-01-01", "D"), np.datetime64("2030-01-01", "D"))
    dims = [tiledb.Dim(name="day", domain=days, tile=np.timedelta64(100, "D"), dtype="datetime64[D]")]
    create(path, dims, [tiledb.Attr(name="a", dtype="datetime64[ms]")], capacity=4)
    with tiledb.open(path, "w") as array:
        at = np.array(["2001-02-03", "2029-12-31", "2010-01-01", "2000-01-01", "2015-06-07"], dtype="datetime64[D]")
        array[at] = at.astype("datetime64[ms]")
    cases.expect_sparse(name)

    # Deletes, consolidation, vacuum, and time travel through all of it.
    for duplicates in [False, True]:
        for step in ["deletes", "consolidated", "vacuumed", "purged", "commits"]:
            name = f"history-{duplicates}-{step}"
            path = cases.path(name)
            dims = [tiledb.Dim(name="x", domain=(0, 999), tile=50, dtype="int32")]
            attrs = [tiledb.Attr(name="a", dtype="int32"), tiledb.Attr(name="s", dtype="ascii", var=True), tiledb.Attr(name="f", dtype="float32")]
            create(path, dims, attrs, allows_duplicates=duplicates, capacity=6)
            for at in [10, 20, 30, 40]:
                x = np.arange(at, at + 40, 2 if at % 20 else 3, dtype="int32")
                with tiledb.open(path, "w", timestamp=at) as array:
                    array[x] = {"a": x * 10 + at, "s": np.array([f"w{v % 7}" for v in x], dtype=object), "f": (x / 4).astype("float32")}
                if at == 20:
                    with tiledb.open(path, "d", timestamp=25) as array:
                        array.query(cond="a > 250 and a < 420").submit()
                if at == 40:
                    with tiledb.open(path, "d", timestamp=45) as array:
                        array.query(cond="s == 'w3' or f < 5.0").submit()
                    with tiledb.open(path, "d", timestamp=46) as array:
                        array.query(cond="a in [540, 620] or x == 44").submit()
            if step == "purged":
                tiledb.consolidate(path, config=tiledb.Config({"sm.consolidation.purge_deleted_cells": "true"}))
            elif step == "commits":
                tiledb.consolidate(path, config=tiledb.Config({"sm.consolidation.mode": "commits"}))
                tiledb.vacuum(path, config=tiledb.Config({"sm.vacuum.mode": "commits"}))
                tiledb.consolidate(path, config=tiledb.Config({"sm.consolidation.mode": "fragment_meta"}))
            elif step != "deletes":
                tiledb.consolidate(path)
            if step == "vacuumed":
                tiledb.vacuum(path)
            cases.expect_sparse(name)
            for at in [(0, 10), (0, 22), (0, 25), (0, 41), (0, 45), (15, 35), (20, 45), (26, 46)]:
                cases.expect_sparse(name, at=at, label=f"at-{at[0]}-{at[1]}")

    # A comparison with null is false, so a delete on a nullable field also removes rows in which it is null.
    conditions = [
        "a < 10", "a == 7", "a != 7", "a in [7, 8]", "a not in [7, 8]", "s == 'x1'", "s != 'x1'", "s in ['x1']",
        "s not in ['x1']", "s == ''", "a < 10 and s == 'x1'", "a < 10 or s == 'x1'", "f < 5.0", "f != 5.0",
    ]
    for number, condition in enumerate(conditions):
        name = f"delete-null-{number}"
        path = cases.path(name)
        attrs = [
            tiledb.Attr(name="a", dtype="int32", nullable=True), tiledb.Attr(name="f", dtype="float64"),
            tiledb.Attr(name="s", dtype="ascii", var=True, nullable=True),
        ]
        create(path, [tiledb.Dim(name="x", domain=(0, 99), tile=10, dtype="int32")], attrs)
        numbers = pa.array([None if i % 3 == 0 else i for i in range(20)], pa.int32())
        texts = pa.array([None if i % 4 == 0 else "" if i % 5 == 0 else f"x{i % 3}" for i in range(20)])
        floats = np.array([np.nan if i % 6 == 0 else i for i in range(20)])
        with tiledb.open(path, "w", timestamp=10) as array:
            array[np.arange(20, dtype="int32")] = {"a": numbers, "f": floats, "s": texts}
        with tiledb.open(path, "d", timestamp=20) as array:
            array.query(cond=condition).submit()
        cases.expect_sparse(name)
    print(cases.count)


if __name__ == "__main__":
    main(sys.argv[1])
