"""Writes files whose meaning is easily lost in a conversion, and checks the results with the real libraries.

    fidelity.py make FOLDER             writes the sources
    fidelity.py check FOLDER CASE       checks the results of one case; prints a line per error
"""
import sys, warnings

import h5netcdf, h5py, hdf5plugin, netCDF4, numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr
import zarr

warnings.simplefilter("ignore")
command, folder = sys.argv[1:3]


def at(name):
    return f"{folder}/{name}"


def netcdf(name, kind="NETCDF4", **dimensions):
    ds = netCDF4.Dataset(at(name), "w", format=kind)
    for dimension, length in dimensions.items():
        ds.createDimension(dimension, length)
    return ds


def zarr_array(name, values, version=2, fill=None, dims=("x",), attributes=None, **options):
    group = zarr.create_group(at(name), zarr_format=version)
    if version == 3:
        options["dimension_names"] = dims
    array = group.create_array("v", shape=values.shape, dtype=values.dtype, fill_value=fill, **options)
    array[...] = values
    array.attrs.update({"_ARRAY_DIMENSIONS": list(dims)} if version == 2 else {})
    array.attrs.update(attributes or {})
    return group


def opened(name, engine=None):
    """Loads the data set and closes the file, which is when the NetCDF library frees the fill values."""
    engine = engine or ("zarr" if "zarr" in name else "netcdf4")
    with xr.open_dataset(at(name), engine=engine, chunks=None) as ds:
        return ds.load()


def expect(what, found, wanted):
    same = np.array_equal(found, wanted, equal_nan=np.asarray(found).dtype.kind in "fc") if isinstance(wanted, np.ndarray) else found == wanted
    if not same:
        print(f"{what}: {found!r}, expected {wanted!r}")


# Booleans: the fill value does not mark missing values.

def make_booleans():
    zarr_array("booleans.zarr2", np.array([True, False, True]), fill=False, compressors=None)


def check_booleans():
    for name in ("booleans.nc", "booleans.nc3"):
        v = opened(name).v
        expect(name, (v.dtype, v.values.tolist()), (np.dtype(bool), [True, False, True]))


# Variables named like dimensions.

def make_names():
    with netcdf("names.nc", y=2, x=3) as ds:
        ds.createVariable("y", "f4", ("x",))[:] = [1, 2, 3]
        ds.createVariable("v", "f4", ("y", "x"))[:] = np.arange(6).reshape(2, 3)
        ds.createVariable("x", "f4", ())[...] = 5
    with netcdf("coordinates.nc3", "NETCDF3_CLASSIC", station=2, len=3, y=2, x=4) as ds:
        ds.createVariable("station", "S1", ("station", "len"))[:] = np.array([list("abc"), list("de ")], "S1")
        ds.createVariable("y", "f4", ("y", "x"))[:] = np.arange(8).reshape(2, 4)
        ds.createVariable("v", "f4", ("y", "x"))[:] = np.arange(8).reshape(2, 4)
        ds.createVariable("t", "i4", ("station", "y"))[:] = np.arange(4).reshape(2, 2)


def check_names():
    dims = {"y": ("x",), "v": ("y", "x"), "x": ()}
    for name in ("names-copy.nc", "names-part.nc", "names.nc3", "names-from-nc3.nc", "names-from-zarr.nc", "names-edited.nc"):
        with netCDF4.Dataset(at(name)) as ds:
            expect(name, {key: v.dimensions for key, v in ds.variables.items()}, dims)
            expect(name, {key: len(d) for key, d in ds.dimensions.items()}, {"y": 2, "x": 3})
            expect(f"{name} y", ds["y"][:].data, np.array([1, 2, 3], "f4"))
            expect(f"{name} v", ds["v"][:].data, np.arange(6, dtype="f4").reshape(2, 3))
    with h5netcdf.File(at("names-from-nc3.nc")) as ds:
        expect("h5netcdf", {key: v.dimensions for key, v in ds.variables.items()}, dims)
    expect("zarr", {key: v.metadata.dimension_names for key, v in zarr.open(at("names.zarr3")).arrays()}, dims | {"x": None})


def check_coordinates():
    dims = {"station": ("station", "len"), "y": ("y", "x"), "v": ("y", "x"), "t": ("station", "y")}
    for name in ("coordinates.nc", "coordinates-from-zarr.nc"):
        with netCDF4.Dataset(at(name)) as ds:
            expect(name, {key: v.dimensions for key, v in ds.variables.items()}, dims)
            expect(name, {key: len(d) for key, d in ds.dimensions.items()}, {"station": 2, "len": 3, "y": 2, "x": 4})
        with h5netcdf.File(at(name)) as ds:
            expect(f"{name} by h5netcdf", {key: v.dimensions for key, v in ds.variables.items()}, dims)
        v = opened(name, "h5netcdf").v
        expect(name, v.values, np.arange(8, dtype="f4").reshape(2, 4))


# Markers of missing values in types that a format lacks.

def make_markers():
    for version in (2, 3):
        ds = xr.Dataset({"v": ("x", np.array([1, np.nan, 3]), {"valid_min": np.float16(0.5)})})
        encoding = {"v": {"dtype": "f2", "_FillValue": np.float16(-999)}}
        ds.to_zarr(at(f"half.zarr{version}"), encoding=encoding, zarr_format=version)
    zarr_array("complex.zarr2", np.array([1 + 2j, 0, 3]), fill=0)
    zarr_array("bytes.zarr2", np.array([b"a", b"zz"], "S2"), fill=b"zz")
    zarr_array("fixed.zarr2", np.array(["a", "zz"], "U2"), fill="zz")
    zarr_array("texts.zarr2", np.array(["a", "zz"], object).astype(np.dtypes.StringDType()), fill="zz")
    with netcdf("characters.nc", x=2, n=4) as ds:
        ds.createVariable("v", "S1", ("x", "n"), fill_value=b" ")[:] = np.array([list("ab  "), list("cdef")], "S1")


def check_markers():
    for version in (2, 3):
        for ending in ("nc", "nc3"):
            v = opened(f"half{version}.{ending}").v
            expect(f"half{version}.{ending}", v.values, np.array([1, np.nan, 3], "f4"))
            expect(f"half{version}.{ending}", v.attrs, {"valid_min": 0.5})
    expect("complex.nc", opened("complex.nc", "h5netcdf").v.values, np.array([1 + 2j, 0, 3]))
    opened("complex.nc")
    for kind in ("fixed", "texts"):
        for name in (f"{kind}.zarr3", f"{kind}.nc"):
            first, last = opened(name).v.values
            expect(name, (first, last != last), ("a", True))
    # xarray reads no marker for bytes, and characters cannot mark a whole text.
    expect("bytes.zarr3", opened("bytes.zarr3").v.values.tolist(), [b"a", b"zz"])
    for kind in ("bytes", "fixed", "texts"):
        found = opened(f"{kind}.nc3").v.values.tolist()
        expect(f"{kind}.nc3", found, [b"a", b"zz"] if kind == "bytes" else ["a", "zz"])
    opened("bytes.nc")
    for name in ("characters.zarr2", "characters.zarr3", "characters.nc3", "characters-back.nc"):
        expect(name, [text.rstrip(b"\0") for text in opened(name).v.values.tolist()], [b"ab  ", b"cdef"])
    with netCDF4.Dataset(at("characters-back.nc")) as ds:
        expect("characters-back.nc", ds["v"].getncattr("_FillValue"), b" ")


# Characters that are not UTF-8, bytes, spans of time: content that few formats have.

CHARACTERS = {"units": b"\xb0C", "padded": b"a\x00b", "name": "Größe".encode()}


def make_characters():
    for name, kind in (("latin.nc", "NETCDF4"), ("latin.nc3", "NETCDF3_CLASSIC")):
        with netcdf(name, kind, x=2) as ds:
            v = ds.createVariable("v", "i2", ("x",))
            v[:] = [1, 2]
            v.setncatts(CHARACTERS if kind == "NETCDF3_CLASSIC" else {key: CHARACTERS[key] for key in ("units", "name")})


def check_characters():
    for name in ("latin-copy.nc", "latin-from.nc3", "latin-from.nc", "latin-copy.nc3"):
        with netCDF4.Dataset(at(name)) as ds:
            # The package shows what is not UTF-8 as a replacement.
            expect(name, (ds["v"].units, ds["v"].getncattr("name")), ("\ufffdC", "Größe"))
        assert b"\xb0C" in open(at(name), "rb").read(), name
    for name in ("latin-from.nc", "latin-copy.nc3"):
        assert b"a\x00b" in open(at(name), "rb").read(), name
    for name in ("latin.zarr2", "latin.zarr3"):
        expect(name, zarr.open(at(name))["v"].attrs["units"], "°C")
    for name in ("latin-tet.nc", "latin-tiledb.nc"):
        with netCDF4.Dataset(at(name)) as ds:
            expect(name, ds["v"].units, "°C")


def make_bytes():
    import tiledb

    schema = {"domain": tiledb.Domain(tiledb.Dim("x", domain=(0, 3), tile=2, dtype="int32")), "attrs": [tiledb.Attr("v", dtype="i4")]}
    tiledb.Array.create(at("raw.tiledb"), tiledb.ArraySchema(**schema))
    with tiledb.open(at("raw.tiledb"), "w") as array:
        array[:] = np.arange(4, dtype="i4")
        array.meta["raw"] = b"\xff\x00\x01"
    blobs = np.empty(3, object)
    blobs[:] = [b"a", b"\x00\xff", b""]
    schema["attrs"] = [tiledb.Attr("blob", dtype="blob", var=True)]
    tiledb.Array.create(at("blobs.tiledb"), tiledb.ArraySchema(sparse=True, **schema))
    with tiledb.open(at("blobs.tiledb"), "w") as array:
        array[np.array([0, 2, 3], "i4")] = {"blob": blobs}


def check_bytes():
    import tiledb

    with h5py.File(at("raw.h5")) as f:
        expect("raw.h5", f.attrs["raw"].tolist(), [255, 0, 1])
    with netCDF4.Dataset(at("raw-tiledb.nc")) as ds:
        expect("raw-tiledb.nc", ds.raw.tolist(), [255, 0, 1])
    for name in ("raw-zarr3.tiledb", "raw-tet.tiledb"):
        with tiledb.open(at(name)) as array:
            expect(name, bytes(array.meta["raw"]), b"\xff\x00\x01")
    with h5py.File(at("blobs.h5")) as f:
        expect("blobs.h5", [row.tolist() for row in f["blob"]], [[97], [0, 255], []])
    for name in ("blobs-h5.tiledb", "blobs-nc.tiledb"):
        with tiledb.open(at(name)) as array:
            expect(name, [bytes(blob) for blob in array[:]["blob"]], [b"a", b"\x00\xff", b""])


def make_spans():
    group = zarr.create_group(at("spans.zarr3"), zarr_format=3)
    for unit in ("s", "ms", "us", "ns"):
        span = group.create_array(unit, shape=(3,), dtype=f"m8[{unit}]", dimension_names=("x",))
        span[:] = np.array([1, -2, "NaT"], f"m8[{unit}]")


def check_spans():
    for name in ("spans.nc", "spans.nc3"):
        ds = opened(name)
        for unit in ("s", "ms", "us", "ns"):
            expect(f"{name} {unit}", (ds[unit].dtype, ds[unit].attrs.keys() - {"hyperslab_type"}), (np.dtype(f"m8[{unit}]"), set()))
            expect(f"{name} {unit}", ds[unit].values.astype("i8"), np.array([1, -2, np.iinfo("i8").min]))
    for unit in ("s", "ms", "us", "ns"):
        again = zarr.open(at("spans-back.zarr3"))[unit]
        expect("spans-back.zarr3", (again.dtype, dict(again.attrs)), (np.dtype(f"m8[{unit}]"), {}))


def nested():
    point = np.zeros(3, [("a", "i4"), ("n", [("x", "f8"), ("y", "S3")]), ("v", "f4", (2, 2))])
    point["a"], point["n"]["x"], point["n"]["y"] = [1, 2, 3], [0.5, 1.5, 2.5], [b"p", b"qq", b""]
    point["v"] = np.arange(12).reshape(3, 2, 2)
    return point


def make_structs():
    with h5py.File(at("structs.h5"), "w") as f:
        f["point"] = nested()
        f.create_dataset("inside", (2,), np.dtype(("f4", (2, 3))))[...] = np.arange(12).reshape(2, 2, 3)
        f["reference"] = np.array([f["point"].ref], h5py.ref_dtype)


def check_structs():
    with h5py.File(at("structs.h5")) as f:
        inside = f["inside"].id.get_type()
    for name in ("zarr2", "zarr3", "tiledb", "tet"):
        with h5py.File(at(f"structs-{name}.h5")) as f:
            expect(name, getattr(f["point"], "dtype", dict(f["point"].attrs)), nested().dtype)
            if isinstance(f["point"], h5py.Group):
                continue
            expect(name, f["point"][()].tobytes() == nested().tobytes(), True)
            expect(name, f["inside"].id.get_type() == inside, True)
            expect(name, f["inside"][:], np.arange(12, dtype="f4").reshape(2, 2, 3))


def make_documents():
    attributes = {"nothing": None, "dict": {"a": [1, None]}, "mixed": [1, "a"], "texts": ["a", "b"], "nested": [[1, 2], [3, 4]]}
    zarr_array("documents.zarr3", np.arange(3), 3, 0, attributes=attributes)


def check_documents():
    for name in ("documents.nc", "documents.nc3"):
        with netCDF4.Dataset(at(name)) as ds:
            v = ds["v"]
            expect(name, (v.nothing, v.dict, v.mixed), ("null", '{"a":[1,null]}', '[1,"a"]'))
            expect(name, v.texts, ["a", "b"] if name.endswith(".nc") else '["a","b"]')


# Filters.

def make_filters():
    with netcdf("checksum.nc", x=100) as ds:
        v = ds.createVariable("v", "f4", ("x",), zlib=True, shuffle=True, fletcher32=True, chunksizes=(50,))
        v[:] = np.arange(100) / 3
    with h5py.File(at("packed.h5"), "w") as f:
        options = {"chunks": (10, 10)}
        values = np.arange(1000, dtype="i4").reshape(20, 50)
        f.create_dataset("scaled", data=values, scaleoffset=0, **options)
        f.create_dataset("decimals", data=values / 8, scaleoffset=3, **options)
        f.create_dataset("szip", data=values, compression="szip", **options)
        f.create_dataset("lzf", data=values, compression="lzf", shuffle=True, **options)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10, 10))
        plist.set_filter(h5py.h5z.FILTER_NBIT)
        dtype = h5py.h5t.STD_I32LE.copy()
        dtype.set_precision(20)
        space = h5py.h5s.create_simple(values.shape)
        h5py.h5d.create(f.id, b"nbit", dtype, space, plist).write(h5py.h5s.ALL, h5py.h5s.ALL, values, h5py.h5t.NATIVE_INT32)
    with h5py.File(at("blosc.h5"), "w") as f:
        f.create_dataset("v", data=np.arange(100, dtype="i4"), chunks=(50,), **hdf5plugin.Blosc(cname="zstd", clevel=7))
    zarr_array("zstd.zarr3", np.arange(100.0), version=3, chunks=(50,), compressors=[zarr.codecs.ZstdCodec(level=3)])


def hdf5_filters(name):
    with h5py.File(at(name)) as f:
        plist = f["v"].id.get_create_plist()
        return [plist.get_filter(index)[0] for index in range(plist.get_nfilters())]


def check_filters():
    for version in (2, 3):
        name = f"checksum.zarr{version}"
        expect(name, zarr.open(at(name))["v"][:], (np.arange(100) / 3).astype("f4"))
        array = zarr.open(at(f"blosc.zarr{version}"))["v"]
        codec = array.compressors[0]
        config = codec.get_config() if version == 2 else codec.to_dict()["configuration"]
        expect(f"blosc.zarr{version}", (config["cname"], config["clevel"]), ("zstd", 7))
    values = np.arange(1000, dtype="i4").reshape(20, 50)
    for name, wanted in (("packed-chunks.h5", values), ("packed-part.h5", values[3:17])):
        with h5py.File(at(name)) as f:
            for key in f:
                expect(f"{name} {key}", f[key][:], wanted / 8 if key == "decimals" else wanted)
            expect(name, f["scaled"].scaleoffset, 0)
            expect(name, f["szip"].compression, "szip")
    expect("zstd.nc", hdf5_filters("zstd.nc"), [h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE])
    expect("zstd.nc", opened("zstd.nc").v.values, np.arange(100.0))
    expect("zstd-asked.nc", hdf5_filters("zstd-asked.nc"), [32015])
    expect("zstd-copy.h5", hdf5_filters("zstd-copy.h5"), [32015])


# Attributes of types that the NetCDF library lacks.

def make_attributes():
    attributes = {"matrix": [[1, 2], [3, 4]], "yes": True, "text": "é"}
    zarr_array("attributes.zarr3", np.arange(3.0), version=3, attributes=attributes)
    with h5py.File(at("attributes.h5"), "w") as f:
        f["v"] = np.arange(3.0)
        f.attrs["matrix"] = np.array([[1.5, 2.5], [3.5, 4.5]])
        f["v"].attrs["flags"] = np.array([True, False])
        f["v"].attrs["z"] = 1 + 2j
        f["v"].attrs["half"] = np.float16(0.5)


def check_attributes():
    with netCDF4.Dataset(at("attributes.nc")) as ds:
        v = ds["v"]
        expect("matrix", v.getncattr("matrix"), "[[1,2],[3,4]]")
        expect("yes", (v.getncattr("yes"), v.getncattr("yes").dtype), (1, np.dtype("i1")))
        expect("text", v.getncattr("text"), "é")
    opened("attributes.nc")
    with netCDF4.Dataset(at("attributes-from-hdf5.nc")) as ds:
        expect("matrix of the root", ds.getncattr("matrix"), np.array([1.5, 2.5, 3.5, 4.5]))
        expect("flags", ds["v"].getncattr("flags"), np.array([1, 0], "i1"))
        expect("half", (ds["v"].getncattr("half"), ds["v"].getncattr("half").dtype), (0.5, np.dtype("f4")))
    opened("attributes-from-hdf5.nc")


# Text and bytes of a fixed length.

TEXTS = np.array(["añb", "", "xyz"])


def make_text():
    np.savez(at("text.npz"), u=TEXTS, s=np.array([b"ab", b"", b"xyz"]))
    with h5py.File(at("opaque.h5"), "w") as file:
        file["o"] = np.array([b"\1\2\3", b"\0\0\0"], "V3")


def check_text():
    with h5py.File(at("text.h5")) as file:
        expect("type", h5py.check_string_dtype(file["u"].dtype).encoding, "utf-8")
        expect("text", list(file["u"].asstr()[:]), list(TEXTS))
    with np.load(at("text-back.npz")) as back:
        expect("text", (back["u"].dtype, list(back["u"])), (TEXTS.dtype, list(TEXTS)))


# Arrays that cannot be read.

def make_objects():
    np.savez(at("objects.npz"), a=np.arange(3), o=np.array([1, "x", None], dtype=object))


def check_objects():
    expect("arrays", list(zarr.open_group(at("objects.zarr3")).array_keys()), ["a"])


# Filters of booleans.

BITS = np.array([1, 0, 1, 1, 0, 0, 1, 1, 1, 0], bool)


def make_bits():
    zarr_array("bits.zarr2", BITS, chunks=(4,), filters=[numcodecs.PackBits()], compressors=None)


def check_bits():
    array = zarr.open_group(at("bits.zarr3"))["v"]
    expect("codecs", [codec["name"] for codec in array.metadata.to_dict()["codecs"]], ["numcodecs.packbits", "bytes"])
    expect("values", array[:], BITS)


# Dimension scales on some axes, and datasets without a dataspace.

def make_scales():
    with h5py.File(at("null.h5"), "w") as file:
        file["d"], file["null"] = np.arange(6), h5py.Empty("f4")
    with h5py.File(at("scales.h5"), "w") as file:
        file["x"], file["scale"], file["other"] = np.zeros((10, 3)), np.arange(10.0), 1
        file["scale"].make_scale("s")
        file["x"].dims[0].attach_scale(file["scale"])


def check_scales():
    with h5py.File(at("null-unlimited.h5")) as file:
        expect("null", file["null"].shape, None)
        expect("unlimited", file["d"].maxshape, (None,))
    with h5py.File(at("scales.h5")) as file:
        expect("nodes", sorted(file), ["moved", "scale", "x"])
        expect("scales", [[scale.name for scale in axis.values()] for axis in file["x"].dims], [["/scale"], []])


# Tables: what Parquet says beside the rows.

def make_zones():
    when = pa.array([0, 1], pa.timestamp("us", "Europe/Zurich"))
    table = pa.table({"when": when}).replace_schema_metadata({"owner": "me"})
    pq.write_table(table, at("zones.parquet"))


def check_zones():
    attributes = dict(zarr.open_group(at("zones.zarr3")).attrs)
    expect("zones", attributes["time_zones"], {"when": "Europe/Zurich"})
    expect("owner", attributes["owner"], "me")


if command == "make":
    for name, make in list(globals().items()):
        if name.startswith("make_"):
            make()
else:
    globals()[f"check_{sys.argv[3]}"]()
