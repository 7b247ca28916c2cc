"""Writes HDF5 files that use every feature of the format, with h5py."""
import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5o, h5p, h5r, h5s, h5t


def raw_dataset(where, name, tid, values, shape=None, dcpl=None, space=None):
    """Creates a dataset with a file type, from bytes of that type."""
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
        # The unused byte is zero.
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
        # Unused bits and bytes are zero, as libhdf5 leaves them.
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
        # libhdf5 2.0 cannot read unwritten cells of such a dataset in a file that is open for reading.
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
        # An unknown filter: chunks can only be copied.
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
