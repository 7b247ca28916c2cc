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
    time, lat, lon = np.arange(12.0) * 30, np.linspace(-88, 88, 45), np.linspace(2, 358, 90)
    season = np.cos(time / 360 * 2 * np.pi)[:, None, None] * np.sign(lat)[None, :, None]
    field = 300 - 0.6 * np.abs(lat)[None, :, None] - 9 * season + 4 * np.sin(lon / 40)[None, None, :] * np.cos(lat / 25)[None, :, None]
    with h5py.File(folder / "field.h5", "w") as file:
        for name, values, unit in [("time", time, "days since 2024-01-01"), ("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")]:
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
    write_views(folder / "views.h5")
    subprocess.run([tet, "convert", folder / "views.h5", folder / "views.zarr", "-q", "--skip-unsupported"], check=False)
    rng = np.random.default_rng(1)
    turns = np.linspace(0, 40, 4000)
    points = np.stack([np.cos(turns) * (1 + turns / 20), np.sin(turns) * (1 + turns / 20), turns / 8], axis=1) * 20
    np.savez(folder.parent / "points.npz", vertices=(points + rng.normal(0, 0.6, points.shape)).astype("f4"))
    subprocess.run([tet, "convert", folder.parent / "points.npz", folder / "points.zv", "--levels", "2", "-q"], check=True)


def write_views(path: pathlib.Path) -> None:
    """What H5Web shows by attributes and types: a default plot of NeXus, an image with colours, a compound type."""
    rows, columns = np.mgrid[0:48, 0:64]
    with h5py.File(path, "w") as file:
        file.attrs["default"] = "entry"
        entry = file.create_group("entry")
        entry.attrs.update(NX_class="NXentry", default="scan")
        scan = entry.create_group("scan")
        scan.attrs.update(NX_class="NXdata", signal="counts", axes=["energy"])
        scan["energy"] = np.linspace(5.0, 9.0, 41)
        scan["energy"].attrs["units"] = "keV"
        scan["counts"] = np.exp(-((scan["energy"][...] - 7) ** 2) * 4) * 100
        colours = np.stack([rows * 5, columns * 4, 255 - rows * 5], axis=2).astype("u1")
        file["rgb"] = colours
        file["rgb"].attrs.update(CLASS=np.bytes_("IMAGE"), IMAGE_SUBCLASS=np.bytes_("IMAGE_TRUECOLOR"))
        file["peaks"] = np.array([(1, 2.5, b"Fe"), (2, 7.25, b"Cu")], dtype=[("id", "i4"), ("energy", "f8"), ("name", "S2")])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
