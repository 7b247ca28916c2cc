"""Writes the same three-dimensional field in every format, for testing the pages."""

import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy as np

FORMATS = {"field.nc": "netcdf3", "field.tiledb": "tiledb", "field.tet": "tet", "field.zarr": "zarr3"}


def main(folder: pathlib.Path, tet: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    time, lat, lon = np.arange(12.0), np.linspace(-88, 88, 45), np.linspace(2, 358, 90)
    season = np.cos(time / 12 * 2 * np.pi)[:, None, None] * np.sign(lat)[None, :, None]
    field = 300 - 0.6 * np.abs(lat)[None, :, None] - 9 * season + 4 * np.sin(lon / 40)[None, None, :] * np.cos(lat / 25)[None, :, None]
    with h5py.File(folder / "field.h5", "w") as file:
        for name, values, unit in [("time", time, "months"), ("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")]:
            file[name] = values
            file[name].attrs["units"] = unit
            file[name].make_scale(name)
        data = file.create_dataset("temperature", data=field.astype("f4"), chunks=(4, 15, 30), compression="gzip", shuffle=True)
        data.attrs.update(units="K", long_name="Surface temperature <b>&amp;</b>")
        for axis, name in enumerate(["time", "lat", "lon"]):
            data.dims[axis].attach_scale(file[name])
    for name, format in FORMATS.items():
        subprocess.run([tet, "convert", folder / "field.h5", folder / name, "--to", format, "-q"], check=False)
    for name in FORMATS:
        assert (folder / name).exists(), name
    np.save(folder.parent / "temperature.npy", field.astype("f4"))
    rng = np.random.default_rng(1)
    turns = np.linspace(0, 40, 4000)
    points = np.stack([np.cos(turns) * (1 + turns / 20), np.sin(turns) * (1 + turns / 20), turns / 8], axis=1) * 20
    np.savez(folder.parent / "points.npz", vertices=(points + rng.normal(0, 0.6, points.shape)).astype("f4"))
    subprocess.run([tet, "convert", folder.parent / "points.npz", folder / "points.zv", "--levels", "2", "-q"], check=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
