"""Dense arrays over types, filters, orders, domains and histories."""

import sys

import numpy as np
import tiledb

from cases import Cases, fresh

F = tiledb.FilterList
NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
ORDERS = [("row-major", "row-major"), ("row-major", "col-major"), ("col-major", "row-major"), ("col-major", "col-major")]


def data(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (random.normal(size=shape) * 100).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "mM":
        return random.integers(0, 20000, shape).astype("int64").astype(dtype)
    info = np.iinfo(dtype)
    low, high = max(info.min, -1000), min(info.max, 1000)
    return random.integers(low, high, shape, endpoint=True).astype(dtype)


def dimensions(shape, tiles, low=0, dtype="int64"):
    return [
        tiledb.Dim(name=f"d{i}", domain=(low, low + n - 1), tile=t, dtype=dtype)
        for i, (n, t) in enumerate(zip(shape, tiles))
    ]


def create(path, dims, attrs, orders=("row-major", "row-major"), **extra):
    schema = tiledb.ArraySchema(
        domain=tiledb.Domain(*dims), attrs=attrs, cell_order=orders[0], tile_order=orders[1], **extra
    )
    tiledb.Array.create(path, schema)


def write(path, values, at=None, where=None):
    with tiledb.open(path, "w", timestamp=at) as array:
        if where is None:
            array[:] = values
        else:
            array[where] = values


def main(root):
    fresh(root)
    cases = Cases(root)
    for dtype in NUMBERS + ["bool", "datetime64[D]", "datetime64[ns]", "timedelta64[s]"]:
        name = f"type-{dtype}"
        path = cases.path(name)
        create(path, dimensions((7, 10), (3, 4)), [tiledb.Attr(name="a", dtype=dtype)])
        write(path, data((7, 10), dtype))
        cases.expect_dense(name)

    filters = {
        "none": [], "gzip": [tiledb.GzipFilter(6)], "zstd": [tiledb.ZstdFilter(3)], "lz4": [tiledb.LZ4Filter()],
        "bzip2": [tiledb.Bzip2Filter(5)], "rle": [tiledb.RleFilter()],
        "byteshuffle": [tiledb.ByteShuffleFilter()], "bitshuffle": [tiledb.BitShuffleFilter()],
        "bwr": [tiledb.BitWidthReductionFilter()], "bwr16": [tiledb.BitWidthReductionFilter(16)],
        "delta": [tiledb.DeltaFilter()], "double_delta": [tiledb.DoubleDeltaFilter()],
        "md5": [tiledb.ChecksumMD5Filter()], "sha256": [tiledb.ChecksumSHA256Filter()],
        "noop": [tiledb.NoOpFilter()], "xor": [tiledb.XORFilter()],
        "byteshuffle-zstd": [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(3)],
        "bitshuffle-lz4": [tiledb.BitShuffleFilter(), tiledb.LZ4Filter()],
        "bwr-byteshuffle-zstd": [tiledb.BitWidthReductionFilter(), tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(3)],
        "byteshuffle-md5-gzip-sha": [
            tiledb.ByteShuffleFilter(), tiledb.ChecksumMD5Filter(), tiledb.GzipFilter(1), tiledb.ChecksumSHA256Filter()
        ],
        "xor-bitshuffle-bzip2": [tiledb.XORFilter(), tiledb.BitShuffleFilter(), tiledb.Bzip2Filter(1)],
        "gzip-zstd": [tiledb.GzipFilter(1), tiledb.ZstdFilter(1)],
        "double_delta-zstd": [tiledb.DoubleDeltaFilter(), tiledb.ZstdFilter(1)],
        "md5-bwr-zstd": [tiledb.ChecksumMD5Filter(), tiledb.BitWidthReductionFilter(), tiledb.ZstdFilter(1)],
    }
    for key, pipeline in filters.items():
        for dtype in ["uint8", "int16", "int32", "int64", "uint64", "float32", "float64"]:
            floating = dtype.startswith("f")
            if floating and any(word in key for word in ["bwr", "delta"]):
                continue
            name = f"filter-{key}-{dtype}"
            path = cases.path(name)
            attrs = [tiledb.Attr(name="a", dtype=dtype, filters=F(pipeline))]
            create(path, dimensions((150, 170), (100, 90)), attrs)
            values = data((150, 170), dtype)
            values[:50] = values[:50, :1]
            try:
                write(path, values)
            except tiledb.TileDBError as error:
                print(name, "not written:", error, file=sys.stderr)
                continue
            cases.expect_dense(name)
    for dtype in ["int32", "uint64", "int64"]:
        name = f"filter-positive_delta-{dtype}"
        path = cases.path(name)
        pipeline = F([tiledb.PositiveDeltaFilter(64), tiledb.ZstdFilter(1)])
        create(path, dimensions((4000,), (1000,)), [tiledb.Attr(name="a", dtype=dtype, filters=pipeline)])
        write(path, np.sort(data((4000,), dtype)))
        cases.expect_dense(name)
    for dtype, width in [("float32", 1), ("float32", 2), ("float64", 4), ("float64", 8), ("float64", 2)]:
        name = f"filter-scale-{dtype}-{width}"
        path = cases.path(name)
        pipeline = F([tiledb.FloatScaleFilter(0.5, 3.25, width), tiledb.ByteShuffleFilter(), tiledb.GzipFilter(1)])
        create(path, dimensions((4000,), (1000,)), [tiledb.Attr(name="a", dtype=dtype, filters=pipeline)])
        write(path, (np.random.default_rng(1).random(4000) * 50).astype(dtype))
        cases.expect_dense(name)

    for orders in ORDERS:
        for low in [0, 1, -5]:
            name = f"order-{orders[0]}-{orders[1]}-{low}"
            path = cases.path(name)
            create(path, dimensions((7, 10, 5), (3, 4, 2), low), [tiledb.Attr(name="a", dtype="int32")], orders)
            write(path, data((7, 10, 5), "int32"))
            cases.expect_dense(name)
            if low < 0:
                continue  # a negative slice counts from the end in the Python package
            name = f"history-{orders[0]}-{orders[1]}-{low}"
            path = cases.path(name)
            attrs = [tiledb.Attr(name="a", dtype="int32", filters=F([tiledb.ZstdFilter(1)])), tiledb.Attr(name="b", dtype="float64")]
            create(path, dimensions((12, 10), (5, 4), low), attrs, orders)
            random = np.random.default_rng(3)
            for at in range(1, 9):
                r0, c0 = random.integers(0, 9), random.integers(0, 7)
                r1, c1 = random.integers(r0 + 1, 13), random.integers(c0 + 1, 11)
                shape = (r1 - r0, c1 - c0)
                box = (slice(low + r0, low + r1), slice(low + c0, low + c1))
                with tiledb.open(path, "w", timestamp=at * 10) as array:
                    array[box] = {"a": data(shape, "int32", at), "b": data(shape, "float64", at)}
            cases.expect_dense(name)
            for at in [(0, 10), (0, 35), (25, 65), (40, 40), (0, 5)]:
                cases.expect_dense(name, at=at, label=f"at-{at[0]}-{at[1]}")

    for dtype in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"]:
        name = f"dimension-{dtype}"
        path = cases.path(name)
        create(path, dimensions((20, 30), (7, 8), 3, dtype), [tiledb.Attr(name="a", dtype="int32")])
        write(path, data((20, 30), "int32"))
        cases.expect_dense(name)
    name = "dimension-date"
    path = cases.path(name)
    days = (np.datetime64("2020-01-01", "D"), np.datetime64("2020-01-20", "D"))
    dims = [tiledb.Dim(name="day", domain=days, tile=np.timedelta64(6, "D"), dtype="datetime64[D]")]
    create(path, dims, [tiledb.Attr(name="a", dtype="int32")])
    write(path, data((20,), "int32"))
    cases.expect_dense(name)

    # Cells with several values, complex numbers, text.
    name = "cells-wide"
    path = cases.path(name)
    attrs = [
        tiledb.Attr(name="three", dtype=np.dtype([("", "int32")] * 3)),
        tiledb.Attr(name="complex", dtype="complex64"),
        tiledb.Attr(name="complex128", dtype="complex128"),
        tiledb.Attr(name="s5", dtype="S5"),
    ]
    create(path, dimensions((9,), (4,)), attrs)
    three = np.array([(i, i * 2, -i) for i in range(9)], dtype=[("", "int32")] * 3)
    write(path, {
        "three": three,
        "complex": (np.arange(9) + 1j * np.arange(9)[::-1]).astype("complex64"),
        "complex128": np.arange(9) - 2.5j,
        "s5": np.array([b"abcde"[: i % 5 + 1].ljust(5, b"-") for i in range(9)], dtype="S5"),
    })
    cases.expect_dense(name)

    # Attributes without a name, alone and beside named ones.
    name = "anonymous"
    path = cases.path(name)
    tiledb.from_numpy(path, data((6, 5), "float64"))
    cases.expect_dense(name)

    # Nullable, variable-length, several fragments.
    texts = ["", "a", "äöü", "x" * 70, "tile", "日本"]
    for key, pipeline, var in [
        ("plain", None, "ascii"), ("utf8", [tiledb.ZstdFilter(1)], str), ("rle", [tiledb.RleFilter()], "ascii"),
        ("dictionary", [tiledb.DictionaryFilter()], "ascii"), ("rle-zstd", [tiledb.RleFilter(), tiledb.ZstdFilter(2)], "ascii"),
        ("dictionary-utf8", [tiledb.DictionaryFilter(), tiledb.ChecksumMD5Filter()], str), ("bytes", [tiledb.GzipFilter(1)], np.bytes_),
    ]:
        name = f"text-{key}"
        path = cases.path(name)
        attrs = [tiledb.Attr(name="t", dtype=var, var=True, filters=F(pipeline) if pipeline else None)]
        create(path, dimensions((11, 6), (4, 4)), attrs)
        pick = [t for t in texts if var is str or t.isascii()]
        grid = np.array([pick[(i * 7) % len(pick)] for i in range(66)], dtype=object).reshape(11, 6)
        if var is np.bytes_:
            grid = np.array([t.encode() for t in grid.ravel()], dtype=object).reshape(11, 6)
        with tiledb.open(path, "w", timestamp=10) as array:
            array[:] = grid
        with tiledb.open(path, "w", timestamp=20) as array:
            array[2:5, 1:4] = grid[5:8, 2:5]
        cases.expect_dense(name)
        cases.expect_dense(name, at=(0, 10), label="at-10")
    name = "lists"
    path = cases.path(name)
    create(path, dimensions((7,), (3,)), [tiledb.Attr(name="l", dtype="int64", var=True)])
    lists = np.empty(7, dtype=object)
    for i in range(7):
        lists[i] = np.arange(i % 3 + 1, dtype="int64") * i
    write(path, lists)
    cases.expect_dense(name)

    print(cases.count)


if __name__ == "__main__":
    main(sys.argv[1])
