"""Stores that zarr-python writes, with the values it reads back, for the tests in Rust.

`write(folder, small)` makes one store a case and `cases.json`: a list of {store, node, dtype, shape, values}, where `values`
names a file of the elements (C order, little-endian) or is the list of texts or hex byte strings itself.
"""

import json
import pathlib
import warnings

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec
from zarr.dtype import VariableLengthBytes, VariableLengthUTF8

assert zarr.__version__ == "3.1.6", zarr.__version__
assert numcodecs.__version__ == "0.16.6", numcodecs.__version__
warnings.simplefilter("ignore")

DTYPES = [
    "?", "i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", "<u8", "<f2", "<f4", ">f8", "<c8", ">c16",
    "<M8[ns]", ">M8[D]", "<M8[10us]", "<m8[s]", "S5", "<U3", ">U3", "V4",
    [("a", "<i4"), ("b", "<f8")], [("a", "<i2"), ("n", [("x", "<f4"), ("s", "S3")])],
]


def numbers(shape, dtype, seed=0):
    """Varied values that use every bit of the type."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype("?").reshape(shape)
    if dtype.kind in "fc":
        return (rng.standard_normal(count) * 100).round(2).astype(dtype).reshape(shape)
    if dtype.kind in "Mm":
        return rng.integers(-10**6, 10**6, count).astype("<i8").view(dtype.newbyteorder("<")).astype(dtype).reshape(shape)
    if dtype.kind in "SU":
        texts = [("é" if dtype.kind == "U" else "e") * (i % 3) + "xyzw"[i % 4] for i in range(count)]
        return np.array(texts).astype(dtype).reshape(shape)
    if dtype.kind == "V":
        return rng.integers(0, 100, count * dtype.itemsize, dtype="u1").view(dtype).reshape(shape)
    return np.cumsum(rng.integers(-3, 5, count)).astype(dtype).reshape(shape)


class Cases:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cases = []

    def add(self, name, array, node=""):
        """Records what zarr-python reads from the array `name`."""
        values = array[...] if array.shape else np.asarray(array[()])
        case = {"store": name, "node": "/" + node, "shape": list(array.shape)}
        if array.attrs.asdict():
            case["attributes"] = array.attrs.asdict()
        if array.metadata.zarr_format == 3 and array.metadata.dimension_names:
            case["dimensions"] = list(array.metadata.dimension_names)
        kind = np.asarray(values).dtype.kind
        if kind in "TO":
            flat = np.asarray(values, dtype=object).reshape(-1)
            case["texts"] = [v.hex() if isinstance(v, bytes) else v for v in flat]
            case["hex"] = bool(len(flat)) and isinstance(flat[0], bytes)
        else:
            values = np.ascontiguousarray(values)
            little = values.astype(values.dtype.newbyteorder("<"))
            if little.dtype.kind in "Mm":
                unit, factor = np.datetime_data(little.dtype)
                little = little.astype(f"<{little.dtype.kind}8[{unit}]")
            case["values"] = f"{name}{'.' + node.replace('/', '.') if node else ''}.bin"
            (self.folder / case["values"]).write_bytes(little.tobytes())
        self.cases.append(case)

    def array(self, name, data, chunks, format=3, partial=False, **more):
        """Writes an array at the root of its own store."""
        store = str(self.folder / name)
        array = zarr.create_array(store, shape=data.shape, chunks=chunks, dtype=more.pop("dtype", data.dtype), zarr_format=format, **more)
        if partial:
            where = tuple(slice(0, max(1, n // 2)) for n in data.shape)
            array[where] = data[where]
        elif data.shape:
            array[...] = data
        else:
            array[()] = data[()]
        try:
            array = zarr.open_array(store, mode="r")
        except ValueError as problem:  # structs inside structs in v2, which zarr writes but cannot open
            print("zarr cannot open", name, repr(problem)[:200])
        self.add(name, array)

    def finish(self):
        (self.folder / "cases.json").write_text(json.dumps(self.cases, indent=1))


def text_array(cases, name, format, **more):
    dtype = more.pop("dtype")
    shape = (5, 4)
    if isinstance(dtype, VariableLengthUTF8):
        values = np.array([("é" * (i % 4)) + str(i) for i in range(20)], dtype=object).reshape(shape)
    else:
        values = np.array([bytes(range(i)) for i in range(20)], dtype=object).reshape(shape)
    store = str(cases.folder / name)
    array = zarr.create_array(store, shape=shape, chunks=(2, 3), dtype=dtype, zarr_format=format, **more)
    array[:4] = values[:4]
    cases.add(name, zarr.open_array(store, mode="r"))


def dtypes(cases, some=None):
    for format in (3, 2):
        for number, dtype in enumerate(DTYPES):
            if some is not None and number not in some:
                continue
            data = numbers((7, 5), dtype, number)
            cases.array(f"dtype{number}_v{format}", data, (3, 2), format, partial=True)
        for what, dtype in (("text", VariableLengthUTF8()), ("bytes", VariableLengthBytes())):
            text_array(cases, f"{what}_v{format}", format, dtype=dtype, fill_value="" if what == "text" else b"")


def codecs(cases):
    data = numbers((9, 8, 7), "<i4", 3)
    byte_codecs = {
        "raw": [], "gzip": [GzipCodec(level=3)], "zstd": [ZstdCodec(level=3)], "zstdsum": [ZstdCodec(level=1, checksum=True)],
        "crc32c": [Crc32cCodec()], "gzipcrc": [GzipCodec(), Crc32cCodec()], "crczstd": [Crc32cCodec(), ZstdCodec()],
        "twice": [ZstdCodec(), GzipCodec()],
    }
    for cname in ("lz4", "lz4hc", "zstd", "zlib", "blosclz"):
        for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
            byte_codecs[f"blosc_{cname}_{shuffle}"] = [BloscCodec(cname=cname, shuffle=shuffle, clevel=5)]
    for name, compressors in byte_codecs.items():
        cases.array(f"codec_{name}", data, (4, 4, 4), compressors=compressors, partial=name == "raw")
    big = numbers((300, 400), "<f4", 4)
    cases.array("codec_blosc_blocks", big, (300, 400), compressors=[BloscCodec(cname="zstd", shuffle="bitshuffle", blocksize=4096)])
    for order in ((2, 1, 0), (1, 0, 2), (2, 0, 1), (0, 1, 2)):
        cases.array(f"transpose_{''.join(map(str, order))}", data, (4, 3, 2), filters=[TransposeCodec(order=order)], compressors=[])
        cases.array(f"transposez_{''.join(map(str, order))}", data, (4, 3, 2), filters=[TransposeCodec(order=order), TransposeCodec(order=(1, 2, 0))])
    cases.array("big_endian", data, (4, 3, 2), serializer=BytesCodec(endian="big"))
    cases.array("big_endian_raw", data, (4, 3, 2), serializer=BytesCodec(endian="big"), compressors=[])


def shards(cases):
    data = numbers((20, 18), "<i4", 5)
    for name, more in {
        "plain": dict(compressors=[]), "zstd": dict(), "transposed": dict(filters=[TransposeCodec(order=(1, 0))], compressors=[]),
    }.items():
        for partial in (False, True):
            cases.array(f"shard_{name}{'_part' if partial else ''}", data, (3, 2), shards=(9, 8), partial=partial, fill_value=7, **more)
    for location in ("start", "end"):
        for index in ([BytesCodec(), Crc32cCodec()], [BytesCodec(endian="big")]):
            serializer = ShardingCodec(chunk_shape=(3, 2), codecs=[BytesCodec(), GzipCodec()], index_codecs=index, index_location=location)
            cases.array(f"shard_{location}_{len(index)}", data, (9, 8), serializer=serializer, compressors=[])
    inner = ShardingCodec(chunk_shape=(3, 2), codecs=[BytesCodec(), ZstdCodec()])
    nested = ShardingCodec(chunk_shape=(6, 4), codecs=[inner])
    cases.array("shard_nested", data, (12, 8), serializer=nested, compressors=[], partial=True, fill_value=-1)
    deep = ShardingCodec(chunk_shape=(6, 6), codecs=[TransposeCodec(order=(1, 0)), ShardingCodec(chunk_shape=(2, 3), codecs=[TransposeCodec(order=(1, 0)), BytesCodec()])])
    cases.array("shard_nested_transposed", data, (12, 6), serializer=deep, compressors=[])
    outer = ShardingCodec(chunk_shape=(2, 3), codecs=[TransposeCodec(order=(1, 0)), BytesCodec(), ZstdCodec()])
    cases.array("shard_in_transpose", data, (12, 6), filters=[TransposeCodec(order=(1, 0))], serializer=outer, compressors=[])
    cases.array("shard_compressed", data, (9, 8), serializer=inner.__class__(chunk_shape=(3, 2), codecs=[BytesCodec()]), compressors=[GzipCodec()])
    text_array(cases, "shard_text", 3, dtype=VariableLengthUTF8(), shards=(4, 6))


def numcodecs_v2(cases):
    n = numcodecs
    i4, f8, u2 = numbers((30, 4), "<i4", 6), numbers((30, 4), "<f8", 7), numbers((30, 4), ">u2", 8)
    for name, data, filters, compressor in [
        ("raw", i4, None, None), ("zlib", i4, None, n.Zlib(5)), ("gzip", i4, None, n.GZip(5)), ("bz2", i4, None, n.BZ2(5)),
        ("lz4", i4, None, n.LZ4()), ("zstd", i4, None, n.Zstd(3)), ("zstdsum", i4, None, n.Zstd(3, checksum=True)),
        ("blosc", i4, None, n.Blosc(cname="lz4", shuffle=n.Blosc.SHUFFLE)), ("bloscauto", i4, None, n.Blosc(cname="zstd", shuffle=-1)),
        ("shuffle", i4, [n.Shuffle(4)], n.Zlib()), ("delta", i4, [n.Delta("<i4")], n.Zlib()), ("deltanarrow", i4, [n.Delta("<i4", astype="<i2")], None),
        ("deltafloat", f8, [n.Delta("<f8", astype="<f4")], n.Zstd()), ("deltabig", u2, [n.Delta(">u2")], n.LZ4()),
        ("scale", f8, [n.FixedScaleOffset(offset=-500, scale=100, dtype="<f8", astype="<i4")], n.Zlib()),
        ("scalefloat", f8, [n.FixedScaleOffset(offset=3.5, scale=7, dtype="<f8", astype="<f4")], n.Zlib()),
        ("quantize", f8, [n.Quantize(digits=1, dtype="<f8", astype="<f4")], n.Zlib()), ("bitround", f8, [n.BitRound(8)], n.Zlib()),
        ("astype", i4, [n.AsType(encode_dtype="<i8", decode_dtype="<i4")], n.Zlib()),
        ("packbits", numbers((30, 5), "?", 9), [n.PackBits()], n.Zlib()),
        ("crc32", i4, [n.CRC32()], None), ("crc32end", i4, [n.CRC32(location="end")], n.Zlib()), ("crc32c", i4, None, n.CRC32C()), ("adler32", i4, [n.Adler32()], n.Zlib()),
        ("fletcher32", i4, [n.Fletcher32()], n.Zlib()), ("lookup3", i4, [n.JenkinsLookup3()], n.Zlib()), ("chain", i4, [n.Delta("<i4"), n.Shuffle(4)], n.Blosc()),
    ]:
        for order in "CF":
            cases.array(f"v2_{name}_{order}", data, (7, 3), 2, filters=filters, compressors=compressor, order=order)
    cases.array("v2_slash", i4, (7, 3), 2, chunk_key_encoding={"name": "v2", "separator": "/"})


def numcodecs_v3(cases):
    from zarr.codecs import numcodecs as z
    i4, f8 = numbers((30, 4), "<i4", 6), numbers((30, 4), "<f8", 7)
    for name, data, filters, compressors in [
        ("zlib", i4, [], [z.Zlib(level=5)]), ("bz2", i4, [], [z.BZ2(level=5)]), ("lz4", i4, [], [z.LZ4()]), ("shuffle", i4, [], [z.Shuffle(elementsize=4), z.Zlib()]),
        ("delta", i4, [z.Delta(dtype="<i4")], "auto"), ("scale", f8, [z.FixedScaleOffset(offset=-500, scale=100, dtype="<f8", astype="<i4")], "auto"),
        ("quantize", f8, [z.Quantize(digits=1, dtype="<f8")], "auto"), ("bitround", f8, [z.BitRound(keepbits=8)], "auto"),
        ("packbits", numbers((30, 5), "?", 9), [z.PackBits()], "auto"), ("adler32", i4, [], [z.Adler32()]), ("fletcher32", i4, [], [z.Fletcher32()]),
        ("crc32", i4, [], [z.CRC32()]), ("lookup3", i4, [], [z.JenkinsLookup3()]), ("blosc", i4, [], [z.Blosc()]), ("gzip", i4, [], [z.GZip()]), ("zstd", i4, [], [z.Zstd()]),
        ("transposedelta", i4, [TransposeCodec(order=(1, 0)), z.Delta(dtype="<i4")], "auto"),
    ]:
        try:
            cases.array(f"v3_{name}", data, (7, 3), filters=filters, compressors=compressors)
        except Exception as problem:  # some of numcodecs' wrappers fail in zarr itself
            print("zarr cannot write", name, repr(problem)[:200])


def odd_shapes(cases):
    for format in (3, 2):
        cases.array(f"scalar_v{format}", np.array(3.25), (), format)
        cases.array(f"empty_v{format}", np.zeros((0, 4), "<i2"), (2, 2), format)
        cases.array(f"one_v{format}", numbers((1,), "<i2"), (5,), format)
        cases.array(f"many_v{format}", numbers((2, 3, 2, 3, 2, 3), "<i2"), (1, 2, 1, 2, 1, 2), format)
    cases.array("dots", numbers((5, 5), "<i2"), (2, 2), chunk_key_encoding={"name": "default", "separator": "."})
    cases.array("v2keys", numbers((5, 5), "<i2"), (2, 2), chunk_key_encoding={"name": "v2", "separator": "."})


def fills(cases):
    for number, (dtype, fill) in enumerate([
        ("<f4", np.nan), ("<f8", np.inf), ("<f2", -np.inf), ("<i8", -2**63), ("<u8", 2**64 - 1), ("?", True), ("<c8", complex(1, np.nan)),
        ("<M8[ns]", np.datetime64("2020-01-01", "ns")), ("<M8[10us]", np.datetime64(7, "10us")), ("S5", b"ab"), ("<U3", "é"), ("V4", np.void(b"abcd")),
        ([("a", "<i4"), ("b", "<f8")], np.array((1, 2.5), dtype=[("a", "<i4"), ("b", "<f8")])[()]),
    ]):
        for format in (3, 2):
            cases.array(f"fill{number}_v{format}", numbers((6, 6), dtype), (2, 2), format, partial=True, fill_value=fill)
    store = str(cases.folder / "fill_text")
    array = zarr.create_array(store, shape=(3,), chunks=(2,), dtype=VariableLengthUTF8(), fill_value="none")
    array[0] = "x"
    cases.add("fill_text", array)


def trees(cases):
    for format in (3, 2):
        for consolidated in (False, True):
            name = f"tree_v{format}{'_consolidated' if consolidated else ''}"
            root = zarr.create_group(str(cases.folder / name), zarr_format=format, attributes={"title": "é", "n": [1, 2.5, None]})
            sub = root.create_group("sub", attributes={"k": {"deep": True}})
            names = dict(dimension_names=("y", "x")) if format == 3 else dict(attributes={"_ARRAY_DIMENSIONS": ["y", "x"], "bad": float("nan")})
            temperature = root.create_array("t", shape=(4, 6), chunks=(2, 3), dtype="<f4", **names)
            temperature[...] = numbers((4, 6), "<f4")
            x = root.create_array("x", shape=(6,), chunks=(6,), dtype="<f8", **(dict(dimension_names=("x",)) if format == 3 else {}))
            x[...] = np.arange(6) / 2
            below = sub.create_group("below")
            array = below.create_array("a", shape=(3,), chunks=(2,), dtype="<i2", attributes={"units": "K"})
            array[...] = [1, 2, 3]
            if consolidated:
                zarr.consolidate_metadata(str(cases.folder / name))
            for node, array in (("x", x), ("sub/below/a", array)) + ((("t", temperature),) if format == 3 else ()):
                cases.add(name, array, node)


def golden(cases):
    """A small selection of everything."""
    dtypes(cases, some={3, 16, 20, 22})
    data = numbers((9, 8), "<i4", 3)
    for name, compressors in {
        "gzip": [GzipCodec(level=3)], "zstdcrc": [ZstdCodec(level=3), Crc32cCodec()], "blosc": [BloscCodec(cname="lz4", shuffle="bitshuffle")],
    }.items():
        cases.array(f"codec_{name}", data, (9, 8), compressors=compressors)
    cases.array("transpose", data, (5, 4), filters=[TransposeCodec(order=(1, 0))], compressors=[])
    cases.array("shard", data, (3, 2), shards=(9, 4), partial=True, fill_value=7)
    nested = ShardingCodec(chunk_shape=(6, 4), codecs=[ShardingCodec(chunk_shape=(3, 2), codecs=[BytesCodec(), ZstdCodec()])])
    cases.array("shard_nested", data, (12, 8), serializer=nested, compressors=[], partial=True, fill_value=-1)
    n = numcodecs
    for name, filters, compressor in [("delta", [n.Delta("<i4", astype="<i2")], n.Zlib()), ("fletcher32", [n.Fletcher32(), n.Shuffle(4)], n.LZ4()), ("bz2", None, n.BZ2())]:
        cases.array(f"v2_{name}", data, (9, 4), 2, filters=filters, compressors=compressor, order="F")


def write(folder, small):
    cases = Cases(folder)
    if small:
        golden(cases)
    else:
        dtypes(cases)
        codecs(cases)
        numcodecs_v2(cases)
        numcodecs_v3(cases)
        fills(cases)
        shards(cases)
        odd_shapes(cases)
    trees(cases)
    cases.finish()


if __name__ == "__main__":
    import sys
    write(sys.argv[1], small=False)
