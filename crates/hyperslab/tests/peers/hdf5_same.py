"""HDF5 to HDF5 is the same file, better stored.

    hdf5_same.py build FOLDER       writes files with everything that HDF5 has, and prints their names
    hdf5_same.py compare A B        says where two files differ, and fails if they do
    hdf5_same.py check FOLDER TET   builds, converts with the program TET, compares
    hdf5_same.py dangling FILE      writes a file with references to an object that is gone
    hdf5_same.py edit FILE          changes everything in a file with h5py, and reads it again
    hdf5_same.py mutants FOLDER     changes a file in one way after the other, and fails if one is not noticed

The comparison walks everything that can be reached with h5py's low-level interface: links, types, spaces, properties of
creation, attributes, values. Objects are told by their addresses, so that two paths to one object must stay so.
"""
import ctypes, os, shutil, subprocess, sys

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5l, h5o, h5p, h5r, h5s, h5t


# --- building ---------------------------------------------------------------------------------------------------------


def raw_dataset(where, name, tid, values, shape=None, dcpl=None, space=None):
    """A dataset of a file type, from bytes in that type."""
    space = space or h5s.create_simple(shape)
    dset = h5d.create(where.id, name.encode(), tid, space, dcpl=dcpl)
    if values is not None:
        dset.write(h5s.ALL, h5s.ALL, values, tid)
    return dset


def raw_attribute(where, name, tid, values, shape=None, space=None):
    space = space or (h5s.create(h5s.SCALAR) if shape is None else h5s.create_simple(shape))
    attr = h5a.create(where.id, name.encode(), tid, space)
    if values is not None:
        attr.write(values, tid)
    return attr


def void(size, count, seed=1):
    data = np.random.default_rng(seed).integers(0, 120, size * count, dtype="u1")
    return data.view(f"V{size}")


def links(path, folder):
    with h5py.File(f"{folder}/other.h5", "w") as f:
        f["x"] = np.arange(5)
    with h5py.File(path, "w", libver="latest") as f:
        f["big"] = np.arange(100_000, dtype="f8")
        for n in range(5):
            f[f"again{n}"] = f["big"]
        g = f.create_group("g/deep")
        g["v"] = [1, 2, 3]
        f["z/g2"] = g
        g["up"] = f["g"]
        g["root"] = f["/"]
        g["self"] = g
        f["soft"] = h5py.SoftLink("/g/deep/v")
        f["g/relative"] = h5py.SoftLink("deep/v")
        f["g/group"] = h5py.SoftLink("/g/deep")
        f["dangling"] = h5py.SoftLink("/nowhere/at/all")
        f["external"] = h5py.ExternalLink("other.h5", "/x")
        f["missing"] = h5py.ExternalLink("missing.h5", "/a/b")
        f["größe"] = np.arange(3)
        f["größe2"] = f["größe"]
        many = f.create_group("many")
        for n in range(40):
            many[f"n{n:03}"] = f["big"] if n % 3 else h5py.SoftLink(f"n{n + 1:03}")


def references(path, folder):
    with h5py.File(path, "w") as f:
        f["a"] = np.arange(24.0).reshape(4, 6)
        f["g/b"] = np.arange(10)
        f["h"] = f["g"]
        f["gone"] = 1
        refs = np.array([f["a"].ref, f["g/b"].ref, f["g"].ref, f["/"].ref, h5py.Reference(), f["gone"].ref], dtype=h5py.ref_dtype)
        f.attrs["refs"] = refs[:5]
        f["g"].attrs["one"] = f["a"].ref
        f["a"].attrs["null"] = h5py.Reference()
        f["refs"] = refs[:5]
        f.create_dataset("grid", data=np.resize(refs[:4], (30, 4)), chunks=(8, 4), compression="gzip")
        regions = np.array([f["a"].regionref[1:3, 2:4], f["g/b"].regionref[::3], f["a"].regionref[0], h5py.RegionReference()],
                           dtype=h5py.regionref_dtype)
        f["regions"] = regions
        f.attrs["region"] = f["a"].regionref[:2, 1:5:2]
        f.attrs["regions"] = regions
        space = f["a"].id.get_space()
        space.select_elements(np.array([[0, 0], [3, 5], [2, 1]], dtype="u8"))
        f.attrs.create("points", h5r.create(f.id, b"a", h5r.DATASET_REGION, space), dtype=h5py.regionref_dtype)
        both = np.zeros(3, dtype=[("n", "i4"), ("o", h5py.ref_dtype), ("r", h5py.regionref_dtype)])
        both["n"] = [1, 2, 3]
        both["o"] = [f["a"].ref, f["g/b"].ref, f["g"].ref]
        both["r"] = regions[:3]
        f["both"] = both
        f.attrs["both"] = both
        lists = f.create_dataset("lists", (3,), dtype=h5py.vlen_dtype(h5py.ref_dtype))
        lists[0] = np.array([f["a"].ref, f["g/b"].ref], dtype=h5py.ref_dtype)
        lists[2] = np.array([f["g"].ref], dtype=h5py.ref_dtype)
        for n, name in enumerate(["y", "x"]):
            scale = f.create_dataset(name, data=np.arange([4, 6][n]))
            scale.make_scale(f"axis {name}")
            f["a"].dims[n].attach_scale(scale)
        f["a"].dims[0].label = "rows"


def dangling(path):
    with h5py.File(path, "w") as f:
        f["a"] = np.arange(3)
        f["gone"] = 1
        f["refs"] = np.array([f["a"].ref, f["gone"].ref], dtype=h5py.ref_dtype)
        f.attrs["ref"] = f["gone"].ref
        f.attrs["region"] = f["gone"].regionref[()]
        del f["gone"]


def integer(base, size=None, precision=None, offset=0, order=None, sign=None):
    tid = base.copy()
    if size:
        tid.set_size(size)
    if precision:
        tid.set_precision(precision)
    if offset:
        tid.set_offset(offset)
    if order is not None:
        tid.set_order(order)
    if sign is not None:
        tid.set_sign(sign)
    return tid


def small_float():
    """24 bits in 4 bytes, big-endian."""
    tid = h5t.IEEE_F32LE.copy()
    tid.set_fields(23, 15, 8, 0, 15)
    tid.set_ebias(127)
    tid.set_precision(24)
    tid.set_order(h5t.ORDER_BE)
    return tid


def bfloat16():
    tid = h5t.IEEE_F32LE.copy()
    tid.set_fields(15, 7, 8, 0, 7)
    tid.set_precision(16)
    tid.set_size(2)
    return tid


def quad():
    """The 128-bit float of IEEE 754, which NumPy has on other machines."""
    tid = h5t.IEEE_F64LE.copy()
    tid.set_size(16)
    tid.set_precision(128)
    tid.set_fields(127, 112, 15, 0, 112)
    tid.set_ebias(16383)
    return tid


def string(size, pad, cset):
    tid = h5t.C_S1.copy()
    tid.set_size(size)
    tid.set_strpad(pad)
    tid.set_cset(cset)
    return tid


def opaque(size, tag):
    tid = h5t.create(h5t.OPAQUE, size)
    tid.set_tag(tag)
    return tid


def enum(base, members):
    tid = h5t.enum_create(base)
    for name, value in members:
        tid.enum_insert(name, value)
    return tid


def compound(size, members):
    tid = h5t.create(h5t.COMPOUND, size)
    for name, offset, member in members:
        tid.insert(name, offset, member)
    return tid


def time_type(order):
    return {"<": h5t.UNIX_D64LE, ">": h5t.UNIX_D32BE}[order].copy()


def fixed_types():
    inner = compound(24, [(b"p", 4, h5t.STD_I16BE), (b"q", 9, h5t.IEEE_F64LE), (b"s", 20, string(3, h5t.STR_SPACEPAD, h5t.CSET_ASCII))])
    types = {
        "i2be": h5t.STD_I16BE, "u8be": h5t.STD_U64BE, "f4be": h5t.IEEE_F32BE, "f8be": h5t.IEEE_F64BE, "f2": h5t.IEEE_F16LE,
        "i1": h5t.STD_I8LE, "u1be": h5t.STD_U8BE, "i1be": h5t.STD_I8BE, "ld": h5t.NATIVE_LDOUBLE,
        "i24": integer(h5t.STD_I32LE, 3, 24), "u24be": integer(h5t.STD_U32BE, 3, 24),
        "i20at4": integer(h5t.STD_I32LE, 4, 20, 4), "u12": integer(h5t.STD_U16LE, 2, 12), "i40be": integer(h5t.STD_I64BE, 5, 40),
        "i100": integer(h5t.STD_I64LE, 16, 100),
        "f24be": small_float(), "bf16": bfloat16(), "quad": quad(),
        "b8": h5t.STD_B8LE, "b16be": h5t.STD_B16BE, "b64": h5t.STD_B64LE,
        "t8": time_type("<"), "t4be": time_type(">"),
        "opaque": opaque(7, b"my own tag"), "opaque0": opaque(3, b""), "m8": opaque(8, b"NUMPY:<M8[s]"),
        "bool": h5t.py_create(np.dtype("?"), logical=True),
        "e2be": enum(h5t.STD_I16BE, [(b"RED", -3), (b"GREEN", 5), ("bläu".encode(), 300)]),
        "e8": enum(h5t.STD_U8LE, [(b"A", 1), (b"B", 2)]),
        "array": h5t.array_create(h5t.STD_I32BE, (2, 3)),
        "carray": compound(40, [(b"a", 2, h5t.array_create(h5t.IEEE_F32BE, (3,))), (b"b", 20, h5t.array_create(h5t.STD_U8LE, (2, 4)))]),
        "inner": inner,
        "nested": compound(64, [(b"in", 8, inner), (b"e", 40, enum(h5t.STD_I8LE, [(b"N", -1), (b"Y", 1)])), (b"i", 44, integer(h5t.STD_I32LE, 3, 24))]),
        "gaps": compound(32, [(b"x", 24, h5t.STD_I32LE), (b"y", 4, h5t.IEEE_F64LE)]),
        "c64": h5t.py_create(np.dtype("c8")), "c128be": compound(16, [(b"r", 0, h5t.IEEE_F64BE), (b"i", 8, h5t.IEEE_F64BE)]),
    }
    if hasattr(h5t, "COMPLEX_IEEE_F32LE"):
        types["complex"] = h5t.COMPLEX_IEEE_F32LE
    for pad, pad_name in [(h5t.STR_NULLTERM, "term"), (h5t.STR_NULLPAD, "null"), (h5t.STR_SPACEPAD, "space")]:
        for cset, cset_name in [(h5t.CSET_ASCII, "ascii"), (h5t.CSET_UTF8, "utf8")]:
            types[f"s_{pad_name}_{cset_name}"] = string(6, pad, cset)
    return types


def values_of(name, tid, count):
    size = tid.get_size()
    if name == "bool":
        return (np.arange(count, dtype="u1") % 2).view("V1")
    if name == "e2be":
        return np.resize(np.array([-3, 5, 300], ">i2"), count).view("V2")
    if name == "e8":
        return np.resize(np.array([1, 2], "u1"), count).view("V1")
    if name == "f24be":
        # The byte that does not count is zero.
        data = void(size, count).view("u1").reshape(count, size)
        data[:, 0] = 0
        return data.view("V4").reshape(count)
    if name == "ld":
        return np.linspace(-3, 4e300, count, dtype="longdouble").view("V16")
    if name.startswith("s_"):
        pad = b" " if "space" in name else b"\0"
        return np.frombuffer(b"".join((b"t%d" % n).ljust(6, pad) for n in range(count)), "V6").copy()
    if name in ("inner", "nested"):
        data = np.zeros(count * size, "u1").reshape(count, size)
        at = 8 if name == "nested" else 0
        data[:, at + 5] = np.arange(count)
        data[:, at + 9 : at + 17] = np.arange(count, dtype="f8").view("u1").reshape(count, 8)
        data[:, at + 20 : at + 23] = np.frombuffer(b"ab ", "u1")
        if name == "nested":
            data[:, 40] = 1
            data[:, 44] = np.arange(count)
        return data.view(f"V{size}").reshape(count)
    if name in ("i20at4", "u12", "i100", "gaps", "carray"):
        # Bits and bytes that do not count are zero, as libhdf5 leaves them.
        if name == "i20at4":
            return ((np.arange(count, dtype="u4") * 7 - 5 & 0xFFFFF) << 4).astype("<u4").view("V4")
        if name == "u12":
            return (np.arange(count, dtype="<u2") * 31).view("V2")
        if name == "i100":
            data = np.zeros((count, 16), "u1")
            data[:, 0] = np.arange(count)
            return data.view("V16").reshape(count)
        data = np.zeros((count, size), "u1")
        data[:, 4:12] = np.arange(count, dtype="f8").view("u1").reshape(count, 8)
        return data.view(f"V{size}").reshape(count)
    return void(size, count)


def types(path, folder):
    with h5py.File(path, "w") as f:
        for name, tid in fixed_types().items():
            values = values_of(name, tid, 10)
            raw_dataset(f, name, tid, values, (10,))
            dcpl = h5p.create(h5p.DATASET_CREATE)
            dcpl.set_chunk((3,))
            dcpl.set_deflate(4)
            raw_dataset(f, name + "_chunked", tid, values, (10,), dcpl)
            raw_attribute(f, name, tid, values[:1])
            raw_attribute(f["i2be"], name, tid, values[:4], (2, 2))
        g = f.create_group("variable")
        text = ["", "one", "zwölf", "a much longer text than the others"]
        for cset in ("ascii", "utf-8"):
            own = [t.encode("ascii", "replace").decode() if cset == "ascii" else t for t in text]
            g.create_dataset(f"text {cset}", data=own, dtype=h5py.string_dtype(cset))
            g.attrs.create(f"text {cset}", own, dtype=h5py.string_dtype(cset))
            g.attrs.create(f"one {cset}", own[1], dtype=h5py.string_dtype(cset))
        tid = h5t.C_S1.copy()
        tid.set_size(h5t.VARIABLE)
        tid.set_strpad(h5t.STR_SPACEPAD)
        h5a.create(g.id, b"padded", tid, h5s.create(h5s.SCALAR)).write(np.array(b"x", dtype=h5py.string_dtype("ascii")))
        g.create_dataset("lists", (3,), dtype=h5py.vlen_dtype(">i2"))[:] = [np.array([1, 2], ">i2"), np.array([], ">i2"), np.array([7], ">i2")]
        g.attrs.create("lists", np.array([np.array([1.5]), np.array([2.5, 3.5])], dtype=object), dtype=h5py.vlen_dtype("f4"))
        mixed = np.dtype([("name", h5py.string_dtype()), ("n", ">i4"), ("values", h5py.vlen_dtype("f8")), ("fixed", "S5")])
        rows = np.zeros(2, mixed)
        rows["name"], rows["n"], rows["fixed"] = ["first", "zweite ü"], [1, 2], [b"ab", b"abcde"]
        rows["values"][0], rows["values"][1] = np.array([1.0, 2.0]), np.array([3.0])
        g["mixed"] = rows
        g.attrs["mixed"] = rows
        # NumPy text.
        f.attrs["numpy bytes"] = np.array([b"a", b"bcd"])
        f.attrs["numpy text"] = np.array(["a", "bcd"], dtype=object)
        f["numpy bytes"] = np.array([b"a", b"bcd"], dtype="S4")
        f.attrs["empty text"] = ""
        f.attrs["empty"] = h5py.Empty("f4")
        f.attrs["empty string"] = h5py.Empty(h5py.string_dtype())
        f.attrs["no elements"] = np.zeros((0, 3), "i2")
        f.attrs["scalar"] = np.float32(1.5)
        f.attrs["one element"] = np.array([1.5], "f4")
        f["empty"] = h5py.Empty(">i4")
        f["no elements"] = np.zeros((0, 3), ">i2")
        f.create_dataset("no elements yet", (0, 3), ">i2", maxshape=(None, 3), chunks=(5, 3))
        f["scalar"] = np.int16(7)
        f["scalar text"] = "text ü"
        f["one element"] = [7]


def named(path, folder):
    with h5py.File(path, "w") as f:
        f["t/point"] = np.dtype([("x", ">f4"), ("y", "f8")])
        f["t/point"].attrs["about"] = "a point"
        f["t/alias"] = f["t/point"]
        f["t/number"] = np.dtype(">i2")
        f["colour"] = h5py.enum_dtype({"RED": 0, "GREEN": 1}, basetype="i1")
        f["points"] = np.zeros(3, f["t/point"].dtype)
        f.create_dataset("typed", (3,), dtype=f["t/point"])
        f.create_dataset("a/typed", data=np.arange(20), dtype=f["t/number"], chunks=(6,), compression="gzip")
        f.create_dataset("coloured", data=[0, 1, 1], dtype=f["colour"])
        f.attrs.create("number", 5, dtype=f["t/number"])
        f["a"].attrs.create("points", np.ones(2, f["t/point"].dtype), dtype=f["t/point"])
        f["text"] = h5py.string_dtype()
        f.create_dataset("texts", data=["a", "bc"], dtype=f["text"])
        f.attrs["type"] = f["t/number"].ref


def properties(path, folder, libver):
    with h5py.File(path, "w", libver=libver, track_order=False) as f:
        for name, order in [("untracked", 0), ("tracked", h5p.CRT_ORDER_TRACKED), ("indexed", h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)]:
            gcpl = h5p.create(h5p.GROUP_CREATE)
            gcpl.set_link_creation_order(order)
            gcpl.set_attr_creation_order(order)
            for many in (3, 30):
                g = h5py.Group(h5g.create(f.id, f"{name}{many}".encode(), gcpl=gcpl))
                for n in reversed(range(many)):
                    g[f"d{n}"] = n
                    g.attrs[f"a{n}"] = f"text {n}"
            dcpl = h5p.create(h5p.DATASET_CREATE)
            dcpl.set_attr_creation_order(order)
            for many in (3, 12):
                d = h5py.Dataset(h5d.create(f.id, f"{name} dataset {many}".encode(), h5t.STD_I32LE, h5s.create_simple((2,)), dcpl))
                for n in reversed(range(many)):
                    d.attrs[f"a{n}"] = n
        h5o.set_comment(f["untracked3"].id, b"a comment on it")
        for fill in (None, 0, 7):
            for time in (h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_NEVER, h5d.FILL_TIME_IFSET):
                for alloc in (h5d.ALLOC_TIME_DEFAULT, h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR):
                    for layout in (h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED):
                        if layout == h5d.COMPACT and alloc not in (h5d.ALLOC_TIME_DEFAULT, h5d.ALLOC_TIME_EARLY):
                            continue
                        if layout == h5d.CONTIGUOUS and alloc == h5d.ALLOC_TIME_INCR:
                            continue
                        dcpl = h5p.create(h5p.DATASET_CREATE)
                        dcpl.set_layout(layout)
                        if layout == h5d.CHUNKED:
                            dcpl.set_chunk((4,))
                        if fill is not None:
                            dcpl.set_fill_value(np.array(fill, "i4"))
                        dcpl.set_fill_time(time)
                        dcpl.set_alloc_time(alloc)
                        name = f"fill {fill} {time} {alloc} {layout}"
                        d = h5d.create(f.id, name.encode(), h5t.STD_I32LE, h5s.create_simple((10,)), dcpl)
                        if time != h5d.FILL_TIME_NEVER:
                            d.write(h5s.create_simple((4,)), slab(d, 4), np.arange(4, dtype="i4"))
                        else:
                            d.write(h5s.ALL, h5s.ALL, np.arange(10, dtype="i4"))
        f.create_dataset("text fill", (4,), dtype=h5py.string_dtype(), fillvalue="none", chunks=(2,))
        # libhdf5 2.0 cannot read never-written cells of such a dataset in a file that is open for reading.
        f["text fill"][:] = "some"
        data = np.arange(600, dtype="i4").reshape(30, 20)
        filters = {
            "gzip9": dict(compression="gzip", compression_opts=9), "shuffle": dict(compression="gzip", shuffle=True),
            "lzf": dict(compression="lzf"), "fletcher": dict(fletcher32=True), "scale": dict(scaleoffset=0),
            "all": dict(shuffle=True, compression="gzip", compression_opts=1, fletcher32=True),
        }
        if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            filters["szip"] = dict(compression="szip", compression_opts=("nn", 16))
        for name, options in filters.items():
            f.create_dataset(f"filter {name}", data=data, chunks=(7, 20), maxshape=(None, 20), **options)
        f.create_dataset("filter scale float", data=data * 0.125, chunks=(7, 20), scaleoffset=3)
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((7, 20))
        if hasattr(h5py.h5z, "FILTER_NBIT"):
            dcpl.set_filter(h5py.h5z.FILTER_NBIT, 0, ())
            raw_dataset(f, "filter nbit", integer(h5t.STD_I32LE, 4, 17), (data % 1000).copy().view("V4"), (30, 20), dcpl)
        for number, most in enumerate([(None, None), (40, None), (40, 30), (30, 20), (None, 20)]):
            f.create_dataset(f"most {number}", data=data, chunks=(7, 6), maxshape=most)
        f.create_dataset("sparse", (1000, 1000), "f4", chunks=(100, 100))[5, 5] = 1
        f.create_dataset("contiguous never written", (1000,), "f8")
        # A filter that nobody has: chunks are only carried.
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((10,))
        dcpl.set_filter(40_000, h5py.h5z.FLAG_OPTIONAL, (1, 2, 3))
        unknown = h5d.create(f.id, b"unknown filter", h5t.STD_I32BE, h5s.create_simple((30,)), dcpl)
        for start, mask in [(0, 0), (10, 1), (20, 0)]:
            unknown.write_direct_chunk((start,), bytes(range(40 if mask else 17)), mask)
        f.create_dataset("chunk beyond", (3,), "i4", chunks=(10,), maxshape=(None,))[:] = [1, 2, 3]


def slab(dset, count):
    space = dset.get_space()
    space.select_hyperslab((0,), (count,))
    return space


def virtual(path, folder):
    for n in range(3):
        with h5py.File(f"{folder}/part{n}.h5", "w") as f:
            f["data"] = np.arange(20.0).reshape(4, 5) + 100 * n
    layout = h5py.VirtualLayout(shape=(3, 4, 5), dtype="f8")
    for n in range(3):
        layout[n] = h5py.VirtualSource(f"part{n}.h5", "data", shape=(4, 5))
    with h5py.File(path, "w", libver="latest") as f:
        f.create_virtual_dataset("v", layout, fillvalue=-1)
        f["inside"] = np.arange(10)
        own = h5py.VirtualLayout(shape=(5,), dtype="i8")
        own[:] = h5py.VirtualSource(".", "inside", shape=(10,))[::2]
        f.create_virtual_dataset("own", own)
        f["v"].attrs["units"] = "K"


def external(path, folder):
    with h5py.File(path, "w") as f:
        f.create_dataset("raw", (100,), "<i4", external=[(f"{folder}/raw.bin", 0, 400)])[:] = np.arange(100)


def user_block(path, folder):
    with h5py.File(path, "w", userblock_size=1024) as f:
        f["a"] = np.arange(100)
        f["t"] = ["x", "yz"]
        f.attrs["ref"] = f["a"].ref
    with open(path, "r+b") as f:
        f.write(b"#!/bin/sh\n" + bytes(range(100)))


def netcdf(path, folder):
    import netCDF4
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        ds.createDimension("x", 4)
        ds.createDimension("bare", 3)
        t = ds.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = np.arange(5)
        v = ds.createVariable("g/v", "i2", ("time", "x"), zlib=True, fill_value=-9)
        v.units, v.levels = "K", [1, 2]
        v[:] = np.arange(20).reshape(5, 4)
        ds.createVariable("s", str, ("bare",))[:] = np.array(["a", "b", "ü"], dtype=object)
        ds.title = "title"
        kind = ds.createEnumType("i1", "kind", {"A": 0, "B": 1})
        ds.createVariable("k", kind, ("x",))[:] = [0, 1, 1, 0]


FILES = {
    "links.h5": links, "references.h5": references, "types.h5": types, "named.h5": named,
    "new.h5": lambda p, f: properties(p, f, "latest"), "old.h5": lambda p, f: properties(p, f, "earliest"),
    "virtual.h5": virtual, "external.h5": external, "block.h5": user_block, "netcdf.nc": netcdf,
}


# --- comparing --------------------------------------------------------------------------------------------------------


def describe(tid):
    """All that libhdf5 tells of a type."""
    c = tid.get_class()
    told = {"class": c, "size": tid.get_size()}
    for name in ["order", "precision", "offset", "pad", "sign", "fields", "ebias", "norm", "inpad", "strpad", "cset", "tag", "array_dims"]:
        if c == h5t.VLEN or (c == h5t.ENUM and name != "order"):
            continue
        try:
            told[name] = getattr(tid, f"get_{name}")()
        except (AttributeError, TypeError, ValueError, RuntimeError):
            pass
    if c == h5t.STRING:
        told["variable"] = tid.is_variable_str()
    if c in (h5t.VLEN, h5t.ARRAY, h5t.ENUM):
        told["base"] = describe(tid.get_super())
    if c == h5t.COMPOUND:
        told["members"] = [
            (tid.get_member_name(n), tid.get_member_offset(n), describe(tid.get_member_type(n))) for n in range(tid.get_nmembers())
        ]
    if c == h5t.ENUM:
        told["members"] = [(tid.get_member_name(n), tid.get_member_value(n)) for n in range(tid.get_nmembers())]
    return told


def has_pointers(tid):
    c = tid.get_class()
    if c in (h5t.VLEN, h5t.REFERENCE):
        return True
    if c == h5t.STRING:
        return tid.is_variable_str()
    if c == h5t.ARRAY:
        return has_pointers(tid.get_super())
    if c == h5t.COMPOUND:
        return any(has_pointers(tid.get_member_type(n)) for n in range(tid.get_nmembers()))
    return False


def space_of(space):
    kind = space.get_simple_extent_type()
    if kind != h5s.SIMPLE:
        return kind
    return kind, space.get_simple_extent_dims(), space.get_simple_extent_dims(True)


def order_of(plist, what):
    return getattr(plist, f"get_{what}_creation_order")()


def libhdf5():
    """The library that h5py has loaded: its own get_comment answers memory that is freed."""
    for line in open("/proc/self/maps"):
        path = line.split()[-1]
        if "libhdf5" in path and "_hl" not in path:
            library = ctypes.CDLL(path)
            library.H5Oget_comment.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t]
            library.H5Oget_comment.restype = ctypes.c_ssize_t
            return library
    raise RuntimeError("no libhdf5 is loaded")


LIBRARY = libhdf5()


def comment(x):
    size = LIBRARY.H5Oget_comment(x.id, None, 0)
    text = ctypes.create_string_buffer(size + 1)
    assert LIBRARY.H5Oget_comment(x.id, text, size + 1) == size
    return text.value


class Comparison:
    def __init__(self, a, b, skip=()):
        self.files = [h5py.File(a, "r"), h5py.File(b, "r")]
        self.same, self.pending, self.differences, self.count = {}, [], [], 0
        # Values may refer to objects that are only met later.
        self.late = []
        self.skip = set(skip)
        self.objects("/", *(h5o.open(f.id, b"/") for f in self.files))
        while self.pending:
            self.visit(*self.pending.pop())
        self.first = {b: a for a, b in self.same.items()}
        for values in self.late:
            self.values(*values)

    def check(self, path, what, a, b):
        self.count += 1
        if what.split(":")[0] in self.skip:
            return
        if a != b and not (isinstance(a, float) and a != a and b != b):
            self.differences.append(f"{path}: {what}: {str(a)[:300]} became {str(b)[:300]}")

    def objects(self, path, a, b):
        """Two objects must be the same; each is visited once."""
        ids = [h5o.get_info(x).addr for x in (a, b)]
        if ids[0] in self.same:
            self.check(path, "object", self.same[ids[0]], ids[1])
            return
        if ids[1] in self.same.values():
            self.differences.append(f"{path}: two objects became one")
        self.same[ids[0]] = ids[1]
        self.pending.append((path, a, b))

    def visit(self, path, a, b):
        infos = [h5o.get_info(x) for x in (a, b)]
        self.check(path, "kind", *(i.type for i in infos))
        self.check(path, "reference count", *(i.rc for i in infos))
        self.check(path, "comment", *(comment(x) for x in (a, b)))
        if infos[0].type != infos[1].type:
            return
        {h5o.TYPE_GROUP: self.group, h5o.TYPE_DATASET: self.dataset, h5o.TYPE_NAMED_DATATYPE: self.types}[infos[0].type](path, a, b)
        self.attributes(path, a, b)

    def group(self, path, a, b):
        plists = [x.get_create_plist() for x in (a, b)]
        self.check(path, "link order", *(order_of(p, "link") for p in plists))
        self.check(path, "attribute order", *(order_of(p, "attr") for p in plists))
        kinds = [h5py.h5.INDEX_NAME] + ([h5py.h5.INDEX_CRT_ORDER] if all(order_of(p, "link") & h5p.CRT_ORDER_INDEXED for p in plists) else [])
        for kind in kinds:
            names = []
            for x in (a, b):
                found = []
                x.links.iterate(found.append, idx_type=kind)
                names.append(found)
            self.check(path, f"names:{kind}", *names)
        for name in set(names[0]) & set(names[1]):
            below = f"{path.rstrip('/')}/{name.decode()}"
            infos = [x.links.get_info(name) for x in (a, b)]
            self.check(below, "link", *(i.type for i in infos))
            self.check(below, "charset of the name", *(i.cset for i in infos))
            if infos[0].type != infos[1].type:
                continue
            if infos[0].type == h5l.TYPE_HARD:
                self.objects(below, *(h5o.open(x, name) for x in (a, b)))
            else:
                self.check(below, "target", *(x.links.get_val(name) for x in (a, b)))

    def types(self, path, a, b):
        self.check(path, "type", describe(a), describe(b))
        self.check(path, "equal types", True, a == b)
        self.check(path, "committed", a.committed(), b.committed())
        if a.committed() and b.committed():
            self.objects(f"{path} (its type)", a, b)

    def dataset(self, path, a, b):
        tids = [x.get_type() for x in (a, b)]
        self.types(path, *tids)
        self.check(path, "space", *(space_of(x.get_space()) for x in (a, b)))
        self.creation(path, *(x.get_create_plist() for x in (a, b)), tids[0])
        if tids[0].get_class() == h5t.STRING and a.get_space().get_simple_extent_type() != h5s.NULL:
            self.check(path, "text fill", *(h5py.Dataset(x).fillvalue for x in (a, b)))
        if not a.get_create_plist().all_filters_avail():
            starts = [a.get_chunk_info(n).chunk_offset for n in range(a.get_num_chunks())]
            self.check(path, "stored chunks", *([x.read_direct_chunk(start) for start in starts] for x in (a, b)))
            self.check(path, "number of chunks", a.get_num_chunks(), b.get_num_chunks())
        elif a.get_space().get_simple_extent_type() != h5s.NULL:
            self.late.append((path, tids, lambda x, out, tid: x.read(h5s.ALL, h5s.ALL, out, tid), a, b))

    def creation(self, path, a, b, tid):
        self.check(path, "layout", a.get_layout(), b.get_layout())
        if a.get_layout() == b.get_layout() == h5d.CHUNKED:
            self.check(path, "chunk", a.get_chunk(), b.get_chunk())
        self.check(path, "filters", *([p.get_filter(n) for n in range(p.get_nfilters())] for p in (a, b)))
        self.check(path, "fill_value_defined", a.fill_value_defined(), b.fill_value_defined())
        for what in ["get_fill_time", "get_alloc_time", "get_attr_creation_order", "get_external_count"]:
            self.check(path, what, *(getattr(p, what)() for p in (a, b)))
        # NumPy has no integers and floats of odd sizes.
        is_number = tid.get_class() in (h5t.INTEGER, h5t.FLOAT) and tid.get_size() in (1, 2, 4, 8)
        if is_number and tid.get_precision() == 8 * tid.get_size() and a.fill_value_defined():
            fills = []
            for p in (a, b):
                value = np.zeros((), tid.dtype)
                p.get_fill_value(value)
                fills.append(value.tobytes())
            self.check(path, "fill value", *fills)
        if a.get_layout() == h5d.VIRTUAL and b.get_layout() == h5d.VIRTUAL:
            told = []
            for p in (a, b):
                told.append([
                    (p.get_virtual_filename(n), p.get_virtual_dsetname(n), selection(p.get_virtual_srcspace(n)), selection(p.get_virtual_vspace(n)))
                    for n in range(p.get_virtual_count())
                ])
            self.check(path, "virtual sources", *told)

    def values(self, path, tids, read, a, b):
        told = []
        for x, tid in ((a, tids[0]), (b, tids[1])):
            out = read_values(x, lambda out, tid: read(x, out, tid))
            told.append(self.plain(path, x, out) if has_pointers(tid) else out.tobytes())
        self.check(path, "values", *told)

    def plain(self, path, owner, value):
        """Values with references as what they lead to, by address in the first file."""
        if isinstance(value, np.ndarray):
            if value.dtype.names:
                return [tuple(self.plain(path, owner, row[name]) for name in value.dtype.names) for row in value.reshape(-1)]
            return [self.plain(path, owner, item) for item in value.reshape(-1)]
        if isinstance(value, (h5r.Reference, h5r.RegionReference)):
            if not value:
                return "null"
            target = h5r.dereference(value, owner)
            address = h5o.get_info(target).addr
            is_second = h5py.h5i.get_file_id(owner).name.decode() == self.files[1].filename
            told = ("to", self.first.get(address, "another object") if is_second else address)
            if isinstance(value, h5r.RegionReference):
                told += (selection(h5r.get_region(value, owner)),)
            return told
        if isinstance(value, np.void) and value.dtype.names:
            return tuple(self.plain(path, owner, value[name]) for name in value.dtype.names)
        return repr(value)

    def attributes(self, path, a, b):
        names = []
        for x in (a, b):
            found = []
            h5a.iterate(x, lambda name, *_: found.append(name), index_type=h5py.h5.INDEX_NAME)
            names.append(found)
        self.check(path, "attributes", *names)
        plists = [x.get_create_plist() for x in (a, b) if hasattr(x, "get_create_plist")]
        if plists and all(order_of(p, "attr") & h5p.CRT_ORDER_TRACKED for p in plists):
            orders = []
            for x in (a, b):
                found = []
                h5a.iterate(x, lambda name, *_: found.append(name), index_type=h5py.h5.INDEX_CRT_ORDER)
                orders.append(found)
            self.check(path, "attributes in order", *orders)
        for name in set(names[0]) & set(names[1]):
            at = f"{path}@{name.decode()}"
            own = [h5a.open(x, name) for x in (a, b)]
            tids = [x.get_type() for x in own]
            self.types(at, *tids)
            self.check(at, "space", *(space_of(x.get_space()) for x in own))
            self.check(at, "charset", *(h5a.get_info(x, name).cset for x in (a, b)))
            if own[0].get_space().get_simple_extent_type() != h5s.NULL and own[1].get_space().get_simple_extent_type() != h5s.NULL:
                self.late.append((at, tids, lambda x, out, tid: x.read(out, tid), *own))


def selection(space):
    kind = space.get_select_type()
    if kind == h5s.SEL_POINTS:
        return kind, space.get_select_elem_pointlist().tolist()
    if kind == h5s.SEL_HYPERSLABS:
        return kind, sorted(map(str, space.get_select_hyper_blocklist().tolist()))
    return kind


def retype(f, name, tid):
    """A dataset with the same values in another type."""
    values = f[name][()]
    del f[name]
    f.create_dataset(name, data=values, dtype=tid)


def relink(f, name):
    """A copy in the place of a link."""
    target = f[name]
    del f[name]
    f.copy(target, name)


def reattribute(f, name, value, **options):
    del f.attrs[name]
    f.attrs.create(name, value, **options)


MUTANTS = {
    "links.h5": {
        "a copy of a dataset": lambda f: relink(f, "again3"),
        "a copy of a group": lambda f: relink(f, "z/g2"),
        "a soft link to elsewhere": lambda f: (f.__delitem__("soft"), f.__setitem__("soft", h5py.SoftLink("/g/deep"))),
        "an external link to elsewhere": lambda f: (f.__delitem__("missing"), f.__setitem__("missing", h5py.ExternalLink("missing.h5", "/a"))),
        "a link less": lambda f: f.__delitem__("dangling"),
        "another value": lambda f: f["big"].__setitem__(99_999, -1),
    },
    "references.h5": {
        "a null reference": lambda f: f["refs"].__setitem__(1, h5py.Reference()),
        "a reference to another object": lambda f: f["refs"].__setitem__(1, f["a"].ref),
        "another region": lambda f: f.attrs.modify("region", f["a"].regionref[:2, 1:5]),
        "a reference in a list": lambda f: f["lists"].__setitem__(2, np.array([f["a"].ref], dtype=h5py.ref_dtype)),
        "a scale less": lambda f: f["a"].dims[0].detach_scale(f["y"]),
    },
    "types.h5": {
        "another byte order": lambda f: retype(f, "i2be", "<i2"),
        "another charset": lambda f: reattribute(f, "s_term_utf8", np.bytes_(b"t0")),
        "fixed text": lambda f: reattribute(f, "empty text", np.bytes_(b"x")),
        "no longer empty": lambda f: reattribute(f, "empty", np.zeros(0, "f4")),
        "an array for a scalar": lambda f: reattribute(f, "scalar", np.array([1.5], "f4")),
        "another name of a value": lambda f: retype(f, "e8", h5py.enum_dtype({"A": 1, "C": 2}, basetype="u1")),
    },
    "named.h5": {
        "a type of its own": lambda f: retype(f, "typed", f["t/point"].dtype),
        "an attribute's type": lambda f: reattribute(f, "number", 5, dtype=">i2"),
        "a type less": lambda f: f.__delitem__("t/alias"),
        "no attribute of a type": lambda f: f["t/point"].attrs.__delitem__("about"),
    },
    "new.h5": {
        "another comment": lambda f: h5o.set_comment(f["untracked3"].id, b"another"),
        "another order": lambda f: (f["indexed3"].__delitem__("d2"), f["indexed3"].__setitem__("d2", 2)),
        "another order of attributes": lambda f: (f["indexed3"].attrs.__delitem__("a2"), f["indexed3"].attrs.__setitem__("a2", "text 2")),
        "another fill": lambda f: refill(f, "most 0", fillvalue=5),
        "another chunk": lambda f: refill(f, "most 0", chunks=(7, 7)),
        "another limit": lambda f: refill(f, "most 0", maxshape=(None, 20)),
        "another filter": lambda f: refill(f, "most 0", compression="lzf"),
    },
}


def refill(f, name, **options):
    old = f[name]
    options = {"chunks": old.chunks, "maxshape": old.maxshape, **options}
    values = old[()]
    del f[name]
    f.create_dataset(name, data=values, **options)


def edit(path):
    """Goes on with a file as any program does: links and attributes come and go, datasets grow."""
    with h5py.File(path, "r+") as f:
        groups, datasets = [f], []
        f.visititems(lambda name, node: (groups if isinstance(node, h5py.Group) else datasets).append(node))
        for group in groups:
            group.attrs["new attribute"] = "text"
            for n in range(12):
                group.create_group(f"new group {n}")
            group["new dataset"] = np.arange(3)
            for name in list(group.attrs)[:2]:
                del group.attrs[name]
        for node in datasets:
            node.attrs["new attribute"] = [1, 2, 3]
            if isinstance(node, h5py.Dataset) and node.maxshape and None in node.maxshape and not node.is_virtual:
                node.resize(node.shape[0] + 5, 0)
                node[-1] = node[0] if node.shape[0] > 5 else 1
        for group in groups:
            for name in list(group)[:3]:
                if name != "new dataset":
                    del group[name]
    with h5py.File(path) as f:
        f.visititems(lambda name, node: read(node))


def read(node):
    """Reads an object's attributes and values."""
    for name in node.attrs:
        attribute = node.attrs.get_id(name)
        if attribute.get_space().get_simple_extent_type() != h5s.NULL:
            read_values(attribute, attribute.read)
    if isinstance(node, h5py.Dataset) and node.shape is not None and node.id.get_create_plist().all_filters_avail():
        read_values(node.id, lambda out, tid: node.id.read(h5s.ALL, h5s.ALL, out, tid))


def read_values(owner, read):
    tid, shape = owner.get_type(), owner.get_space().get_simple_extent_dims()
    if has_pointers(tid):
        out = np.empty(shape, tid.dtype)
        read(out, h5t.py_create(out.dtype))
    else:
        out = np.empty(shape, f"V{tid.get_size()}")
        read(out, tid)
    return out


def mutants(folder):
    """Is every change noticed?"""
    missed = []
    for name, changes in MUTANTS.items():
        path, changed = f"{folder}/{name}", f"{folder}/mutant.h5"
        FILES[name](path, folder)
        for what, change in changes.items():
            shutil.copyfile(path, changed)
            with h5py.File(changed, "r+") as f:
                change(f)
            if not Comparison(path, changed).differences:
                missed.append(f"{name}: {what}")
    print("\n".join(missed))
    return bool(missed)


def check(folder, tet):
    os.makedirs(f"{folder}/elsewhere", exist_ok=True)
    failed = False
    for name, build in FILES.items():
        path, out = f"{folder}/{name}", f"{folder}/out-{name}"
        build(path, folder)
        run = subprocess.run([tet, "convert", path, out, "--force"], capture_output=True, text=True)
        print(f"{name}: exit {run.returncode}", run.stderr.strip().replace("\n", "\n  "))
        if run.returncode:
            failed = True
            continue
        skip = {"external.h5": ("get_external_count",)}.get(name, ())
        found = Comparison(path, out, skip)
        print(f"  {found.count} comparisons, {len(found.differences)} differences, {os.path.getsize(path)} bytes became {os.path.getsize(out)}")
        for line in found.differences[:40]:
            print("   ", line)
        failed |= bool(found.differences)
        if name == "block.h5":
            same = open(path, "rb").read(1024) == open(out, "rb").read(1024)
            print("  user block is", "the same" if same else "another")
            failed |= not same
    return failed


if __name__ == "__main__":
    if sys.argv[1] == "build":
        for name, build in FILES.items():
            build(f"{sys.argv[2]}/{name}", sys.argv[2])
            print(name)
    elif sys.argv[1] == "compare":
        found = Comparison(*sys.argv[2:4], skip=sys.argv[4:])
        print("\n".join(found.differences))
        print(f"{found.count} comparisons", file=sys.stderr)
        sys.exit(bool(found.differences))
    elif sys.argv[1] == "dangling":
        dangling(sys.argv[2])
    elif sys.argv[1] == "edit":
        edit(sys.argv[2])
    elif sys.argv[1] == "mutants":
        sys.exit(mutants(sys.argv[2]))
    else:
        sys.exit(check(sys.argv[2], sys.argv[3]))
