"""Arrays of old format versions, `vN-*` here.

    legacy.py write LIBTILEDB OUT      writes them all with an old library
    legacy.py expect GOLDEN            records what the pinned library reads from the committed ones

Old versions of the library are still available as wheels, but only for obsolete interpreters. The shared library inside a wheel
does not depend on the interpreter, so it is called directly: tiledb 0.4.4 contains its version 1.6 (format 3), 0.5.9 1.7 (4), 0.6.6 2.0 (5), 0.7.7 2.1 (6),
0.8.11 2.2 (8), 0.9.5 2.3 (9), 0.13.3 2.7 (11).
"""

import ctypes
import os
import sys

import numpy as np

ROW, COL, GLOBAL, UNORDERED = 0, 1, 2, 3
INT32, INT64, FLOAT32, FLOAT64, CHAR, INT8, UINT8, UINT64, ASCII = 0, 1, 2, 3, 4, 5, 6, 10, 11
GZIP, ZSTD, LZ4, RLE, BZIP2, DOUBLE_DELTA, BWR, BITSHUFFLE, BYTESHUFFLE, POSITIVE = range(1, 11)
MD5, SHA = 12, 13
VAR = 0xFFFFFFFF


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.version = self._version()
        self.ctx = self.new("tiledb_ctx_alloc", None, plain=True)

    def _version(self):
        numbers = [ctypes.c_int32() for _ in range(3)]
        self.lib.tiledb_version(*[ctypes.byref(number) for number in numbers])
        return tuple(number.value for number in numbers)

    def call(self, name, *arguments):
        code = getattr(self.lib, name)(self.ctx, *arguments)
        if code != 0:
            error, text = ctypes.c_void_p(), ctypes.c_char_p()
            self.lib.tiledb_ctx_get_last_error(self.ctx, ctypes.byref(error))
            self.lib.tiledb_error_message(error, ctypes.byref(text))
            raise RuntimeError(f"{name}: {text.value}")

    def new(self, name, *arguments, plain=False):
        made = ctypes.c_void_p()
        if plain:
            assert getattr(self.lib, name)(*arguments, ctypes.byref(made)) == 0, name
        else:
            self.call(name, *arguments, ctypes.byref(made))
        return made

    def filters(self, kinds):
        made = self.new("tiledb_filter_list_alloc")
        for kind in kinds:
            self.call("tiledb_filter_list_add_filter", made, self.new("tiledb_filter_alloc", ctypes.c_int(kind)))
        return made

    def create(self, path, kind, dims, attrs, *, cell=ROW, tile=ROW, coords=(ZSTD,), capacity=3, dups=False):
        schema = self.new("tiledb_array_schema_alloc", ctypes.c_int(kind))
        domain = self.new("tiledb_domain_alloc")
        for name, datatype, bounds, extent in dims:
            dim = self.new("tiledb_dimension_alloc", name.encode(), ctypes.c_int(datatype), pointer(bounds), pointer(extent))
            self.call("tiledb_domain_add_dimension", domain, dim)
        self.call("tiledb_array_schema_set_domain", schema, domain)
        for name, datatype, number, kinds, nullable in attrs:
            attr = self.new("tiledb_attribute_alloc", name.encode(), ctypes.c_int(datatype))
            self.call("tiledb_attribute_set_cell_val_num", attr, ctypes.c_uint32(number))
            self.call("tiledb_attribute_set_filter_list", attr, self.filters(kinds))
            if nullable:
                self.call("tiledb_attribute_set_nullable", attr, ctypes.c_uint8(1))
            self.call("tiledb_array_schema_add_attribute", schema, attr)
        self.call("tiledb_array_schema_set_cell_order", schema, ctypes.c_int(cell))
        self.call("tiledb_array_schema_set_tile_order", schema, ctypes.c_int(tile))
        self.call("tiledb_array_schema_set_capacity", schema, ctypes.c_uint64(capacity))
        if kind == 1:
            self.call("tiledb_array_schema_set_coords_filter_list", schema, self.filters(coords))
        if dups:
            self.call("tiledb_array_schema_set_allows_dups", schema, ctypes.c_int(1))
        self.call("tiledb_array_create", path.encode(), schema)

    def write(self, path, layout, buffers, subarray=None):
        array = self.new("tiledb_array_alloc", path.encode())
        self.call("tiledb_array_open", array, ctypes.c_int(1))
        query = self.new("tiledb_query_alloc", array, ctypes.c_int(1))
        self.call("tiledb_query_set_layout", query, ctypes.c_int(layout))
        if subarray is not None:
            self.call("tiledb_query_set_subarray", query, pointer(subarray))
        held = []
        for name, *parts in buffers:
            arguments = [name.encode()]
            for part in parts:
                size = ctypes.c_uint64(part.nbytes)
                held.append((part, size))
                arguments += [pointer(part), ctypes.byref(size)]
            kind = ""
            if len(parts) == 2:
                kind = "_nullable" if parts[1].dtype == np.uint8 and parts[0].dtype != np.uint64 else "_var"
            if len(parts) == 3:
                kind = "_var_nullable"
            self.call("tiledb_query_set_buffer" + kind, query, *arguments)
        self.call("tiledb_query_submit", query)
        self.call("tiledb_query_finalize", query)
        self.call("tiledb_array_close", array)


def pointer(array):
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def strings(texts):
    ends = np.cumsum([len(text) for text in texts])
    return np.array([0, *ends[:-1]], np.uint64), np.frombuffer("".join(texts).encode(), np.uint8).copy()


def write(library, out):
    lib = Library(library)
    print(lib.version)
    os.makedirs(out)
    two = lambda low=1, high=8: [
        ("rows", INT32, np.array([low, high], np.int32), np.array([4], np.int32)),
        ("cols", INT32, np.array([low, high], np.int32), np.array([3], np.int32)),
    ]

    def dense(name, cell, tile, kinds):
        path = f"{out}/{name}"
        lib.create(path, 0, two(-2, 5), [("a", INT32, 1, kinds, False), ("b", FLOAT64, 1, [], False)], cell=cell, tile=tile)
        cells = np.arange(64, dtype=np.int32) * 7 - 50
        lib.write(path, ROW, [("a", cells), ("b", cells / 4)], np.array([-2, 5, -2, 5], np.int32))
        part = np.arange(6, dtype=np.int32) + 1000
        lib.write(path, ROW, [("a", part), ("b", part / 8)], np.array([0, 2, 1, 2], np.int32))

    dense("dense-row", ROW, ROW, [BYTESHUFFLE, ZSTD])
    dense("dense-col", COL, ROW, [BITSHUFFLE, LZ4])
    dense("dense-delta", ROW, COL, [DOUBLE_DELTA, GZIP])
    dense("dense-bwr", ROW, ROW, [BWR, BZIP2])
    if lib.version >= (1, 7):
        dense("dense-md5", ROW, ROW, [ZSTD, MD5])

    path = f"{out}/dense-text"
    axis = [("d", INT64, np.array([0, 6], np.int64), np.array([4], np.int64))]
    lib.create(path, 0, axis, [("s", CHAR, VAR, [GZIP], False), ("f", INT32, 3, [RLE], False)])
    triples = np.repeat(np.arange(7, dtype=np.int32), 3)
    texts = ["a", "bb", "", "dddd", "e", "ff", "ggg"]
    if lib.version < (2, 0):
        texts[2] = "c"
    lib.write(path, ROW, [("s", *strings(texts)), ("f", triples)], np.array([0, 6], np.int64))

    rows, cols = np.array([1, 8, 3, 4, 4, 7, 2], np.int32), np.array([2, 8, 3, 1, 6, 5, 7], np.int32)
    values = np.arange(7, dtype=np.float32) * 1.5

    def sparse(name, cell, coords, dups=False):
        path = f"{out}/{name}"
        attrs = [("v", FLOAT32, 1, [ZSTD], False), ("s", CHAR, VAR, [], False)]
        lib.create(path, 1, two(), attrs, cell=cell, coords=coords, dups=dups)
        for shift, count in ((0, 7), (1, 4)):
            r, c = rows[:count], np.minimum(cols[:count] + shift * (np.arange(count) % 2), 8).astype(np.int32)
            where = [("rows", r.copy()), ("cols", c.copy())]
            if lib.version < (2, 0):
                where = [("__coords", np.stack([r, c], 1).ravel().copy())]
            texts = [chr(97 + shift * 9 + i) * (i + 1) for i in range(count)]
            lib.write(path, UNORDERED, [*where, ("v", values[:count] + 100 * shift), ("s", *strings(texts))])

    sparse("sparse-row", ROW, [ZSTD])
    sparse("sparse-col", COL, [DOUBLE_DELTA])
    sparse("sparse-raw", ROW, [])
    sparse("sparse-chain", ROW, [BYTESHUFFLE, GZIP])
    if lib.version >= (2, 0):
        sparse("sparse-dups", ROW, [ZSTD], dups=True)
        path = f"{out}/sparse-string"
        lib.create(path, 1, [("name", ASCII, None, None)], [("v", INT64, 1, [], False)])
        names = ["delta", "alpha", "b", "charlie", "e"]
        lib.write(path, UNORDERED, [("name", *strings(names)), ("v", np.arange(5, dtype=np.int64))])
        path = f"{out}/sparse-float"
        box = np.array([-10, 10], np.float64)
        dims = [("x", FLOAT64, box, np.array([5.0])), ("t", INT64, np.array([0, 99]), np.array([10]))]
        odd = "odd:name/<>" if lib.version >= (2, 2) else "odd:name"
        lib.create(path, 1, dims, [(odd, INT32, 1, [], False)])
        x, t = np.array([-9.5, 3.25, 0.5, 3.25]), np.array([3, 50, 50, 99])
        lib.write(path, UNORDERED, [("x", x), ("t", t), (odd, np.arange(4, dtype=np.int32))])
    if lib.version >= (2, 2):
        path = f"{out}/dense-null"
        lib.create(path, 0, axis, [("n", INT32, 1, [ZSTD], True), ("w", CHAR, VAR, [], True)])
        flags = np.array([1, 0, 1, 1, 0, 0, 1], np.uint8)
        words = strings(["a", "b", "cc", "d", "e", "f", "gg"])
        cells = np.arange(7, dtype=np.int32)
        lib.write(path, ROW, [("n", cells, flags), ("w", *words, flags[::-1].copy())], np.array([0, 6], np.int64))


def expect(golden):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
    from cases import Cases

    cases = Cases(golden)
    for name in sorted(os.listdir(golden)):
        if name[0] == "v" and name[1].isdigit():
            (cases.expect_sparse if "sparse" in name else cases.expect_dense)(name)


if __name__ == "__main__":
    {"write": write, "expect": expect}[sys.argv[1]](*sys.argv[2:])
