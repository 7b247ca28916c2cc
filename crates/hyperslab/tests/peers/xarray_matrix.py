"""Writes typical NetCDF and Zarr data sets, and compares conversions of them with xarray.

    xarray_matrix.py make FOLDER           writes the sources, prints their names
    xarray_matrix.py compare FOLDER        compares FOLDER/x/*, each with its source; prints a line per difference
"""
import json, os, sys, warnings

import cftime
import netCDF4
import numpy as np
import xarray as xr
import zarr

warnings.simplefilter("ignore")
F4 = np.float32


def hours(count):
    return np.datetime64("2000-01-01", "ns") + np.arange(count) * np.timedelta64(6, "h")


def climate():
    numbers = np.arange(60.0).reshape(5, 3, 4)
    ds = xr.Dataset(
        {
            "tas": (("time", "lat", "lon"), np.where(numbers % 7 == 0, np.nan, numbers).astype(F4),
                    {"units": "K", "valid_range": np.array([0, 400], F4), "grid_mapping": "crs"}),
            "packed": (("time", "lat"), np.where(numbers[:, :, 0] % 8 == 0, np.nan, numbers[:, :, 0] * 0.5)),
            "count": (("lat",), np.array([1, 2, 3], "i4")),
            "time_bnds": (("time", "bnds"), np.arange(10.0).reshape(5, 2)),
            "crs": ((), np.int32(0), {"grid_mapping_name": "latitude_longitude"}),
        },
        coords={"time": hours(5), "lat": [10.0, 20.0, 30.0], "lon": np.arange(4, dtype=F4),
                "area": (("lat", "lon"), np.ones((3, 4)))},
        attrs={"title": "é", "n": np.int32(3), "v": np.array([1.5, 2.5]), "not": np.nan, "empty": ""},
    )
    bare = {name: {"_FillValue": None} for name in ("lat", "lon", "area", "time_bnds", "count")}
    return ds, bare | {
        "tas": {"_FillValue": F4(-9999)},
        "packed": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": np.int16(-32768)},
        "time": {"units": "hours since 1990-01-01", "calendar": "standard", "dtype": "i4"},
    }


def markers():
    """Missing values in all their forms."""
    x = np.arange(4.0)
    names = ("nan", "plain", "none", "missing", "single", "unsigned", "wide", "narrow")
    ds = xr.Dataset({name: (("x",), x.copy()) for name in names})
    ds["unsigned"] = (("x",), np.array([1, 2, 255, 0], "i2").astype("f4"))
    for name in ("nan", "plain"):
        ds[name][1] = np.nan
    ds["wide"] = (("x",), np.array([1, 2, 3, 2**62], "i8"))
    ds["narrow"] = (("x",), np.array([1, 2, 3, 4], "u1"))
    ds["missing"].attrs["missing_value"] = 2.0
    ds["single"] = (("x",), np.array([1, 1e20, 3, 4], F4), {"missing_value": F4(1e20)})
    return ds, {
        "nan": {"_FillValue": np.nan, "dtype": "f4"},
        "plain": {"_FillValue": -1.0},
        "none": {"_FillValue": None},
        "missing": {"_FillValue": None},
        "single": {"_FillValue": None},
        "unsigned": {"dtype": "i1", "_FillValue": np.int8(0), "_Unsigned": "true"},
        "wide": {"_FillValue": np.int64(2**62)},
        "narrow": {"_FillValue": np.uint8(255)},
    }


def calendars():
    ds = xr.Dataset({"v": (("time",), np.arange(3.0))}, coords={"time": ("time", [0.5, 1.5, 60.0])})
    for number, calendar in enumerate(["noleap", "360_day", "julian", "proleptic_gregorian"]):
        ds[f"t{number}"] = (("time",), np.array([0.5, 1.5, 60.0]),
                            {"units": "days since 2001-02-27", "calendar": calendar})
    ds["time"].attrs = {"units": "days since 2001-02-27", "calendar": "all_leap"}
    ds["delta"] = (("time",), np.array([1, 2, 3], "i4"), {"units": "hours", "dtype": "timedelta64[s]"})
    return ds, {name: {"_FillValue": None} for name in ds.variables}


def words():
    ds = xr.Dataset({
        "fixed": (("n",), np.array([b"aa", b"b", b"cccc"], "S4")),
        "text": (("n",), np.array(["ä", "", "longer"], object)),
        "flag": (("n",), np.array([1, 2, 4], "i1"),
                 {"flag_masks": np.array([1, 2, 4], "i1"), "flag_meanings": "a b c"}),
        "yes": (("n",), np.array([True, False, True])),
        "one": ((), "a text"),
    })
    return ds, {}


def empty():
    ds = xr.Dataset({"v": (("time", "x"), np.zeros((0, 3), "f4"))}, coords={"x": [1, 2, 3]})
    return ds, {"v": {"_FillValue": F4(-1)}}


def coordinates():
    """Coordinates of every kind: two-dimensional, scalar, without a variable, with bounds."""
    x, y = np.arange(6.0).reshape(2, 3), np.arange(2.0)
    ds = xr.Dataset(
        {"temp": (("x", "y"), x, {"cell_methods": "time: mean", "ancillary_variables": "qc"}), "precip": (("x", "y"), x + 1),
         "qc": (("x", "y"), np.zeros((2, 3), "i1")), "x_bnds": (("x", "nv"), np.stack([y, y + 1], 1))},
        coords={"lat": (("x", "y"), x * 2), "lon": (("x", "y"), x * 3), "ref": np.datetime64("2000-01-01", "ns"), "scalar": np.int32(5),
                "x": ("x", y, {"bounds": "x_bnds"}), "bar": ("foo", np.array([10, 20], "i4"))},
    )
    return ds, {name: {"_FillValue": None} for name in ("temp", "precip", "lat", "lon", "x", "x_bnds")}


def fills():
    """A missing-value marker in every numeric type."""
    kinds = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
    ds = xr.Dataset({kind: (("x",), np.array([1, np.nan, 3])) for kind in kinds})
    ds["negative"] = (("x",), np.array([1.0, np.nan, 3.5]))
    return ds, {kind: {"dtype": kind, "_FillValue": np.dtype(kind).type(7)} for kind in kinds} | {
        "negative": {"dtype": "i4", "scale_factor": -0.5, "_FillValue": np.int32(-2147483647)}}


def instants():
    """Missing times, times in nanoseconds, times before the range of NumPy's dates, and durations."""
    times = np.array(["2000-01-01", "NaT", "2001-02-03T04:05:06.789012345"], "M8[ns]")
    old = [cftime.datetime(1, 1, 1, calendar="noleap"), cftime.datetime(2, 2, 3, 4, 5, 6, calendar="noleap"),
           cftime.datetime(3, 1, 1, calendar="noleap")]
    return xr.Dataset({"t": (("n",), times), "old": (("n",), np.array(old)),
                       "span": (("n",), np.array([3600, 7200, "NaT"], "m8[s]").astype("m8[ns]"))}), {"t": {"units": "nanoseconds since 2000-01-01"}}


def names():
    """Names with spaces, dots, letters of any alphabet, and attributes of every type."""
    attributes = {"i4": np.int32(5), "f4": F4(1.5), "list": np.array([1, 2], "i2"), "inf": np.inf, "text": "tëxt", "number": "5", "long": "x" * 70000}
    values = {name: (("d",), np.array([1, 2], "i4"), attributes) for name in ("with space", "dash-ed", "dot.ted", "ünï", "UPPER", "upper")}
    return xr.Dataset(values, attrs={"a.b": "dots", "_private": "p", "nl": "a\nb", "quote": 'a"b'}), {}


DATASETS = {f.__name__: f for f in (climate, markers, calendars, words, empty, coordinates, fills, instants, names)}
# Content that the classic formats lack and xarray refuses to write to them.
NOT_CLASSIC = {"markers": ["wide", "narrow"], "fills": ["i8", "u1", "u2", "u4", "u8"], "instants": ["t"]}


def make(folder):
    names = []
    for name, build in DATASETS.items():
        ds, encoding = build()
        unlimited = ["time"] if "time" in ds.dims else []
        extra = {"climate": {"tas": {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (2, 3, 4)},
                             "time": {"chunksizes": (512,)}}}.get(name, {})
        netcdf = {key: encoding.get(key, {}) | extra.get(key, {}) for key in encoding | extra}
        ds.to_netcdf(f"{folder}/{name}.nc", encoding=netcdf, unlimited_dims=unlimited, engine="netcdf4")
        for version in (2, 3):
            ds.to_zarr(f"{folder}/{name}.zarr{version}", encoding=encoding, zarr_format=version)
        # The classic formats lack 64-bit and unsigned integers, and xarray refuses values that do not fit.
        classic = ds.drop_vars(NOT_CLASSIC.get(name, []))
        own = {key: encoding[key] for key in encoding if key in classic.variables}
        kind = {"climate": "NETCDF3_64BIT_OFFSET", "calendars": "NETCDF3_64BIT_DATA"}.get(name, "NETCDF3_CLASSIC")
        classic.to_netcdf(f"{folder}/{name}.nc3", encoding=own, unlimited_dims=unlimited, engine="netcdf4", format=kind)
        names += [f"{name}.nc", f"{name}.nc3", f"{name}.zarr2", f"{name}.zarr3"]
    tree = xr.DataTree.from_dict({"/": xr.Dataset(coords={"x": [1, 2]}), "/a": climate()[0], "/a/b": words()[0]})
    tree.to_netcdf(f"{folder}/tree.nc")
    tree.to_zarr(f"{folder}/tree.zarr3", zarr_format=3)
    print(json.dumps(names + ["tree.nc", "tree.zarr3"]))


def opened(path, **options):
    engine = "netcdf4" if path.endswith((".nc", ".nc3")) else "zarr"
    open_it = xr.open_datatree if "/tree" in path else xr.open_dataset
    return open_it(path, engine=engine, chunks=None, **options)


CF = ["_FillValue", "missing_value", "scale_factor", "add_offset", "units", "calendar", "_Unsigned", "coordinates"]
STORED = {"nc": ["chunksizes", "zlib", "complevel", "shuffle"], "nc3": [], "zarr2": ["chunks", "compressors", "filters"],
          "zarr3": ["chunks", "shards", "compressors", "filters"]}


def same(a, b):
    if isinstance(a, (float, np.floating)) and isinstance(b, (float, np.floating)) and a != a and b != b:
        return True
    return bool(np.all(np.equal(a, b))) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a == b


def compare(source, target):
    one, other = opened(source), opened(target)
    try:
        xr.testing.assert_identical(one, other)
    except AssertionError as why:
        yield str(why)
    groups = [("", one, other)]
    if "/tree" in source:
        groups = [(node.path, node.to_dataset(), other[node.path].to_dataset()) for node in one.subtree]
    kinds = [path.rsplit(".", 1)[1] for path in (source, target)]
    for path, a, b in groups:
        for name in a.variables:
            if name not in b.variables:
                yield f"{path}/{name} is missing"
                continue
            x, y = a[name], b[name]
            text = x.dtype.kind in "OUST"
            if x.dtype != y.dtype and not text:
                yield f"{path}/{name}: dtype {x.dtype} ≠ {y.dtype}"
            # If no convention applies, the stored type is the same.
            keys = CF + (STORED[kinds[0]] if kinds[0] == kinds[1] else [])
            if not text:
                keys.append("dtype")
            for key in keys:
                u, v = x.encoding.get(key), y.encoding.get(key)
                if kinds[0] == "zarr2" != kinds[1] and key == "coordinates":
                    continue
                if not same(u, v):
                    yield f"{path}/{name}: {key} {u!r} ≠ {v!r}"
        if {*kinds} <= {"nc", "nc3"} and a.encoding.get("unlimited_dims") != b.encoding.get("unlimited_dims"):
            yield f"{path}: unlimited {a.encoding.get('unlimited_dims')} ≠ {b.encoding.get('unlimited_dims')}"


if __name__ == "__main__":
    command, folder = sys.argv[1:]
    if command == "make":
        make(folder)
    else:
        compared = 0
        for name in sorted(os.listdir(f"{folder}/x")):
            source = name.split("~")[0]
            compared += 1
            try:
                for line in compare(f"{folder}/{source}", f"{folder}/x/{name}"):
                    print(f"{name}: {line}")
            except Exception as why:
                print(f"{name}: {type(why).__name__}: {why}")
        print(compared, "compared", file=sys.stderr)
