"""Subsets of data sets: writes sources, and compares our subsets with xarray's own selections.

    subset.py make FOLDER           writes the sources, prints their names and the cases
    subset.py compare FOLDER        compares FOLDER/x/SOURCE~CASE.KIND; prints a line per difference
"""
import json, os, sys, warnings

import numpy as np
import xarray as xr

from xarray_matrix import CF, STORED, climate, same

warnings.simplefilter("ignore")

TAS = ["tas", "time_bnds", "crs"]
# A node, selections, and the equivalent xarray call.
CASES = {
    "slice": (None, ["time[1:4]"], lambda ds: ds.isel(time=slice(1, 4))),
    "steps": (None, ["time[::2]", "lon[::-1]"], lambda ds: ds.isel(time=slice(None, None, 2), lon=slice(None, None, -1))),
    "labels": (None, ["lat=15..30"], lambda ds: ds.sel(lat=slice(15, 30))),
    "dates": (None, ["time=2000-01-01..2000-01-01"], lambda ds: ds.sel(time="2000-01-01")),
    "index": (None, ["time[3]"], lambda ds: ds.isel(time=3)),
    "last": (None, ["time[-1]", "lat=20"], lambda ds: ds.isel(time=-1).sel(lat=20)),
    "nearest": (None, ["lon~1.2"], lambda ds: ds.sel(lon=1.2, method="nearest")),
    "none": (None, ["time[2:2]"], lambda ds: ds.isel(time=slice(2, 2))),
    "bare": (None, ["bnds[1]"], lambda ds: ds.isel(bnds=1)),
    "node": ("/tas", ["time[1:4]"], lambda ds: ds[TAS].isel(time=slice(1, 4))),
    "positions": ("/tas", ["[1, ..., 2:]"], lambda ds: ds[TAS].isel(time=1, lon=slice(2, None))),
    "one": ("/packed", ["lat=10..20"], lambda ds: ds[["packed", "time_bnds"]].sel(lat=slice(10, 20))),
    "whole": ("/tas", ["lat[:]"], lambda ds: ds[TAS]),
}


def make(folder):
    ds, encoding = climate()
    ds["time"].attrs["bounds"] = "time_bnds"
    ds["time_bnds"] = (("time", "bnds"), np.stack([ds["time"].values, ds["time"].values + np.timedelta64(6, "h")], 1))
    # A chunk longer than the rest of an axis is shortened to it.
    extra = {"tas": {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (2, 3, 4)}, "time": {"chunksizes": (512,)}}
    netcdf = {key: encoding.get(key, {}) | extra.get(key, {}) for key in encoding | extra}
    ds.to_netcdf(f"{folder}/climate.nc", encoding=netcdf, unlimited_dims=["time"], engine="netcdf4")
    ds.to_netcdf(f"{folder}/climate.nc3", encoding=encoding, unlimited_dims=["time"], engine="netcdf4", format="NETCDF3_64BIT_OFFSET")
    for version in (2, 3):
        ds.to_zarr(f"{folder}/climate.zarr{version}", encoding=encoding, zarr_format=version)
    cases = {name: {"node": node, "select": select} for name, (node, select, _) in CASES.items()}
    print(json.dumps({"sources": ["climate.nc", "climate.nc3", "climate.zarr2", "climate.zarr3"], "cases": cases}))


def opened(path):
    return xr.open_dataset(path, engine="netcdf4" if path.endswith((".nc", ".nc3")) else "zarr", chunks=None)


def names(text):
    return set((text or "").split())


def compare(source, case, target):
    whole, other = opened(source), opened(target)
    one = CASES[case][2](whole)
    try:
        xr.testing.assert_identical(one, other)
    except AssertionError as why:
        yield str(why)
        return
    # Also what xarray itself writes and reads back.
    again = target + ".own"
    one.to_netcdf(again, engine="netcdf4")
    with xr.open_dataset(again, engine="netcdf4") as written:
        try:
            xr.testing.assert_identical(written, other.drop_encoding())
        except AssertionError as why:
            yield "written: " + str(why)
    os.remove(again)
    kinds = [path.rsplit(".", 1)[1] for path in (source, target)]
    for name in one.variables:
        x, y = one[name], other[name]
        if x.dtype != y.dtype:
            yield f"{name}: dtype {x.dtype} ≠ {y.dtype}"
        keys = [key for key in CF if key != "coordinates"] + ["dtype"]
        if kinds[0] == kinds[1]:
            keys += [key for key in STORED[kinds[0]] if key not in ("chunks", "chunksizes")]
        for key in keys:
            u, v = x.encoding.get(key), y.encoding.get(key)
            # A scalar has no chunks, so it has no filters.
            if x.ndim == 0 and key in ("zlib", "complevel", "shuffle"):
                continue
            if not same(u, v):
                yield f"{name}: {key} {u!r} ≠ {v!r}"
        missing = names(x.encoding.get("coordinates")) - names(y.encoding.get("coordinates"))
        if missing and kinds[0] != "zarr2":
            yield f"{name}: coordinates without {missing}"
    unlimited = {*whole.encoding.get("unlimited_dims", ())} & {*one.dims}
    if {*kinds} <= {"nc", "nc3"} and unlimited != {*other.encoding.get("unlimited_dims", ())}:
        yield f"unlimited {unlimited} ≠ {other.encoding.get('unlimited_dims')}"
    if kinds == ["nc", "nc"] and "time" in one.dims and one.sizes["time"] > 0:
        if other["time"].encoding["chunksizes"] != (512,):
            yield f"chunks of time {other['time'].encoding['chunksizes']}"


if __name__ == "__main__":
    command, folder = sys.argv[1:]
    if command == "make":
        make(folder)
    else:
        for name in sorted(os.listdir(f"{folder}/x")):
            source, rest = name.split("~")
            try:
                for line in compare(f"{folder}/{source}", rest.split(".")[0], f"{folder}/x/{name}"):
                    print(f"{name}: {line}")
            except Exception as why:
                print(f"{name}: {type(why).__name__}: {why}")
