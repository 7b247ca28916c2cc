"""Writes arrays along coordinates of every kind, and prints what xarray selects by label as JSON."""
import json, sys, warnings

import netCDF4
import numpy as np
import tiledb
import xarray as xr
import zarr

warnings.simplefilter("ignore")
folder = sys.argv[1]
answers, in_memory = [], {}


def ask(file, array, name, *selections):
    """Asks xarray for labels (text or numbers), ranges (pairs) and nearest labels (lists of one)."""
    group, _, variable = array.rpartition("/")
    engine = "zarr" if ".zarr" in file else None
    if file in in_memory:
        v = in_memory[file]
    elif group:
        tree = xr.open_datatree(f"{folder}/{file}", engine=engine)
        v = tree[group].to_dataset()[variable].load()
    else:
        v = xr.open_dataset(f"{folder}/{file}", engine=engine)[variable].load()
    for selection in selections:
        if isinstance(selection, tuple):
            text = f"{name}={'' if selection[0] is None else selection[0]}..{'' if selection[1] is None else selection[1]}"
            found = v.sel({name: slice(*selection)})
        elif isinstance(selection, list):
            text = f"{name}~{selection[0]}"
            label = selection[0]
            if v.indexes[name].dtype.kind == "M":
                label = np.datetime64(label)
            found = v.sel({name: label}, method="nearest")
        else:
            text = f"{name}={selection}"
            try:
                found = v.sel({name: selection})
            except KeyError:
                found = None
        values = None if found is None else found.values.ravel().tolist()
        answers.append({"file": file, "array": f"/{array}", "selection": text, "values": values})


def coordinate(ds, name, dtype, stored, **attributes):
    ds.createDimension(name, len(stored))
    fill = attributes.pop("_FillValue", None)
    variable = ds.createVariable(name, dtype, (name,), fill_value=fill)
    variable.set_auto_maskandscale(False)
    variable.setncatts(attributes)
    variable[:] = np.array(stored, dtype)
    ds.createVariable(f"v_{name}", "i4", (name,))[:] = np.arange(len(stored))


for format in ["NETCDF4", "NETCDF3_64BIT_DATA"]:
    file = f"{format[-1]}.nc"
    with netCDF4.Dataset(f"{folder}/{file}", "w", format=format) as ds:
        coordinate(ds, "time", "i2", np.arange(-4, 36), units="hours since 2000-01-01", scale_factor=6, add_offset=24)
        coordinate(ds, "lat", "i2", np.arange(-299, 301, 100), scale_factor=0.1)
        coordinate(ds, "lon", "f4", [0.1, 0.2, 0.3, 0.4])
        coordinate(ds, "down", "f4", [0.4, 0.3, 0.2, 0.1])
        coordinate(ds, "byte", "i1", [100, 126, -128, -100], _Unsigned="true")
        coordinate(ds, "gap", "f8", [1.0, 2.0, -999.0], _FillValue=-999.0)
        coordinate(ds, "nan", "f8", [1.0, 2.0, np.nan])
        coordinate(ds, "id", "i8", [2**60, 2**60 + 1, 2**60 + 2])
        ticks = (np.datetime64("2000-01-01", "ns") + np.arange(6) * np.timedelta64(43_200_000_000_001, "ns")).astype("i8")
        coordinate(ds, "ns", "i8", ticks, units="nanoseconds since 1970-01-01", calendar="proleptic_gregorian")
        origin = np.datetime64("0001-01-01", "us").astype("i8")
        coordinate(ds, "us", "i8", ticks // 1000 - origin, units="microseconds since 0001-01-01", calendar="proleptic_gregorian")
    ask(file, "v_time", "time", "2000-01-02", ("2000-01-02", "2000-01-03"), "2000-01-02T06:00", ["2000-01-02T07"], "2001", (None, "2000-01-01"))
    ask(file, "v_lat", "lat", (-10, 10), (-9.9, None), [-8], -29.0)
    ask(file, "v_lon", "lon", 0.1, 0.4, (0.2, 0.3), (0.1, 0.4), (None, 0.2), [0.34], 0.25)
    ask(file, "v_down", "down", 0.1, (0.3, 0.2), (0.4, 0.1), [0.25])
    ask(file, "v_byte", "byte", 128, (128, 200), [127], -128)
    ask(file, "v_gap", "gap", 2.0)
    ask(file, "v_nan", "nan", 2.0)
    ask(file, "v_id", "id", 2**60 + 1, (2**60 + 1, None))
    for name in ["ns", "us"]:
        ask(file, f"v_{name}", name, "2000-01-02", ("2000-01-01", "2000-01-02"), ["2000-01-02T20"], "2000-05")

city = xr.Dataset({"v": ("city", np.arange(3, dtype="i4"))}, {"city": ["oslo", "rome", "örebro"]})
city.to_netcdf(f"{folder}/city3.nc", format="NETCDF3_64BIT")
city.city.encoding["dtype"] = "S1"
city.to_netcdf(f"{folder}/city4.nc", engine="netcdf4")
for file in ["city3.nc", "city4.nc"]:
    ask(file, "v", "city", "rome", "örebro", ("oslo", "rome"), "paris")

for version in [2, 3]:
    file = f"native{version}.zarr"
    group = zarr.open_group(f"{folder}/{file}", mode="w", zarr_format=version)
    days = np.datetime64("2000-01-30", "ns") + np.arange(5) * np.timedelta64(1, "D")
    for name, values in [("time", days), ("v", np.arange(5, dtype="i4"))]:
        names = {"dimension_names": ["time"]} if version == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["time"]}}
        group.create_array(name, data=values, **names)
    ask(file, "v", "time", ("2000-01-31 12:00", "2000-02-02"), ("2000-01-31", "2000-02-01"), "2000-02", ["2000-01-31T15"], "2000-05")

    file = f"tree{version}.zarr"
    root = xr.Dataset(coords={"time": days, "lon": np.array([0.1, 0.2], "f4")})
    leaf = xr.Dataset({"v": (("time", "lon"), np.arange(10, dtype="i4").reshape(5, 2))})
    tree = xr.DataTree.from_dict({"/": root, "/g": xr.Dataset(), "/g/h": leaf})
    for consolidated in [True, False]:
        file = f"tree{version}{consolidated}.zarr"
        tree.to_zarr(f"{folder}/{file}", zarr_format=version, consolidated=consolidated)
        ask(file, "g/h/v", "time", ("2000-01-31", "2000-02-01"), "2000-02")
        ask(file, "g/h/v", "lon", 0.2)

# xarray does not open TileDB.
for unit, count in [("h", 96), ("D", 40), ("M", 30)]:
    first, last = np.datetime64("2000-01-01", unit), np.datetime64("2000-01-01", unit) + np.timedelta64(count - 1, unit)
    dimension = tiledb.Dim("time", domain=(first, last), tile=np.timedelta64(10, unit), dtype=f"datetime64[{unit}]")
    schema = tiledb.ArraySchema(domain=tiledb.Domain(dimension), attrs=[tiledb.Attr("v", dtype="i4")])
    file = f"{unit}.tdb"
    tiledb.Array.create(f"{folder}/{file}", schema)
    with tiledb.open(f"{folder}/{file}", "w") as array:
        array[:] = np.arange(count, dtype="i4")
    times = (first + np.arange(count) * np.timedelta64(1, unit)).astype("datetime64[ns]")
    in_memory[file] = xr.DataArray(np.arange(count), {"time": times}, "time")
    ask(file, "v", "time", ("2000-01-02T06", "2000-01-02T08:00"), ("2000-1-2", "2000-1-3"), ("2000-01-31", "2000-02"), ["2000-01-02T05:40"])
    ask(file, "v", "time", "1999", "2000-01", ["2020-01-01"])
print(json.dumps(answers))
