"""Small arrays written by the real library, with a record of what the library reads from each. Run by hand; the arrays are
committed.

    python make.py

`vN-*` are arrays of old versions, which no current library can write. They come from `legacy.py`.
"""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

import numpy as np
import tiledb

from cases import Cases, context

F = tiledb.FilterList
KEY = "0123456789abcdef0123456789ABCDEF"


def dims(*ranges, dtype="int32"):
    return tiledb.Domain(*[tiledb.Dim(name=f"d{i}", domain=(a, b), tile=t, dtype=dtype) for i, (a, b, t) in enumerate(ranges)])


def dense(cases, name, attrs, values, domain=None, ctx=None, key=None, orders=("row-major", "row-major"), boxes=None):
    path = cases.path(name)
    schema = tiledb.ArraySchema(domain=domain or dims((1, 9, 4), (0, 6, 3)), attrs=attrs, cell_order=orders[0], tile_order=orders[1])
    tiledb.Array.create(path, schema, ctx=ctx)
    for at, box in enumerate(boxes or [None], 1):
        with tiledb.open(path, "w", timestamp=at * 10, ctx=ctx) as array:
            if box is None:
                array[:] = values
            else:
                array[box] = {k: v[: box[0].stop - box[0].start, : box[1].stop - box[1].start] + at for k, v in values.items()}
            if at == 1:
                array.meta["title"] = "golden"
                array.meta["numbers"] = (1, 2, 3)
    cases.expect_dense(name, key=key)
    if boxes:
        cases.expect_dense(name, at=(0, 10), label="at-10")


def footers(cases):
    """Fragments whose footers and commits are also in consolidated files."""
    path = cases.path("dense-footers")
    attrs = [tiledb.Attr(name="a", dtype="int32")]
    tiledb.Array.create(path, tiledb.ArraySchema(domain=dims((0, 9, 4)), attrs=attrs))
    for at in range(1, 4):
        with tiledb.open(path, "w", timestamp=at * 10) as array:
            array[at : at + 4] = np.arange(4, dtype="int32") + 100 * at
    for mode in ["fragment_meta", "commits"]:
        tiledb.consolidate(path, config=tiledb.Config({"sm.consolidation.mode": mode}))
    cases.expect_dense("dense-footers")


def main():
    root = os.path.dirname(os.path.abspath(__file__))
    for entry in os.listdir(root):
        kept = entry[0] == "v" and entry[1].isdigit()
        if os.path.isdir(os.path.join(root, entry)) and not kept:
            shutil.rmtree(os.path.join(root, entry))
    cases = Cases(root)
    footers(cases)
    grid = np.arange(63).reshape(9, 7)
    pipelines = {
        "plain": [], "zstd": [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(3)], "gzip": [tiledb.BitShuffleFilter(), tiledb.GzipFilter(6)],
        "sums": [tiledb.ChecksumMD5Filter(), tiledb.LZ4Filter(), tiledb.ChecksumSHA256Filter()],
        "bwr": [tiledb.BitWidthReductionFilter(), tiledb.Bzip2Filter(1)], "double_delta": [tiledb.DoubleDeltaFilter()],
        "delta": [tiledb.DeltaFilter(), tiledb.ZstdFilter(1)], "rle": [tiledb.RleFilter()], "xor": [tiledb.XORFilter()],
    }
    for key, pipeline in pipelines.items():
        dense(cases, f"dense-{key}", [tiledb.Attr(name="a", dtype="int32", filters=F(pipeline))], {"a": grid.astype("int32")})
    scale = [tiledb.FloatScaleFilter(0.5, 1.0, 2)]
    dense(cases, "dense-scale", [tiledb.Attr(name="a", dtype="float64", filters=F(scale))], {"a": grid * 0.5})
    positive = [tiledb.PositiveDeltaFilter()]
    dense(cases, "dense-positive_delta", [tiledb.Attr(name="a", dtype="int64", filters=F(positive))], {"a": np.arange(20)}, domain=dims((0, 19, 5)))
    boxes = [(slice(1, 7), slice(0, 5)), (slice(4, 10), slice(2, 7)), (slice(5, 6), slice(3, 4))]
    dense(cases, "dense-history", [tiledb.Attr(name="a", dtype="int16"), tiledb.Attr(name="b", dtype="float32")],
          {"a": grid.astype("int16"), "b": grid.astype("float32")}, orders=("col-major", "row-major"), boxes=boxes)
    dense(cases, "dense-encrypted", [tiledb.Attr(name="a", dtype="int32", filters=F([tiledb.ZstdFilter(1)]))], {"a": grid.astype("int32")}, ctx=context(KEY), key=KEY)
    text = np.array([["", "a", "äö", "longer text"][i % 4] for i in range(63)], dtype=object).reshape(9, 7)
    dense(cases, "dense-text", [tiledb.Attr(name="t", dtype=str, var=True)], {"t": text})

    name = "sparse"
    path = cases.path(name)
    domain = tiledb.Domain(
        tiledb.Dim(name="x", domain=(-10.0, 10.0), tile=5.0, dtype="float64"), tiledb.Dim(name="y", domain=(0, 99), tile=10, dtype="int64")
    )
    attrs = [tiledb.Attr(name="a", dtype="int32", nullable=True), tiledb.Attr(name="s", dtype="ascii", var=True, filters=F([tiledb.DictionaryFilter()]))]
    tiledb.Array.create(path, tiledb.ArraySchema(domain=domain, attrs=attrs, sparse=True, capacity=4))
    for at in [10, 20]:
        x = np.linspace(-9, 9, 11)
        y = (np.arange(11) * 7 + at // 20) % 100
        with tiledb.open(path, "w", timestamp=at) as array:
            array[x, y] = {"a": np.array([None if i % 3 == 0 else i + at for i in range(11)], dtype=object),
                           "s": np.array([f"w{i % 3}" for i in range(11)], dtype=object)}
    with tiledb.open(path, "d", timestamp=30) as array:
        array.query(cond="s == 'w1' and y > 20").submit()
    cases.expect_sparse(name)
    cases.expect_sparse(name, at=(0, 20), label="at-20")

    name = "sparse-consolidated"
    path = cases.path(name)
    domain = tiledb.Domain(tiledb.Dim(name="t", domain=(None, None), tile=None, dtype="ascii"))
    tiledb.Array.create(path, tiledb.ArraySchema(domain=domain, attrs=[tiledb.Attr(name="a", dtype="int32")], sparse=True, capacity=3))
    for at in [10, 20, 30]:
        with tiledb.open(path, "w", timestamp=at) as array:
            array[np.array([b"a", b"bb", b"ccc", b"dd" * at, b"z"])] = np.arange(5, dtype="int32") + at
    with tiledb.open(path, "d", timestamp=25) as array:
        array.query(cond="a == 11").submit()
    tiledb.consolidate(path)
    tiledb.vacuum(path)
    cases.expect_sparse(name)
    cases.expect_sparse(name, at=(0, 20), label="at-20")

    name = "sparse-hilbert"
    path = cases.path(name)
    domain = tiledb.Domain(*[tiledb.Dim(name=n, domain=(0, 1000), tile=100, dtype="int32") for n in "xy"])
    tiledb.Array.create(path, tiledb.ArraySchema(domain=domain, attrs=[tiledb.Attr(name="a", dtype="int32")], sparse=True, capacity=5, cell_order="hilbert"))
    for at in [10, 20]:
        x = np.arange(0, 990, 60, dtype="int32")
        with tiledb.open(path, "w", timestamp=at) as array:
            array[x, (x * at) % 1000] = x + at
    cases.expect_sparse(name)

    name = "group"
    path = cases.path(name)
    tiledb.Group.create(path)
    tiledb.from_numpy(path + "/one", np.arange(5))
    with tiledb.Group(path, "w") as group:
        group.add("one", name="first", relative=True)
        group.meta["about"] = "members"
    cases.expect(name, {"/": {"children": ["first"], "attributes": {"about": "members"}}, "/first/a0": {"values": list(range(5))}})
    print(cases.count)


if __name__ == "__main__":
    main()
