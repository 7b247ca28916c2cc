"""Writes files with missing and packed values in NetCDF and Zarr, and prints xarray's reductions of them as JSON."""
import itertools, json, sys, warnings

import netCDF4
import numpy as np
import xarray as xr
import zarr
from xarray.backends.zarr import FillValueCoder

warnings.simplefilter("ignore")
folder = sys.argv[1]
rng = np.random.default_rng(3)
SHAPE = (6, 7)


CLASSIC = {"classic.nc": "NETCDF3_CLASSIC", "offset.nc": "NETCDF3_64BIT_OFFSET", "data.nc": "NETCDF3_64BIT_DATA"}


def write_netcdf(file="cases.nc", kind="NETCDF4"):
    """Writes all cases that the kind supports. In the classic kinds `y` is unlimited, so that variables are stored by record."""
    with netCDF4.Dataset(f"{folder}/{file}", "w", format=kind) as ds:
        ds.set_auto_maskandscale(False)
        classic = kind != "NETCDF4"
        for name, length in zip("yx", SHAPE):
            ds.createDimension(name, None if classic and name == "y" else length)

        def variable(name, dtype, values, fill=None, chunks=None, **attributes):
            if dtype == "u1" and kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"):
                return
            chunks = None if classic else chunks
            v = ds.createVariable(name, dtype, ("y", "x"), fill_value=fill, chunksizes=chunks, zlib=chunks is not None)
            v.set_auto_maskandscale(False)
            v.setncatts(attributes)
            v[:] = values

        floats = rng.normal(280, 10, SHAPE).astype("f4")
        holes = rng.random(SHAPE) < 0.3
        holes[2] = True
        variable("fill", "f4", np.where(holes, np.float32(1e20), floats), fill=np.float32(1e20), units="K")
        variable("chunked", "f4", np.where(holes, np.float32(1e20), floats), fill=np.float32(1e20), chunks=(2, 3))
        variable("nan", "f8", np.where(holes, np.nan, floats), fill=np.nan)
        variable("missing", "f4", np.where(holes, np.float32(-1), floats), missing_value=np.float32(-1))
        both = np.where(holes, np.float32(-1), floats)
        both[0, 0] = -2
        variable("both", "f4", both, fill=np.float32(-2), missing_value=np.float32(-1))
        several = np.where(holes, np.int16(-1), rng.integers(0, 99, SHAPE).astype("i2"))
        several[1, 1] = -5
        variable("several", "i2", several, missing_value=np.array([-1, -5], "i2"))
        packed = rng.integers(-30000, 30000, SHAPE).astype("i2")
        packed[holes] = -32768
        scale = {"scale_factor": 0.01, "add_offset": 250.0}
        variable("packed", "i2", packed, fill=np.int16(-32768), chunks=(3, 3), **scale)
        single = {"scale_factor": np.float32(0.01), "add_offset": np.float32(250)}
        variable("packed_single", "i2", packed, fill=np.int16(-32768), **single)
        variable("packed_wide", "i4", packed.astype("i4"), fill=np.int32(-32768), **single)
        variable("scaled_only", "i2", packed, scale_factor=np.float32(0.5))
        variable("negative_scale", "i2", packed, fill=np.int16(-32768), scale_factor=-0.5)
        variable("unsigned", "i1", rng.integers(-128, 128, SHAPE).astype("i1"), fill=np.int8(-1), _Unsigned="true")
        variable("integers", "i4", np.where(holes, -9, rng.integers(0, 2**31 - 1, SHAPE)), fill=np.int32(-9))
        variable("bytes", "u1", rng.integers(0, 256, SHAPE).astype("u1"), fill=np.uint8(255))
        variable("plain", "f4", floats)
        variable("other_type", "f4", np.where(holes, np.float32(1e20), floats), missing_value=np.float64(1e20))
        variable("all_missing", "f4", np.full(SHAPE, np.float32(1e20)), fill=np.float32(1e20))
        if not classic:
            named = ds.createEnumType("u1", "cover_t", {"clear": 0, "few": 1, "overcast": 2, "missing": 255})
            v = ds.createVariable("named", named, ("y", "x"), fill_value=255)
            v[:] = np.where(holes, 255, rng.integers(0, 3, SHAPE)).astype("u1")
        # Never written, so the fill value is missing as well.
        ds.createVariable("unwritten", "f4", ("y", "x"), fill_value=np.float32(-3))


def write_zarr(version):
    """Writes the same stored values and attributes as xarray stores them in Zarr."""
    raw = xr.open_dataset(f"{folder}/cases.nc", mask_and_scale=False, engine="netcdf4")
    group = zarr.create_group(f"{folder}/cases.zarr{version}", zarr_format=version)
    for name, v in raw.data_vars.items():
        attributes = {key: value.item() if getattr(value, "shape", None) == () else
                      value.tolist() if hasattr(value, "tolist") else value for key, value in v.attrs.items()}
        marker = v.attrs.get("_FillValue")
        options = {"dimension_names": v.dims} if version == 3 else {}
        if version == 2:
            attributes["_ARRAY_DIMENSIONS"] = list(v.dims)
            attributes.pop("_FillValue", None)
        elif marker is not None:
            attributes["_FillValue"] = FillValueCoder.encode(marker, v.dtype)
        array = group.create_array(name, shape=v.shape, chunks=(4, 4), dtype=v.dtype, attributes=attributes,
                                   fill_value=marker.item() if marker is not None else None, **options)
        if name != "unwritten":
            array[:] = v.values


def main():
    write_netcdf()
    write_zarr(2)
    write_zarr(3)
    for file, kind in CLASSIC.items():
        write_netcdf(file, kind)
    files = ["cases.nc", "cases.zarr2", "cases.zarr3", *CLASSIC]
    answers = []
    for file in files:
        engine = "netcdf4" if file.endswith(".nc") else "zarr"
        ds = xr.open_dataset(f"{folder}/{file}", engine=engine).load()
        for name, axis in itertools.product(ds.data_vars, (None, "y", "x")):
            v = ds[name].astype("f8")
            for operation in ("mean", "sum", "min", "max", "std", "var", "count", "median"):
                found = getattr(v, operation)(axis)
                values = json.loads(json.dumps(found.values.tolist()).replace("NaN", '"NaN"'))
                answers.append({"file": file, "array": f"/{name}", "operation": operation, "axis": axis,
                                "values": values, "missing": int(v.isnull().sum())})
    print(json.dumps(answers))


main()
