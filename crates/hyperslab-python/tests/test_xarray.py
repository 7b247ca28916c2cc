"""The engine of xarray, over every format, and dask on top of it."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab
from fields import CHUNKS, SHAPE, field

xr = pytest.importorskip("xarray")


def variable(dataset: Any) -> Any:
    return next(dataset[name] for name in dataset.data_vars if dataset[name].ndim == 3)


def opened(stored: tuple[Path, str], **options: Any) -> Any:
    path, node = stored
    group = node.rsplit("/", 1)[0] or None
    return xr.open_dataset(path, engine="hyperslab", group=group, **options)


def test_datasets_are_lazy_and_right(stored: tuple[Path, str]) -> None:
    t = variable(opened(stored))
    assert not t.variable._in_memory
    assert t.shape == SHAPE and t.dtype == "float32"
    first, second, third = t.dims
    assert np.array_equal(t.isel({first: [5, 1], third: slice(None, None, -2)}).values, field()[[5, 1]][:, :, ::-2])
    assert np.array_equal(t.isel({second: 3}).values, field()[:, 3])
    points = xr.DataArray([0, 4], dims="p"), xr.DataArray([2, 1], dims="p")
    assert np.array_equal(t.isel({first: points[0], second: points[1]}).values, field()[[0, 4], [2, 1]])
    assert np.array_equal(t.values, field())


def test_values_are_loaded_asynchronously(stored: tuple[Path, str]) -> None:
    t = variable(opened(stored))
    first = t.dims[0]

    async def load() -> Any:
        return await asyncio.gather(t.isel({first: 1}).load_async(), t.isel({first: [2, 0]}).load_async())

    one, two = asyncio.run(load())
    assert np.array_equal(one.values, field()[1]) and np.array_equal(two.values, field()[[2, 0]])


def test_dask_follows_the_file_s_chunks(stored: tuple[Path, str]) -> None:
    array = hyperslab.open(stored[0])[stored[1]]
    t = variable(opened(stored, chunks={}))
    if array.chunks is not None:
        assert tuple(sizes[0] for sizes in t.data.chunks) == CHUNKS
    assert float(t.mean()) == pytest.approx(field().mean(), rel=1e-5)
    assert t.data.name == variable(opened(stored, chunks={})).data.name, "the same file, the same token"


def test_datasets_are_pickled_as_paths(stored: tuple[Path, str]) -> None:
    dataset = opened(stored)
    pickled = pickle.dumps(dataset)
    assert len(pickled) < 4000 + 8 * len(str(stored[0]))
    assert np.array_equal(variable(pickle.loads(pickled)).values, field())


def test_guesses_only_own_formats(stored: tuple[Path, str], tmp_path: Path) -> None:
    from hyperslab.xarray import HyperslabEntrypoint

    path, _ = stored
    ours = hyperslab.open(path).format in ("tet", "tiledb")
    assert HyperslabEntrypoint().guess_can_open(str(path)) == ours
    assert not HyperslabEntrypoint().guess_can_open(tmp_path / "nothing")
    assert not HyperslabEntrypoint().guess_can_open(b"bytes")
    assert "hyperslab" in xr.backends.list_engines()
    if ours:
        assert np.array_equal(variable(xr.open_dataset(path)).values, field())


def dataset() -> Any:
    """A dataset that uses CF decoding and NetCDF conventions."""
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "datetime64[ns]")
    return xr.Dataset(
        {
            "t": (("time", "x"), np.array([[1.5, np.nan], [2.5, 3.5], [0.0, -1.0]]), {"units": "K"}),
            "packed": (("x",), np.array([10.0, 20.5]), {}, {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -9}),
            "name": (("x",), np.array(["Gießen", "Bonn"], dtype=object)),
            "flag": (("x",), np.array([True, False])),
        },
        {"time": times, "x": [10, 20]},
        {"title": "test"},
    )


@pytest.mark.parametrize("kind", ["nc", "zarr2", "zarr3"])
def test_conventions_are_decoded(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    if kind == "nc":
        pytest.importorskip("h5netcdf")
        dataset().to_netcdf(path, engine="h5netcdf")
    else:
        dataset().to_zarr(path, zarr_format=int(kind[-1]), consolidated=False)
    with xr.open_dataset(path, engine="hyperslab") as found:
        xr.testing.assert_identical(found.load(), dataset())


CLASSIC = ("NETCDF3_CLASSIC", "NETCDF3_64BIT", "NETCDF3_64BIT_DATA")
#: Encodings for decoding, which all engines must report alike.
CF = ("_FillValue", "missing_value", "scale_factor", "add_offset", "units", "calendar", "dtype", "coordinates", "_Encoding")


@pytest.mark.parametrize("kind", CLASSIC)
@pytest.mark.parametrize("decode", [True, False])
def test_netcdf_classic_matches_other_engines(tmp_path: Path, kind: str, decode: bool) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    path = tmp_path / "x.nc"
    written = dataset().assign_coords(area=("x", [1.0, 2.0]))
    written["count"] = (("time",), np.array([1, 2, 3], "i4"), {"valid_range": np.array([0, 9], "i4")})
    written.to_netcdf(path, engine="netcdf4", format=kind, unlimited_dims=["time"])
    with netcdf4.Dataset(path, "a") as file:
        file.createDimension("unused", 4)
    with xr.open_dataset(path, engine="hyperslab", decode_cf=decode) as found:
        for engine in ("netcdf4", "scipy"):
            if engine == "scipy" and (kind == "NETCDF3_64BIT_DATA" or not pytest.importorskip("scipy")):
                continue
            with xr.open_dataset(path, engine=engine, decode_cf=decode) as expected:
                xr.testing.assert_identical(found.load(), expected.load())
                assert found.encoding["unlimited_dims"] == expected.encoding["unlimited_dims"] == {"time"}
                for name in expected.variables:
                    a, b = found[name], expected[name]
                    assert a.dtype.newbyteorder("=") == b.dtype.newbyteorder("="), (engine, name)
                    for key in CF:
                        u, v = a.encoding.get(key), b.encoding.get(key)
                        if key == "dtype" and u is not None and v is not None:
                            u, v = np.dtype(u).newbyteorder("="), np.dtype(v).newbyteorder("=")
                        assert u == v or (u != u and v != v), (engine, name, key, u, v)


def test_groups_are_a_tree(tmp_path: Path) -> None:
    tree = xr.DataTree.from_dict({"/": dataset(), "/deeper": dataset()[["t"]], "/deeper/still": xr.Dataset({"a": 1.0})})
    tree.to_zarr(tmp_path / "tree.zarr", consolidated=False)
    found = xr.open_datatree(tmp_path / "tree.zarr", engine="hyperslab")
    assert sorted(node.path for node in found.subtree) == ["/", "/deeper", "/deeper/still"]
    xr.testing.assert_identical(found["deeper"].to_dataset().load(), dataset()[["t"]])
    groups = xr.open_groups(tmp_path / "tree.zarr", engine="hyperslab")
    assert set(groups) == {"/", "/deeper", "/deeper/still"}
