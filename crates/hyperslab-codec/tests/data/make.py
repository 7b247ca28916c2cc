"""Creates the reference data beside this file: chunks written by the formats' own implementations.

Needs h5py 3.16, hdf5plugin 7.1, numcodecs 0.16 and tiledb 0.36. Names say codec and case; `*.raw` is what the
stored bytes must decode to, where a test does not compute that itself.
"""

import gzip
import pathlib
import tempfile

import h5py
import hdf5plugin  # noqa: F401  (registers its filters)
import numcodecs
import numpy as np
import tiledb

assert h5py.version.hdf5_version == "2.0.0", h5py.version.hdf5_version
assert numcodecs.__version__.startswith("0.16"), numcodecs.__version__

numcodecs.blosc.set_nthreads(1)  # otherwise the order of the blocks varies

HERE = pathlib.Path(__file__).parent


def save(name, data):
    (HERE / name).write_bytes(bytes(data))


def hdf5_chunk(data, **filters):
    """The bytes that libhdf5 stores for one chunk of `data`, and its filter's client data."""
    with h5py.File("memory", driver="core", backing_store=False, mode="w") as file:
        node = file.create_dataset("a", data=data, chunks=data.shape, **filters)
        file.flush()
        mask, stored = node.id.read_direct_chunk((0,) * data.ndim)
        assert mask == 0, mask
        return stored, node.id.get_create_plist().get_filter(0)[2]


def steps():
    """300 integers in runs of seven."""
    return np.arange(300, dtype="<i4") // 7 * 3


def general():
    raw = steps().tobytes()
    save("steps.zlib", numcodecs.Zlib(6).encode(raw))
    save("steps.gz", gzip.compress(raw[:500], 6, mtime=0) + gzip.compress(raw[500:], 9, mtime=0))
    save("steps.bz2", numcodecs.BZ2(9).encode(raw))
    save("steps.lz4", numcodecs.LZ4().encode(raw)[4:])
    save("steps.lzf", hdf5_chunk(steps(), compression="lzf")[0])


def ramp(n, dtype):
    """n numbers that grow and wobble."""
    i = np.arange(n, dtype="<i8")
    return (i * 37 + (i * i) % 101).astype(dtype)


def blocks():
    for size, n in ((1, 1003), (2, 2050), (4, 5003), (8, 1029)):
        data = ramp(n, f"<u{size}")
        for name, options in (
            ("none", dict(cname="none")),
            ("lz4", dict(cname="lz4")),
            ("zstd", dict(cname="zstd", clevel=3)),
        ):
            if size in (1, 8) and name != "lz4":
                continue
            stored, _ = hdf5_chunk(data, **hdf5plugin.Bitshuffle(**options))
            save(f"ramp{size}.bshuf.{name}", stored)
    stored, _ = hdf5_chunk(ramp(500, "<u4"), **hdf5plugin.Bitshuffle(nelems=64, cname="lz4"))
    save("ramp4.bshuf.lz4.64", stored)
    save("steps.hdf5lz4", hdf5_chunk(steps(), **hdf5plugin.LZ4(nbytes=512))[0])
    noise = np.random.default_rng(1).integers(0, 256, 700, dtype="u1")
    save("noise.raw", noise)
    save("noise.hdf5lz4", hdf5_chunk(noise, **hdf5plugin.LZ4(nbytes=256))[0])


def stair(n, dtype):
    """n numbers, each three times."""
    return (np.arange(n, dtype="<i8") // 3 * 5).astype(dtype)


def blosc1():
    for codec in numcodecs.blosc.list_compressors():
        for shuffle in (0, 1, 2):
            frame = numcodecs.Blosc(codec, 5, shuffle, blocksize=4096).encode(stair(6001, "<u4"))
            save(f"stair4.blosc.{codec}.{shuffle}", frame)
    save("ramp4.blosc.blosclz.1", numcodecs.Blosc("blosclz", 9, 1).encode(ramp(1503, "<u4")))
    save("steps.blosc.blosclz.0", numcodecs.Blosc("blosclz", 9, 0).encode(steps().repeat(50)))
    save("ramp8.blosc.lz4.1", numcodecs.Blosc("lz4", 5, 1, blocksize=512).encode(ramp(1029, "<u8")))
    save("stair2.blosc.zstd.2", numcodecs.Blosc("zstd", 5, 2, blocksize=1000).encode(stair(2051, "<u2")))
    save("stair1.blosc.lz4.2", numcodecs.Blosc("lz4", 5, 2).encode(stair(1008, "<u1")))
    # Several blocks, each split.
    long = (np.arange(400_000) // 64).astype("<u4")
    for codec in ("blosclz", "lz4"):
        save(f"long4.blosc.{codec}.1", numcodecs.Blosc(codec, 1, 1).encode(long))
    save("noise.blosc", numcodecs.Blosc("lz4", 5, 1).encode(np.fromfile(HERE / "noise.raw", "u1")))


def blosc2():
    for codec in ("blosclz", "lz4", "zlib", "zstd"):
        for filters in (0, 1, 2):
            stored, _ = hdf5_chunk(stair(6001, "<u4"), **hdf5plugin.Blosc2(codec, 5, filters))
            save(f"stair4.blosc2.{codec}.{filters}", stored)
    delta = hdf5plugin.Blosc2("zstd", 5, hdf5plugin.Blosc2.DELTA)
    save("ramp4.blosc2.delta", hdf5_chunk(ramp(5003, "<u4"), **delta)[0])
    cube = stair(12 * 35 * 50, "<u2").reshape(12, 35, 50)
    save("cube2.blosc2.lz4", hdf5_chunk(cube, **hdf5plugin.Blosc2("lz4", 5, 1))[0])
    cube = stair(20 * 150 * 301, "<u2").reshape(20, 150, 301)
    save("blocks2.blosc2", hdf5_chunk(cube, **hdf5plugin.Blosc2("zstd", 9, 2))[0])
    save("zeros.blosc2", hdf5_chunk(np.zeros(3000, "<f4"), **hdf5plugin.Blosc2("lz4", 5, 1))[0])
    save("ones.blosc2", hdf5_chunk(np.ones((30, 100), "<f4"), **hdf5plugin.Blosc2("lz4", 5, 1))[0])
    save("noise.blosc2", hdf5_chunk(np.fromfile(HERE / "noise.raw", "u1"), **hdf5plugin.Blosc2("lz4", 5, 0))[0])


def low_chunk(name, values, dtype, filter_id, options=(), memory=None, fill=None):
    """Writes one chunk through the low-level interface; saves client data, stored bytes and what libhdf5 reads back."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk(values.shape)
    if fill is not None:
        dcpl.set_fill_value(np.array(fill, values.dtype))
    if filter_id == h5py.h5z.FILTER_SCALEOFFSET:
        dcpl.set_scaleoffset(*options)
    elif filter_id == h5py.h5z.FILTER_SZIP:
        dcpl.set_szip(*options)
    else:
        dcpl.set_filter(filter_id, 0, options)
    with h5py.File("memory", driver="core", backing_store=False, mode="w") as file:
        space = h5py.h5s.create_simple(values.shape)
        node = h5py.h5d.create(file.id, b"a", dtype, space, dcpl)
        node.write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=memory)
        file.flush()
        mask, stored = node.read_direct_chunk((0,) * values.ndim)
        if mask:
            return  # incompressible, so stored unfiltered
        client = node.get_create_plist().get_filter(0)[2]
        # The output of the filter itself: read from the file, not the cache, in the stored type.
        del node
        node = h5py.h5d.open(file.id, b"a")
        raw = np.frombuffer(bytes(values.size * dtype.get_size()), f"V{dtype.get_size()}").reshape(values.shape).copy()
        node.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=dtype)
    save(f"{name}.cd", np.array(client, "<u4").tobytes())
    save(f"{name}.stored", stored)
    save(f"{name}.raw", raw.tobytes())


def integer(base, precision, offset):
    dtype = base.copy()
    dtype.set_precision(precision)
    dtype.set_offset(offset)
    return dtype


def hdf5_nbit():
    t = h5py.h5t
    nbit = h5py.h5z.FILTER_NBIT
    data = ramp(203, "<i4") - 2000
    low_chunk("nbit.i4.17.0", data, integer(t.STD_I32LE, 17, 0), nbit)
    low_chunk("nbit.i4.14.5", data, integer(t.STD_I32LE, 14, 5), nbit)
    low_chunk("nbit.i4be.13.3", data, integer(t.STD_I32BE, 13, 3), nbit)
    low_chunk("nbit.u2.9.2", data % 512, integer(t.STD_U16LE, 9, 2), nbit)
    low_chunk("nbit.u1.3.1", data % 8, integer(t.STD_U8LE, 3, 1), nbit)
    low_chunk("nbit.u8.40.8", data.astype("<i8") + 70000, integer(t.STD_U64LE, 40, 8), nbit)
    low_chunk("nbit.u8be.64.0", data.astype("<i8"), integer(t.STD_U64BE, 63, 0), nbit)
    f20 = t.IEEE_F32LE.copy()
    f20.set_fields(26, 20, 6, 7, 13)
    f20.set_offset(7)
    f20.set_precision(20)
    f20.set_ebias(31)
    low_chunk("nbit.f4.20.7", (data / 16).astype("<f4"), f20, nbit)
    low_chunk("nbit.i4.32.0", data, t.STD_I32LE, nbit)
    record = np.zeros(21, np.dtype([("a", "<i4"), ("c", "S3"), ("d", [("p", "<i2"), ("q", "<u2", (3,))]), ("e", "<f8")]))
    i = np.arange(21)
    record["a"], record["e"] = i * 1000 - 7, i / 7
    record["c"] = [b"%d" % j for j in i]
    record["d"]["p"], record["d"]["q"] = i * 3 - 1, i[:, None] * 20 + np.arange(3)
    part = t.create(t.COMPOUND, 12)
    part.insert(b"p", 1, integer(t.STD_I16LE, 9, 0))
    part.insert(b"q", 4, t.array_create(integer(t.STD_U16BE, 11, 4), (3,)))
    three = t.C_S1.copy()
    three.set_size(3)
    kept = t.create(t.COMPOUND, 40)
    kept.insert(b"a", 0, integer(t.STD_I32LE, 17, 2))
    kept.insert(b"c", 5, three)
    kept.insert(b"d", 9, part)
    kept.insert(b"e", 30, t.IEEE_F64LE)
    low_chunk("nbit.record", record, kept, nbit, memory=t.py_create(record.dtype))
    # A compound of an atomic, an array of arrays, a string and a compound, with holes.
    inner = t.create(t.COMPOUND, 12)
    inner.insert(b"p", 1, integer(t.STD_I16LE, 9, 0))
    inner.insert(b"q", 4, t.array_create(integer(t.STD_U16BE, 11, 4), (3,)))
    text = t.C_S1.copy()
    text.set_size(3)
    outer = t.create(t.COMPOUND, 48)
    outer.insert(b"a", 0, integer(t.STD_I32LE, 17, 2))
    outer.insert(b"b", 4, t.array_create(t.array_create(integer(t.STD_U8LE, 3, 1), (2,)), (3,)))
    outer.insert(b"c", 11, text)
    outer.insert(b"d", 16, t.array_create(inner, (2,)))
    outer.insert(b"e", 40, t.IEEE_F64LE)
    memory = np.dtype(
        {
            "names": ["a", "b", "c", "d", "e"],
            "formats": [
                "<i4",
                ("u1", (3, 2)),
                "S3",
                (np.dtype({"names": ["p", "q"], "formats": ["<i2", ("<u2", (3,))], "offsets": [0, 2]}), (2,)),
                "<f8",
            ],
        }
    )
    rows = np.zeros(21, memory)
    n = np.arange(21)
    rows["a"] = n * 1000 - 7
    rows["b"] = (n[:, None, None] + np.arange(6).reshape(3, 2)) % 8
    rows["c"] = [b"%d" % i for i in n]
    rows["d"]["p"] = n[:, None] * 3 - np.arange(2)
    rows["d"]["q"] = n[:, None, None] * 20 + np.arange(6).reshape(2, 3)
    rows["e"] = n / 7
    # numpy has no arrays of arrays, so the type in memory is built by hand.
    mine = t.create(t.COMPOUND, memory.itemsize)
    pair = t.create(t.COMPOUND, memory["d"].base.itemsize)
    pair.insert(b"p", 0, t.STD_I16LE)
    pair.insert(b"q", 2, t.array_create(t.STD_U16LE, (3,)))
    at = {name: memory.fields[name][1] for name in memory.names}
    mine.insert(b"a", at["a"], t.STD_I32LE)
    mine.insert(b"b", at["b"], t.array_create(t.array_create(t.STD_U8LE, (2,)), (3,)))
    mine.insert(b"c", at["c"], text)
    mine.insert(b"d", at["d"], t.array_create(pair, (2,)))
    mine.insert(b"e", at["e"], t.IEEE_F64LE)
    low_chunk("nbit.compound", rows, outer, nbit, memory=mine)


def hdf5_scale_offset():
    t = h5py.h5t
    so = h5py.h5z.FILTER_SCALEOFFSET
    integers, floats = 2, 0
    data = ramp(203, "<i8")
    for name, dtype, values in (
        ("u1", t.STD_U8LE, (data % 100 + 20).astype("<u1")),
        ("i1", t.STD_I8LE, (data % 100 - 50).astype("<i1")),
        ("i2", t.STD_I16LE, (data % 1000 - 700).astype("<i2")),
        ("u4", t.STD_U32LE, data.astype("<u4")),
        ("i4be", t.STD_I32BE, (data - 3000).astype("<i4")),
        ("i8", t.STD_I64LE, data * -1000003),
        ("full", t.STD_I16LE, (data * 331).astype("<i2")),
    ):
        low_chunk(f"so.{name}", values, dtype, so, (integers, 0))
    low_chunk("so.i4.fill", (data % 50 - 3).astype("<i4"), t.STD_I32LE, so, (integers, 0), fill=-3)
    low_chunk("so.i4.bits", (data % 50 - 3).astype("<i4"), t.STD_I32LE, so, (integers, 11))
    low_chunk("so.i4.whole", (data % 50 - 3).astype("<i4"), t.STD_I32LE, so, (integers, 32))
    low_chunk("so.const", np.full(203, 17, "<i4"), t.STD_I32LE, so, (integers, 0))
    low_chunk("so.f4", (data / 37 - 50).astype("<f4"), t.IEEE_F32LE, so, (floats, 2))
    low_chunk("so.f8be", data / 37 - 50, t.IEEE_F64BE, so, (floats, 3))
    low_chunk("so.f8.0", data * 1.7, t.IEEE_F64LE, so, (floats, 0))
    filled = (data / 37).astype("<f4")
    filled[::5] = -999
    low_chunk("so.f4.fill", filled, t.IEEE_F32LE, so, (floats, 1), fill=-999)
    low_chunk("so.f4.full", (data * 1e20).astype("<f4"), t.IEEE_F32LE, so, (floats, 3))


def hdf5_szip():
    t = h5py.h5t
    szip = h5py.h5z.FILTER_SZIP
    ec, nn = 4, 32
    wobble = np.cumsum(np.random.default_rng(7).integers(-20, 21, 3000))
    sparse = np.where(np.arange(3000) % 700 < 600, 5, wobble)
    for name, values, dtype in (
        ("u1", (abs(wobble) // 8 % 32).astype("<u1"), t.STD_U8LE),
        ("i2", wobble.astype("<i2"), t.STD_I16LE),
        ("u2be", (wobble + 5000).astype("<u2"), t.STD_U16BE),
        ("i4", wobble.astype("<i4"), t.STD_I32LE),
        ("f8", wobble / 8, t.IEEE_F64LE),
        ("sparse", (sparse % 256).astype("<u1"), t.STD_U8LE),
        ("sparse2", sparse.astype("<i2"), t.STD_I16LE),
    ):
        for kind, mask in (("ec", ec), ("nn", nn)):
            for pixels in (8, 32) if name in ("u1", "sparse2") else (16,):
                low_chunk(f"szip.{name}.{kind}.{pixels}", values.reshape(50, 60), dtype, szip, (mask, pixels))
    low_chunk("szip.u3.nn", (wobble + 5000).astype("<u4"), integer(t.STD_U32LE, 20, 0), szip, (nn, 8))
    low_chunk("szip.u2.12", (wobble % 4096).astype("<u2"), integer(t.STD_U16LE, 12, 0), szip, (nn, 10))
    low_chunk("szip.odd", (wobble[:1001] % 256).astype("<u1"), t.STD_U8LE, szip, (nn, 16))
    low_chunk("szip.noise", np.r_[np.random.default_rng(3).integers(0, 256, 320, dtype="u1"), np.zeros(1000, "u1")], t.STD_U8LE, szip, (ec, 16))


KEY = "0123456789abcdef0123456789ABCDEF"


def tile(name, values, filters, var=False, key=None):
    """The one tile that libtiledb writes for `values` through `filters`; and the values."""
    secret = {"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": key} if key else {}
    context = tiledb.Ctx(tiledb.Config(secret))
    with tempfile.TemporaryDirectory() as folder:
        n = len(values)
        domain = tiledb.Domain(tiledb.Dim(name="i", domain=(0, n - 1), tile=n, dtype=np.uint64, ctx=context), ctx=context)
        dtype = "ascii" if var else values.dtype
        attribute = tiledb.Attr(name="a", dtype=dtype, var=var, filters=tiledb.FilterList(filters), ctx=context)
        tiledb.Array.create(folder, tiledb.ArraySchema(domain=domain, attrs=[attribute], ctx=context), ctx=context)
        with tiledb.open(folder, "w", ctx=context) as array:
            array[:] = values
        (file,) = pathlib.Path(folder).glob(f"__fragments/*/a0{'_var' if var else ''}.tdb")
        save(f"tiledb.{name}.tdb", file.read_bytes())
    raw = b"".join(v.encode() for v in values) if var else values.tobytes()
    save(f"tiledb.{name}.raw", raw)


def tiledb_tiles():
    walk = np.cumsum(np.random.default_rng(5).integers(-300, 301, 700))
    rising = np.cumsum(np.random.default_rng(6).integers(0, 300, 700))
    for name, dtype in (("i2", "<i2"), ("u4", "<u4"), ("i8", "<i8"), ("u8", "<u8")):
        values = (walk + (30000 if dtype[1] == "u" else 0)).astype(dtype)
        tile(f"bwr.{name}", values, [tiledb.BitWidthReductionFilter(window=256)])
        tile(f"dd.{name}", values, [tiledb.DoubleDeltaFilter()])
        tile(f"delta.{name}", values, [tiledb.DeltaFilter()])
        tile(f"xor.{name}", values, [tiledb.XORFilter()])
        tile(f"pd.{name}", (rising // 8).astype(dtype), [tiledb.PositiveDeltaFilter(window=400)])
        tile(f"rle.{name}", (walk // 200).astype(dtype), [tiledb.RleFilter()])
    wild = np.random.default_rng(8).integers(-(2**62), 2**62, 300)
    tile("dd.wild", wild // 8, [tiledb.DoubleDeltaFilter()])
    tile("bwr.wild", wild, [tiledb.BitWidthReductionFilter(window=64)])
    tile("bitshuffle.i4", walk.astype("<i4"), [tiledb.BitShuffleFilter()])
    tile("bitshuffle.i8", np.r_[walk, walk, walk].astype("<i8"), [tiledb.BitShuffleFilter()])
    tile("scale.f8", walk / 64 + 10, [tiledb.FloatScaleFilter(factor=0.25, offset=10.0, bytewidth=4)])
    tile("scale.f4", (walk / 64).astype("<f4"), [tiledb.FloatScaleFilter(factor=0.1, offset=-3.0, bytewidth=2)])
    words = np.array([["", "a", "bb", "quartz", "a" * 300][i // 4 % 5] for i in range(400)], dtype="O")
    tile("rle.words", words, [tiledb.RleFilter()], var=True)
    tile("dict.words", words, [tiledb.DictionaryFilter()], var=True)
    tile("aes", walk.astype("<i4"), [], key=KEY)
    tile("md5", walk.astype("<i4"), [tiledb.ChecksumMD5Filter()])


def transform(name, codec, values):
    """Saves values, what a numcodecs transform stores, and what it gives back."""
    stored = np.asarray(codec.encode(values))
    save(f"{name}.raw", values.tobytes())
    save(f"{name}.stored", stored.tobytes())
    save(f"{name}.back", np.asarray(codec.decode(stored)).tobytes())


def numcodecs_numbers():
    wobble = np.cumsum(np.random.default_rng(9).integers(-100, 101, 200))
    for dtype, astype in (("i8", "i2"), ("u1", "u1"), ("f4", "f4"), ("f8", "f8"), ("i4", "i4")):
        values = (wobble / 7 if dtype[0] == "f" else wobble).astype(f"<{dtype}")
        transform(f"delta.{dtype}.{astype}", numcodecs.Delta(f"<{dtype}", f"<{astype}"), values)
    for dtype, astype, scale, offset in (
        ("f8", "u1", 10, 1000),
        ("f4", "i2", 7, -3.5),
        ("f8", "i4", 1000, 0.25),
        ("f4", "f4", 3, 1),
    ):
        values = (np.linspace(1000, 1020, 200) if astype == "u1" else wobble / 7).astype(f"<{dtype}")
        codec = numcodecs.FixedScaleOffset(offset, scale, f"<{dtype}", f"<{astype}")
        transform(f"fso.{dtype}.{astype}", codec, values)
    for dtype, astype, digits in (("f8", "f4", 2), ("f4", "f4", 1), ("f8", "f8", 5)):
        codec = numcodecs.Quantize(digits, f"<{dtype}", f"<{astype}")
        transform(f"quantize.{dtype}.{astype}", codec, (wobble / 7).astype(f"<{dtype}"))
    transform("packbits", numcodecs.PackBits(), wobble[:197] > 0)


if __name__ == "__main__":
    general()
    blocks()
    blosc1()
    blosc2()
    hdf5_nbit()
    hdf5_scale_offset()
    hdf5_szip()
    tiledb_tiles()
    numcodecs_numbers()
