"""Creates HDF5 files over the cross product of layouts, indexes, types and filters, and describes what h5py reads.

Run as `make.py FOLDER`: writes `NAME.h5` and `NAME.json` for every case.
"""

import ctypes
import json
import os
import pathlib
import sys

import h5py
import hdf5plugin
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from expect import expect  # noqa: E402

assert h5py.__version__ == "3.16.0", h5py.__version__

OUT = pathlib.Path(sys.argv[1]).resolve()
# External raw files are looked for in the working directory.
os.chdir(OUT)
# Where h5py has no function, call the libhdf5 that it ships.
HDF5 = ctypes.CDLL(str(next((pathlib.Path(h5py.__file__).parent.parent / "h5py.libs").glob("libhdf5-*"))))
for call in ("H5Pset_chunk_opts", "H5Pset_shared_mesg_nindexes", "H5Pset_shared_mesg_index"):
    getattr(HDF5, call).argtypes = [ctypes.c_int64] + [ctypes.c_uint] * (3 if call.endswith("_index") else 1)
VERSIONS = {"earliest": "earliest", "v108": ("v108", "v108"), "v110": ("v110", "v110"), "latest": "latest"}
rng = np.random.default_rng(7)

NUMBERS = ["i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "u1", "<u2", ">u4", "<u8", ">u8",
           "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c16", "?"]


def sample(dtype, shape):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, count, dtype=dtype.newbyteorder("="), endpoint=True).reshape(shape).astype(dtype)


def types(file):
    for name in NUMBERS:
        data = sample(name, (5, 7))
        label = name.replace("<", "le").replace(">", "be").replace("?", "bool")
        file.create_dataset(f"contiguous/{label}", data=data)
        file.create_dataset(f"chunked/{label}", data=data, chunks=(2, 3), compression="gzip", shuffle=True)
        file[f"contiguous/{label}"].attrs["value"] = data[0]
        file[f"contiguous/{label}"].attrs["one"] = data[0, 0]
        file.create_dataset(f"filled/{label}", shape=(4, 4), dtype=name, chunks=(2, 2), fillvalue=data[1, 1])
        file[f"filled/{label}"][0, 0] = data[2, 2]
    file["special"] = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    for n, (size, bias, parts) in enumerate([
            (2, 127, (15, 7, 8, 0, 7)), (1, 7, (7, 3, 4, 0, 3)), (1, 15, (7, 2, 5, 0, 2)), (4, 127, (31, 23, 8, 0, 23)),
            (8, 127, (40, 32, 8, 8, 24)), (3, 63, (23, 16, 7, 0, 16))]):
        tid = h5py.h5t.IEEE_F64LE.copy()
        tid.set_fields(*parts)
        tid.set_size(size)
        tid.set_ebias(bias)
        space = h5py.h5s.create_simple((40,))
        dset = h5py.h5d.create(file.id, f"float{n}".encode(), tid, space)
        dset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.concatenate([rng.normal(size=36), [0, np.inf, -np.inf, np.nan]]))
    for n, (base, precision, offset) in enumerate([("STD_I32LE", 17, 5), ("STD_U16BE", 9, 3), ("STD_I64LE", 33, 0), ("STD_I16BE", 12, 4)]):
        tid = getattr(h5py.h5t, base).copy()
        tid.set_precision(precision)
        tid.set_offset(offset)
        dset = h5py.h5d.create(file.id, f"int{n}".encode(), tid, h5py.h5s.create_simple((50,)))
        dset.write(h5py.h5s.ALL, h5py.h5s.ALL, rng.integers(0, 200, 50) - (0 if "U" in base else 100))
    file["longdouble"] = np.array([1.5, -2.25, 1e300, np.inf], dtype=np.longdouble)
    file["dates"] = np.array(["2020-01-01", "1969-12-31"], dtype="M8[s]").astype(h5py.opaque_dtype("M8[s]"))
    file["opaque"] = np.array([b"abc", b"\xff\x00z"], dtype="V3")
    file["scalar"] = 42
    file["scalar_text"] = "grüße"
    file["empty"] = h5py.Empty("f4")
    file["zero"] = np.zeros((0, 4))
    file.create_dataset("zero_chunked", shape=(0, 4), maxshape=(None, 4), chunks=(2, 2), dtype="i4")
    file.attrs["empty"] = h5py.Empty("S4")
    file["enum"] = np.array([0, 1, 2, 1], dtype=h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, basetype=">i2"))
    file["wide"] = rng.normal(size=(3, 300, 700))


def strings(file):
    for pad in (h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD):
        for cset in (h5py.h5t.CSET_ASCII, h5py.h5t.CSET_UTF8):
            tid = h5py.h5t.C_S1.copy()
            tid.set_size(6)
            tid.set_strpad(pad)
            tid.set_cset(cset)
            dset = h5py.h5d.create(file.id, f"fixed{pad}{cset}".encode(), tid, h5py.h5s.create_simple((4,)))
            dset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab", b"abcdef", b"", b" a b "], dtype="S6"), tid)
    file["fixed_utf8"] = np.array(["ä".encode(), "öü".encode()], dtype=h5py.string_dtype("utf-8", 4))
    vlen = np.array(["", "a", "grün", "x" * 5000], dtype=object)
    file.create_dataset("vlen", data=vlen, dtype=h5py.string_dtype())
    file.create_dataset("vlen_ascii", data=[b"", b"q\xff"], dtype=h5py.string_dtype("ascii"))
    file.create_dataset("vlen_chunked", shape=(7, 5), dtype=h5py.string_dtype(), chunks=(2, 2), compression="gzip")
    file["vlen_chunked"][1:6, 1:4] = np.array([[f"{i}/{j}" for j in range(3)] for i in range(5)], dtype=object)
    file.create_dataset("vlen_filled", shape=(3,), dtype=h5py.string_dtype(), chunks=(2,), fillvalue="none")
    file.attrs["text"] = "grüße"
    file.attrs["texts"] = ["a", "", "ccc"]
    file.attrs["bytes"] = np.bytes_(b"raw")
    file.attrs["bytes_array"] = np.array([b"aa", b"b"])
    ragged = file.create_dataset("ragged", shape=(4,), dtype=h5py.vlen_dtype("<i4"))  # h5py does not swap big-endian ones
    for i in range(3):
        ragged[i] = np.arange(i * 3)
    ragged = file.create_dataset("ragged_float", shape=(5, 2), dtype=h5py.vlen_dtype("f8"), chunks=(2, 2))
    for i in range(5):
        ragged[i, i % 2] = rng.normal(size=i)


def compounds(file):
    point = np.dtype([("x", "<f8"), ("n", ">i4"), ("name", "S5"), ("ok", "?"), ("c", "<c8"), ("v", "<i2", (2, 3))])
    data = np.zeros(6, point)
    data["x"] = rng.normal(size=6)
    data["n"] = rng.integers(-5, 5, 6)
    data["name"] = [b"a", b"bb", b"", b"dddd", b"eeeee", b"f"]
    data["ok"] = [1, 0, 1, 1, 0, 0]
    data["c"] = rng.normal(size=6) + 2j
    data["v"] = rng.integers(0, 100, (6, 2, 3))
    file["packed"] = data
    file.create_dataset("chunked", data=data, chunks=(4,), compression="gzip", shuffle=True)
    aligned = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2")], align=True)
    file["aligned"] = np.array([(1, 2.5, 3), (-1, -2.5, -3)], aligned)
    nested = np.dtype([("p", [("x", "f4"), ("y", ">f4")]), ("tags", "i2", (3,))])
    file["nested"] = np.array([((1, 2), [1, 2, 3]), ((3, 4), [4, 5, 6])], nested)
    text = np.dtype([("id", "i4"), ("text", h5py.string_dtype()), ("more", h5py.vlen_dtype("i2"))])
    rows = np.zeros(3, text)
    rows["id"] = [1, 2, 3]
    rows["text"] = ["one", "", "drei"]
    for i in range(3):
        rows["more"][i] = np.arange(i, dtype="i2")
    file["with_text"] = rows
    file.attrs["row"] = data[1]
    array = np.dtype(("i4", (2, 2)))
    file.create_dataset("arrays", shape=(3,), dtype=array)
    file["arrays"][...] = np.arange(12).reshape(3, 2, 2)
    file["type"] = point
    file.create_dataset("committed", shape=(2,), dtype=file["type"])
    file["committed"].attrs.create("made", data[0], dtype=file["type"])


def references(file):
    file["a/b/c"] = np.arange(20).reshape(4, 5)
    file["d"] = 1
    refs = np.array([file["a/b/c"].ref, file["a"].ref, file["d"].ref, h5py.Reference()], dtype=h5py.ref_dtype)
    file.create_dataset("refs", data=refs, dtype=h5py.ref_dtype)
    file.attrs["ref"] = file["a/b"].ref
    file["soft"] = h5py.SoftLink("/a/b/c")
    file["a/soft"] = h5py.SoftLink("b")
    file["dangling"] = h5py.SoftLink("/nowhere/at/all")
    file["a/hard"] = file["d"]
    file["a/b/up"] = file["a"]
    for i in range(40):
        file["d"].attrs[f"attribute {i}"] = np.arange(i)
    file["d"].attrs["large"] = rng.normal(size=7000) if VERSION != "earliest" else 1.0
    many = file.create_group("many")
    for i in range(300):
        many[f"dataset with a rather long name {i}"] = i
    ordered = file.create_group("ordered", track_order=True)
    for name in "zebra", "apple", "mango":
        ordered[name] = name
        ordered.attrs[name] = 1
    lots = file.create_group("lots", track_order=True)
    for i in range(30):
        lots[f"{30 - i}"] = i


def grids(file):
    cases = {
        "one": ((10,), (3,), (10,)),
        "exact": ((6, 8), (6, 8), (6, 8)),
        "grow0": ((10, 7), (3, 2), (None, 7)),
        "grow1": ((10, 7), (3, 2), (10, None)),
        "grow1_wide": ((10, 7), (3, 2), (40, None)),
        "grow_mid": ((5, 9, 6), (2, 2, 4), (5, None, 20)),
        "grow_last": ((5, 9, 6), (2, 2, 4), (8, 9, None)),
        "both": ((10, 7), (3, 2), (None, None)),
        "limited": ((10, 7), (3, 2), (100, 70)),
        "deep": ((3, 4, 5, 6), (2, 2, 2, 2), (None, 4, None, 6)),
        "long": ((5000,), (1,), (None,)),
        "long_fixed": ((3000,), (1,), (3000,)),
        "long_both": ((60, 50), (1, 1), (None, None)),
        "big": ((200, 100), (64, 64), (None, 100)),
    }
    for name, (shape, chunks, most) in cases.items():
        for filters in ("plain", "gzip"):
            extra = {"compression": "gzip"} if filters == "gzip" else {}
            dset = file.create_dataset(f"{filters}/{name}", shape=shape, chunks=chunks, maxshape=most, dtype="i4", fillvalue=-7, **extra)
            data = np.arange(np.prod(shape), dtype="i4").reshape(shape)
            dset[...] = data
            part = file.create_dataset(f"{filters}/{name}_part", shape=shape, chunks=chunks, maxshape=most, dtype="i4", fillvalue=-7, **extra)
            part[tuple(slice(s // 3, s // 2 + 1) for s in shape)] = data[tuple(slice(s // 3, s // 2 + 1) for s in shape)]
            if None in most:
                grown = file.create_dataset(f"{filters}/{name}_grown", shape=shape, chunks=chunks, maxshape=most, dtype="i4", fillvalue=3, **extra)
                grown[...] = data
                bigger = tuple(s if m is not None else s * 2 + 1 for s, m in zip(shape, most))
                grown.resize(bigger)
                smaller = tuple(s if m is not None else max(1, s // 2) for s, m in zip(shape, most))
                shrunk = file.create_dataset(f"{filters}/{name}_shrunk", shape=shape, chunks=chunks, maxshape=most, dtype="i4", **extra)
                shrunk[...] = data
                shrunk.resize(smaller)
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((3, 2))
    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    dset = h5py.h5d.create(file.id, b"implicit", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((10, 7), (12, 9)), dcpl)
    h5py.Dataset(dset)[...] = np.arange(70).reshape(10, 7)
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((3, 2))
    dcpl.set_deflate(4)
    if VERSION in ("v110", "latest"):
        assert HDF5.H5Pset_chunk_opts(dcpl.id, 2) >= 0
    dset = h5py.h5d.create(file.id, b"edges", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((10, 7), (h5py.h5s.UNLIMITED, 9)), dcpl)
    h5py.Dataset(dset)[...] = np.arange(70).reshape(10, 7)
    dset = file.create_dataset("masked", shape=(8,), chunks=(2,), dtype="i4", compression="gzip", shuffle=True)
    dset[...] = np.arange(8)
    dset.id.write_direct_chunk((2,), np.array([70, 71], "i4").tobytes(), filter_mask=3)
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_layout(h5py.h5d.COMPACT)
    dset = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I16BE, h5py.h5s.create_simple((3, 4)), dcpl)
    h5py.Dataset(dset)[...] = np.arange(12).reshape(3, 4)


def filters(file):
    for dtype in ("i1", "<i2", ">i4", "<u8", "<f4", ">f8"):
        data = np.cumsum(rng.integers(-3, 4, (37, 53)), axis=1).astype(dtype)
        label = dtype.strip("<>")

        def put(name, **extra):
            file.create_dataset(f"{label}/{name}", data=data, chunks=(16, 20), **extra)

        put("gzip1", compression="gzip", compression_opts=1)
        put("gzip9_shuffle", compression="gzip", compression_opts=9, shuffle=True)
        put("fletcher", fletcher32=True)
        put("all", fletcher32=True, shuffle=True, compression="gzip")
        put("lzf", compression="lzf")
        put("lzf_shuffle", compression="lzf", shuffle=True, fletcher32=True)
        for coding in ("ec", "nn"):
            put(f"szip_{coding}", compression="szip", compression_opts=(coding, 16))
        put("scaleoffset", scaleoffset=2 if "f" in dtype else 0)
        put("scaleoffset_gzip", scaleoffset=3 if "f" in dtype else 0, compression="gzip")
        put("zstd", **hdf5plugin.Zstd(clevel=3))
        put("zstd_shuffle", shuffle=True, **hdf5plugin.Zstd(clevel=3))
        put("lz4", **hdf5plugin.LZ4())
        put("lz4_small", **hdf5plugin.LZ4(nbytes=256))
        put("bzip2", **hdf5plugin.BZip2())
        if dtype in ("<f4",):
            for label, mode in {"reversible": {"reversible": True}, "rate": {"rate": 9}, "accuracy": {"accuracy": 0.01}, "precision": {"precision": 15}}.items():
                put(f"zfp_{label}", **hdf5plugin.Zfp(**mode))
        for cname in ("none", "lz4", "zstd"):
            put(f"bitshuffle_{cname}", **hdf5plugin.Bitshuffle(cname=cname))
        for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
            for shuffle in (0, 1, 2):
                put(f"blosc_{cname}_{shuffle}", **hdf5plugin.Blosc(cname=cname, shuffle=shuffle))
        for cname in ("blosclz", "lz4", "zlib", "zstd"):
            put(f"blosc2_{cname}", **hdf5plugin.Blosc2(cname=cname))
        put("blosc2_bit", **hdf5plugin.Blosc2(cname="zstd", filters=hdf5plugin.Blosc2.BITSHUFFLE))
        put("blosc2_delta", **hdf5plugin.Blosc2(cname="zstd", filters=hdf5plugin.Blosc2.DELTA))
    # n-bit: fewer bits than bytes.
    for n, (base, precision, offset) in enumerate([("STD_I32LE", 17, 5), ("STD_U16BE", 9, 3)]):
        tid = getattr(h5py.h5t, base).copy()
        tid.set_precision(precision)
        tid.set_offset(offset)
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((11,))
        dcpl.set_filter(h5py.h5z.FILTER_NBIT, 0, ())
        dset = h5py.h5d.create(file.id, f"nbit{n}".encode(), tid, h5py.h5s.create_simple((50,)), dcpl)
        dset.write(h5py.h5s.ALL, h5py.h5s.ALL, rng.integers(0, 200, 50) - (0 if "U" in base else 100))


def scales(file):
    file["t"] = np.arange(4.0)
    file["g/x"] = np.arange(3)
    file["v"] = np.arange(12).reshape(4, 3)
    file["t"].make_scale("time")
    file["g/x"].make_scale()
    file["v"].dims[0].attach_scale(file["t"])
    file["v"].dims[1].attach_scale(file["g/x"])
    file["w"] = np.zeros((2, 2))
    file["w"].dims[0].label = "rows"


CASES = [types, strings, compounds, references, grids, filters, scales]
for VERSION, bounds in VERSIONS.items():
    for case in CASES:
        if case is filters and VERSION in ("v108", "v110"):
            continue
        path = OUT / f"{case.__name__}-{VERSION}.h5"
        with h5py.File(path, "w", libver=bounds, userblock_size=512 if case is scales else 0) as made:
            case(made)
        (OUT / f"{path.stem}.json").write_text(json.dumps(expect(path)))


def paged(file):
    for name, extra in (("plain", {}), ("gzip", {"compression": "gzip"})):
        dset = file.create_dataset(f"{name}/all", shape=(140_000,), chunks=(1,), maxshape=(None,), dtype="i1", **extra)
        dset[:] = np.arange(140_000) % 100
        sparse = file.create_dataset(f"{name}/sparse", shape=(300_000,), chunks=(1,), maxshape=(None,), dtype="i1", fillvalue=9, **extra)
        for at in (0, 3, 4, 19, 20, 51, 52, 115, 244, 131_059, 131_060, 132_083, 132_084, 200_000, 262_000, 299_999):
            sparse[at] = at % 50
        fixed = file.create_dataset(f"{name}/fixed", shape=(20_000,), chunks=(1,), dtype="i1", fillvalue=9, **extra)
        for at in (0, 1023, 1024, 5000, 19_999):
            fixed[at] = at % 50


def virtual(file):
    """Sources in this file and in others, with all kinds of selections."""
    folder = pathlib.Path(file.filename).parent
    for n in range(4):
        with h5py.File(folder / f"source{n}.hdf", "w") as source:
            source["data"] = np.arange(100).reshape(5, 20) + 1000 * n
            source.create_dataset("grow", data=np.arange(6 + n) + 100 * n, maxshape=(None,))
            source["text"] = np.array([f"{n}{i}" for i in range(5)], dtype=object)
    layout = h5py.VirtualLayout((4, 5, 20), "i8")
    for n in range(4):
        layout[n] = h5py.VirtualSource(f"source{n}.hdf", "data", shape=(5, 20))
    file.create_virtual_dataset("stack", layout, fillvalue=-1)
    layout = h5py.VirtualLayout((20, 20), "i8")
    layout[0:20:4, :] = h5py.VirtualSource("source0.hdf", "data", shape=(5, 20))
    layout[1:11:2, 10:] = h5py.VirtualSource("source1.hdf", "data", shape=(5, 20))[:, ::2]
    layout[19, 0:3] = h5py.VirtualSource("missing.hdf", "data", shape=(5, 20))[0, 0:3]
    file.create_virtual_dataset("strided", layout, fillvalue=-5)
    layout = h5py.VirtualLayout((5, 20), "<f4")
    layout[...] = h5py.VirtualSource("source1.hdf", "data", shape=(5, 20))
    file.create_virtual_dataset("other_type", layout)
    file["inner"] = np.arange(10.0)
    layout = h5py.VirtualLayout((30,), "f8")
    layout[5:15] = h5py.VirtualSource(".", "inner", shape=(10,))
    file.create_virtual_dataset("same_file", layout)
    layout = h5py.VirtualLayout((2, 5), h5py.string_dtype())
    for n in range(2):
        layout[n] = h5py.VirtualSource(f"source{n}.hdf", "text", shape=(5,), dtype=h5py.string_dtype())
    file.create_virtual_dataset("text", layout)
    # Unlimited: as long as the source is.
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    inf = h5py.h5s.UNLIMITED
    to, source = h5py.h5s.create_simple((1, 3), (inf, 3)), h5py.h5s.create_simple((1,), (inf,))
    to.select_hyperslab((0, 1), (inf, 1), (1, 1), (1, 1))
    source.select_hyperslab((0,), (inf,), (1,), (1,))
    dcpl.set_virtual(to, b"source2.hdf", b"grow", source)
    h5py.h5d.create(file.id, b"unlimited", h5py.h5t.STD_I64LE, h5py.h5s.create_simple((1, 3), (inf, 3)), dcpl)
    # A pattern of names.
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    to, source = h5py.h5s.create_simple((5, 20), (inf, 20)), h5py.h5s.create_simple((5, 20))
    to.select_hyperslab((0, 0), (inf, 1), (5, 20), (5, 20))
    dcpl.set_virtual(to, b"source%b.hdf", b"data", source)
    h5py.h5d.create(file.id, b"pattern", h5py.h5t.STD_I64LE, h5py.h5s.create_simple((5, 20), (inf, 20)), dcpl)
    # Irregular: two boxes that form no regular grid.
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    to, source = h5py.h5s.create_simple((8, 8)), h5py.h5s.create_simple((5, 20))
    to.select_hyperslab((0, 0), (1, 1), None, (2, 3))
    to.select_hyperslab((4, 1), (1, 1), None, (3, 2), h5py.h5s.SELECT_OR)
    source.select_hyperslab((1, 2), (1, 1), None, (2, 6))
    dcpl.set_virtual(to, b"source3.hdf", b"data", source)
    h5py.h5d.create(file.id, b"irregular", h5py.h5t.STD_I64LE, h5py.h5s.create_simple((8, 8)), dcpl)


def outside(file):
    folder = pathlib.Path(file.filename).parent
    (folder / "raw.bin").write_bytes(bytes(range(256)) * 4)
    file.create_dataset("raw", shape=(10, 8), dtype="<i2", external=[("raw.bin", 16, 64), ("raw.bin", 300, 96)])
    file.create_dataset("raw_big", shape=(10,), dtype=">i4", external=[("raw.bin", 3, h5py.h5f.UNLIMITED)])
    with h5py.File(folder / "other.hdf", "w") as other:
        other["a/b"] = np.arange(5)
    file["link"] = h5py.ExternalLink("other.hdf", "/a/b")
    file["link_group"] = h5py.ExternalLink("other.hdf", "/a")
    file["broken"] = h5py.ExternalLink("nowhere.hdf", "/a")
    if VERSION == "latest":
        space = file["raw"]
        refs = np.array([space.regionref[2:4, 1:3], space.regionref[0:10:3, ::2]], dtype=h5py.regionref_dtype)
        file.create_dataset("regions", data=refs, dtype=h5py.regionref_dtype)


def netcdf(path):
    import netCDF4

    with netCDF4.Dataset(path, "w") as made:
        made.title = "a title"
        made.createDimension("time", None)
        made.createDimension("x", 4)
        made.createDimension("bare", 3)
        time = made.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = np.arange(5.0)
        made.createVariable("x", "i4", ("x",))[:] = [10, 20, 30, 40]
        t = made.createVariable("t", "f4", ("time", "x", "bare"), zlib=True, shuffle=True, fill_value=-9.0)
        t[:3] = rng.normal(size=(3, 4, 3))
        t.units = "K"
        group = made.createGroup("inner")
        group.createVariable("v", "i2", ("time", "x"))[:] = np.arange(20).reshape(5, 4)
        group.createVariable("s", str, ("x",))[:] = np.array(["a", "bb", "", "dddd"], dtype=object)
        kind = made.createEnumType(np.int8, "sky", {"clear": 0, "cloudy": 1})
        made.createVariable("lat", "f4", ("x", "bare"))[:] = rng.normal(size=(4, 3))
        made.createVariable("clouds", kind, ("x",))[:] = [0, 1, 1, 0]


for VERSION in ("earliest", "v110", "latest"):
    for case in (virtual, outside) + ((paged,) if VERSION != "earliest" else ()):
        path = OUT / f"{case.__name__}-{VERSION}.h5"
        with h5py.File(path, "w", libver=VERSIONS[VERSION]) as made:
            case(made)
        (OUT / f"{path.stem}.json").write_text(json.dumps(expect(path)))


def special(name, case, libver, prepare):
    """Creates a file with creation properties that h5py.File does not offer."""
    path = OUT / f"{name}.h5"
    fcpl, fapl = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    fapl.set_libver_bounds(libver, h5py.h5f.LIBVER_LATEST)
    prepare(fcpl)
    with h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl)) as made:
        case(made)
    (OUT / f"{path.stem}.json").write_text(json.dumps(expect(path)))


def share(fcpl):
    assert HDF5.H5Pset_shared_mesg_nindexes(fcpl.id, 2) >= 0
    # Types and spaces in one index, attributes, fill values and pipelines in the other, whatever their size.
    assert HDF5.H5Pset_shared_mesg_index(fcpl.id, 0, 1 << 1 | 1 << 3, 1) >= 0
    assert HDF5.H5Pset_shared_mesg_index(fcpl.id, 1, 1 << 5 | 1 << 11 | 1 << 12, 1) >= 0


for VERSION in ("earliest", "latest"):
    bound = h5py.h5f.LIBVER_EARLIEST if VERSION == "earliest" else h5py.h5f.LIBVER_LATEST
    for case in (compounds, strings, references):
        special(f"shared-{case.__name__}-{VERSION}", case, bound, share)
        if case is not references:  # libhdf5 cannot follow its own in such files
            special(f"narrow-{case.__name__}-{VERSION}", case, bound, lambda fcpl: fcpl.set_sizes(4, 4))
    special(f"narrow-types-{VERSION}", types, bound, lambda fcpl: fcpl.set_sizes(4, 8))
VERSION = "earliest"
special("narrow-grids", grids, h5py.h5f.LIBVER_EARLIEST, lambda fcpl: fcpl.set_sizes(4, 4))
netcdf(OUT / "netcdf.h5")
(OUT / "netcdf.json").write_text(json.dumps(expect(OUT / "netcdf.h5")))
