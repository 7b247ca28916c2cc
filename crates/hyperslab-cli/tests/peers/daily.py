"""Writes typical monthly files, and checks the output of `tet` with xarray, netCDF4, h5py and tiledb.

    daily.py make FOLDER              monthly NetCDF files, and others that disagree with them
    daily.py same FOLDER STORE FILES  checks that the store equals xarray's concat of the files
    daily.py attrs FOLDER             a small store in every format that has attributes
    daily.py attr PATH NODE NAME      the attribute, as the format's own library reads it
    daily.py kinds FOLDER             files with packed values, named types, structs, shards and many records
    daily.py types PATH               the named types and the types of text attributes that netCDF4 sees
    daily.py packed FOLDER            checks tables of packed values against xarray
    daily.py records PATH             the number of records, and whether their values are as written
    daily.py tables FOLDER            rows as pandas writes them, in every compression of Parquet and Arrow
    daily.py rows FOLDER NAME         are the rows of NAME.csv those of the tables?
    daily.py variables A B            do two NetCDF files have the same variables, values and units?
"""

import json
import pathlib
import sys

import h5py
import netCDF4
import numpy
import xarray


def month(number, start, days, *, units=None, **changes):
    random = numpy.random.default_rng(number)
    lat = numpy.linspace(-80, 80, changes.get("lat", 9)).astype("f4")
    lon = numpy.arange(0, 360, 40, dtype="f8")
    time = numpy.datetime64(start) + numpy.arange(days).astype("timedelta64[D]")
    time = time.astype("datetime64[ns]")
    bounds = numpy.stack([time, time + numpy.timedelta64(1, "D")], axis=1)
    data = xarray.Dataset(
        {
            "t": (("time", "lat", "lon"), random.normal(280, 9, (days, lat.size, lon.size)).astype(changes.get("dtype", "f4"))),
            "time_bnds": (("time", "bnds"), bounds),
            "name": (("time",), numpy.array([f"day {number}-{day}" for day in range(days)], dtype=object)),
            "mask": (("lat", "lon"), (numpy.arange(lat.size * lon.size) % 3).reshape(lat.size, lon.size).astype("i2")),
        },
        {"time": time, "lat": lat, "lon": lon},
        {"title": "daily means", "history": f"made in month {number}"},
    )
    data.t.attrs["units"] = changes.get("unit", "K")
    data.time.attrs["bounds"] = "time_bnds"
    data.time.encoding = {"units": units or "hours since 2001-01-01", "dtype": "f8", "calendar": changes.get("calendar", "standard")}
    data.time_bnds.encoding = {"dtype": "f8"}
    return data


def write(data, path):
    encoding = {"t": {"zlib": True, "shuffle": True, "chunksizes": (10, *data.t.shape[1:])}}
    data.to_netcdf(path, engine="netcdf4", unlimited_dims=["time"], encoding=encoding)


def make(folder):
    (folder / "data").mkdir()
    months = [(1, "2001-01-01", 31), (2, "2001-02-01", 28), (3, "2001-03-01", 31), (4, "2001-04-01", 30)]
    for number, start, days in months:
        # The order of the names differs from that of the times.
        write(month(number, start, days), folder / "data" / f"{'dbca'[number - 1]}.nc")
    write(month(5, "2001-05-01", 31, units="days since 2001-05-01"), folder / "next.nc")
    write(month(6, "2001-08-01", 31), folder / "gap.nc")
    write(month(7, "2001-04-20", 5), folder / "overlap.nc")
    write(month(8, "2001-05-01", 3, unit="degC"), folder / "units.nc")
    write(month(9, "2001-05-01", 3, dtype="f8"), folder / "type.nc")
    write(month(10, "2001-05-01", 3, lat=7), folder / "shape.nc")
    write(month(11, "2001-05-01", 3, calendar="noleap"), folder / "calendar.nc")


def same(folder, store, files):
    parts = [xarray.open_dataset(folder / file).load() for file in files]
    parts.sort(key=lambda part: part.time.values[0])
    expected = xarray.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override", join="override")
    path = str(folder / store)
    found = xarray.open_zarr(path, consolidated=False) if store.endswith(".zarr") else xarray.open_dataset(path)
    xarray.testing.assert_equal(expected, found.load())
    for name in expected.variables:
        for key in ("units", "bounds"):
            assert expected[name].attrs.get(key) == found[name].attrs.get(key), (name, key)
    assert found.attrs["title"] == "daily means"


def attrs(folder):
    import tiledb
    import zarr

    values = numpy.arange(12, dtype="f4").reshape(3, 4)
    data = xarray.Dataset({"t": (("y", "x"), values, {"units": "C", "history": "old", "scale_factor": numpy.float32(1)})}, attrs={"title": "old"})
    data.to_netcdf(folder / "x.nc", engine="netcdf4")
    data.to_netcdf(folder / "x3.nc", engine="netcdf4", format="NETCDF3_CLASSIC")
    data.to_zarr(folder / "x.zarr", zarr_format=3)
    data.to_zarr(folder / "x2.zarr", zarr_format=2)
    with h5py.File(folder / "x.h5", "w", libver="latest") as file:
        file.create_group("g").create_dataset("t", data=values, chunks=(2, 2), compression="gzip").attrs.update({"units": "C", "history": "old"})
        file["same"] = file["g/t"]
        file["soft"] = h5py.SoftLink("/g/t")
    tiledb.from_numpy(str(folder / "x.tiledb"), values)
    with tiledb.open(str(folder / "x.tiledb"), "w") as array:
        array.meta["units"], array.meta["history"] = "C", "old"


def attr(path, node, name):
    if path.suffix == ".nc":
        with netCDF4.Dataset(path) as file:
            owner = file if node == "/" else file[node.strip("/")]
            return owner.getncattr(name) if name in owner.ncattrs() else None
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            assert file["same"] == file["g/t"], "two names of one dataset"
            assert file.get("soft", getlink=True).path == "/g/t"
            numpy.testing.assert_array_equal(file["g/t"][:], numpy.arange(12).reshape(3, 4))
            return file[node].attrs.get(name)
    if path.suffix == ".tiledb":
        import tiledb

        with tiledb.open(str(path)) as array:
            return array.meta.get(name)
    import zarr

    return zarr.open(str(path), mode="r")[node.strip("/")].attrs.get(name)


def kinds(folder):
    import zarr

    with netCDF4.Dataset(folder / "packed.nc", "w") as file:
        for name, length in (("time", 2), ("x", 3)):
            file.createDimension(name, length)
        time = file.createVariable("time", "i4", ("time",))
        time.units, time[:] = "days since 2001-01-01", [0, 1]
        t = file.createVariable("t", "i2", ("time", "x"), fill_value=numpy.int16(-999))
        t.scale_factor, t.add_offset, t.units = 0.5, 10.0, "K"
        t.set_auto_maskandscale(False)
        t[:] = [[0, 1, -999], [3, 4, 5]]
        n = file.createVariable("n", "i8", ("time",), fill_value=numpy.int64(-1))
        n.set_auto_mask(False)
        n[:] = [2**60 + 1, -1]
    with netCDF4.Dataset(folder / "types.nc", "w") as file:
        file.createDimension("x", 3)
        point = file.createCompoundType(numpy.dtype([("a", "i4"), ("b", "f4")]), "point_t")
        state = file.createEnumType("i1", "state_t", {"low": 0, "high": 1})
        ragged = file.createVLType("i4", "ragged_t")
        file.createVariable("c", point, ("x",))[:] = numpy.zeros(3, point.dtype)
        file.createVariable("e", state, ("x",))[:] = 1
        variable = file.createVariable("w", ragged, ("x",))
        for row in range(3):
            variable[row] = numpy.arange(row + 1, dtype="i4")
        file.createVariable("q", "f4", ("x",)).units = "K"
    with netCDF4.Dataset(folder / "records.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 50)
        time = file.createVariable("time", "f8", ("time",))
        t = file.createVariable("t", "f4", ("time", "x"))
        time[:] = numpy.arange(400)
        t[:] = numpy.arange(400 * 50, dtype="f4").reshape(400, 50)
    with h5py.File(folder / "cells.h5", "w") as file:
        rows = [(1, b"NK", 1.5), (2, b"B", 2.0), (3, b"NK", 4.5), (4, b"NK", 9.0)]
        dtype = [("x", "i4"), ("type", "S2"), ("score", "f8")]
        file["cells"] = numpy.array(rows, dtype)
        file["temperature"] = numpy.arange(1000, dtype="f8")
    root = zarr.create_group(folder / "shards.zarr")
    root.create_array("t", shape=(64, 64), chunks=(8, 8), shards=(32, 32), dtype="f4")
    numpy.savez(folder / "some.npz", a=numpy.arange(5), b=numpy.arange(3.0))


def types(path):
    with netCDF4.Dataset(path) as file:
        names = [*file.cmptypes, *file.enumtypes, *file.vltypes]
        used = {name: variable.datatype.name for name, variable in file.variables.items() if name in "cew"}
        units = file["q"].getncattr("units") if "q" in file.variables else None
    with h5py.File(path) as file:
        text = file["q"].attrs.get_id("units").get_type().is_variable_str() if "q" in file else None
    return {"names": names, "used": used, "units": units, "variable": text}


def packed(folder):
    import pandas

    expected = xarray.open_dataset(folder / "packed.nc")["t"].to_dataframe().reset_index()
    for name, read in (("t.csv", pandas.read_csv), ("t.parquet", pandas.read_parquet)):
        found = read(folder / name)
        assert list(found.columns) == ["time", "x", "value"], found.columns
        assert pandas.to_datetime(found.time).tolist() == expected.time.tolist()
        numpy.testing.assert_allclose(found.value.to_numpy("f8"), expected.t.to_numpy("f8"))
    raw = pandas.read_csv(folder / "raw.csv")
    assert raw.value.tolist() == [0, 1, -999, 3, 4, 5], raw
    one = pandas.read_csv(folder / "one.csv")
    assert list(one.columns) == ["time", "x", "value"], one
    assert set(pandas.to_datetime(one.time)) == {pandas.Timestamp("2001-01-02")}, one
    numbers = [line.split(",")[1] for line in (folder / "n.csv").read_text().split()]
    assert numbers == ["value", str(2**60 + 1), ""], numbers


def frames(folder):
    """All variables in one table, as xarray's data frame; scalar grid mappings and bounds are not columns of ours."""
    import pandas

    source = xarray.open_dataset(folder / "data" / "a.nc")
    expected = source.drop_vars("time_bnds").to_dataframe().reset_index()
    for name, read in (("all.csv", pandas.read_csv), ("all.parquet", pandas.read_parquet)):
        found = read(folder / name)
        assert set(found.columns) == {"time", "lat", "lon", "t", "name", "mask"}, found.columns
        found["time"] = pandas.to_datetime(found.time).astype(expected.time.dtype)
        ours = found[expected.columns]
        pandas.testing.assert_frame_equal(ours, expected, check_dtype=False, rtol=1e-6)
    part = pandas.read_csv(folder / "part.csv")
    assert len(part) == 2 * 3 * source.lon.size and set(part.lat) == set(source.lat.values[1:4].tolist()), part


def records(path):
    with netCDF4.Dataset(path) as file:
        time, t = file["time"][:], file["t"][:]
        numpy.testing.assert_array_equal(time, numpy.arange(time.size))
        numpy.testing.assert_array_equal(t, numpy.arange(t.size).reshape(t.shape))
        return len(file.dimensions["time"])


def frame():
    import pandas

    random = numpy.random.default_rng(4)
    rows = 500
    data = pandas.DataFrame(
        {
            "x": numpy.round(random.random(rows) * 10, 3),
            "y": numpy.round(random.random(rows) * 10, 3),
            "z": numpy.round(random.random(rows) * 10, 3),
            "score": numpy.round(random.normal(size=rows), 3),
            "count": numpy.arange(rows) % 7,
            "label": [f"cell {row % 11}" for row in range(rows)],
            "kind": pandas.Categorical.from_codes(numpy.arange(rows) % 3, ["a", "b", "c"]),
        }
    )
    data.loc[::9, "score"] = numpy.nan
    return data


def tables(folder):
    data = frame()
    data.to_csv(folder / "points.csv", index=False)
    for compression in ("snappy", "gzip", "brotli", "lz4", "zstd", "none"):
        data.to_parquet(folder / f"{compression}.parquet", index=False, compression=None if compression == "none" else compression)
    for compression in ("lz4", "zstd", "uncompressed"):
        data.to_feather(folder / f"{compression}.feather", compression=compression)
    data.head(20).to_feather(folder / "small.feather", compression="lz4")
    holes = data.astype({"count": "Int64"})
    holes.loc[3, "count"] = None
    holes.to_parquet(folder / "holes.parquet", index=False)
    holes.loc[5, "y"] = None
    holes.to_parquet(folder / "nowhere.parquet", index=False)


def rows(folder, name):
    import pandas

    pandas.testing.assert_frame_equal(pandas.read_csv(folder / f"{name}.csv"), pandas.read_csv(folder / "points.csv"))


def variables(one, other):
    with netCDF4.Dataset(one) as one, netCDF4.Dataset(other) as other:
        assert set(one.variables) == set(other.variables), (set(one.variables), set(other.variables))
        for name, variable in one.variables.items():
            values, others = variable[...], other[name][...]
            assert variable.dimensions == other[name].dimensions, name
            if values.dtype.kind == "f":
                numpy.testing.assert_allclose(values, others, rtol=2e-7, err_msg=name)
            else:
                assert numpy.array_equal(values, others), name
            assert getattr(variable, "units", None) == getattr(other[name], "units", None), name


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    folder = pathlib.Path(folder)
    if command == "make":
        make(folder)
    elif command == "frames":
        frames(folder)
    elif command == "same":
        same(folder, rest[0], rest[1:])
    elif command == "attrs":
        attrs(folder)
    elif command == "kinds":
        kinds(folder)
    elif command == "types":
        print(json.dumps(types(folder)))
    elif command == "packed":
        packed(folder)
    elif command == "records":
        print(records(folder))
    elif command == "tables":
        tables(folder)
    elif command == "rows":
        rows(folder, rest[0])
    elif command == "variables":
        variables(folder, rest[0])
    elif command == "attr":
        value = attr(folder, *rest)
        print(json.dumps(value.item() if hasattr(value, "item") else value))
