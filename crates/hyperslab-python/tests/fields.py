"""The same arrays in every format, written by the formats' own libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab

SHAPE, CHUNKS = (20, 17, 9), (8, 5, 9)


def field() -> np.ndarray[Any, Any]:
    """An array of distinct values. None is zero, because xarray treats zero as missing in Zarr v2."""
    return np.arange(1, np.prod(SHAPE) + 1, dtype="float32").reshape(SHAPE)


def write_npy(folder: Path) -> tuple[Path, str]:
    np.save(folder / "t.npy", field())
    return folder / "t.npy", "/"


def write_hdf5(folder: Path) -> tuple[Path, str]:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "t.h5", "w") as file:
        t = file.create_dataset("/g/t", data=field(), chunks=CHUNKS, compression="gzip", shuffle=True)
        t.attrs["units"] = "K"
        file["raw"] = field()
    return folder / "t.h5", "/g/t"


def write_hdf5_raw(folder: Path) -> tuple[Path, str]:
    return write_hdf5(folder)[0], "/raw"


def write_zarr2(folder: Path) -> tuple[Path, str]:
    return write_zarr(folder, 2)


def write_zarr3(folder: Path) -> tuple[Path, str]:
    return write_zarr(folder, 3)


def write_zarr(folder: Path, version: int) -> tuple[Path, str]:
    import zarr

    path = folder / f"t{version}.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=version)
    group.create_array("t", data=field(), chunks=CHUNKS)
    group["t"].attrs["units"] = "K"
    return path, "/t"


def write_tiledb(folder: Path) -> tuple[Path, str]:
    tiledb = pytest.importorskip("tiledb")
    if "tiledb" not in hyperslab.formats():
        pytest.skip("this build has no TileDB")
    path = folder / "t.tiledb"
    axes = [
        tiledb.Dim(name, (0, extent - 1), tile=chunk, dtype="uint64")
        for name, extent, chunk in zip("zyx", SHAPE, CHUNKS, strict=True)
    ]
    schema = tiledb.ArraySchema(tiledb.Domain(*axes), [tiledb.Attr("t", dtype="float32", filters=[tiledb.ZstdFilter()])])
    tiledb.Array.create(str(path), schema)
    with tiledb.open(str(path), "w") as array:
        array[:] = field()
    node = hyperslab.open(path)._native.only_node()
    return path, node


def write_tet(folder: Path) -> tuple[Path, str]:
    path = folder / "t.tet"
    with hyperslab.create(path) as new:
        new.create_array("/t", field(), chunks=CHUNKS, filters=["zstd"], dims=("z", "y", "x"), attrs={"units": "K"})
    return path, "/t"


WRITERS = [write_npy, write_hdf5, write_hdf5_raw, write_zarr2, write_zarr3, write_tiledb, write_tet]
