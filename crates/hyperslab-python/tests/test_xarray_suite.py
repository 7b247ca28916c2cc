"""xarray's own backend tests: written by xarray's engines and read by Hyperslab, or converted by Hyperslab and read by xarray's engines."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import hyperslab
import numpy as np
import pytest

pytest.importorskip("xarray.tests.conftest")
from xarray.tests.conftest import time_unit, use_dask  # noqa: E402, F401

xr = pytest.importorskip("xarray")
backends = pytest.importorskip("xarray.tests.test_backends")


class ReadByHyperslab(backends.CFEncodedBase):
    """The reading tests of the suite. Tests that write through the backend under test or check its encoding do not
    apply."""

    @contextlib.contextmanager
    def open(self, path: Any, **options: Any) -> Any:
        with xr.open_dataset(path, engine="hyperslab", **options) as dataset:
            yield dataset


# Tests that do not apply, with the reasons.
DO_NOT_APPLY = {
    "test_write_store": "writes through a store of the engine",
    "test_append_write": "appends",
    "test_append_with_invalid_dim_raises": "appends",
    "test_append_overwrite_values": "appends",
    "test_multiindex_not_implemented": "about writing",
    "test_encoding_kwarg": "about encodings while writing",
    "test_encoding_kwarg_dates": "about encodings while writing",
    "test_default_fill_value": "about encodings while writing",
    "test_explicitly_omit_fill_value": "about encodings while writing",
    "test_explicitly_omit_fill_value_via_encoding_kwarg": "about encodings while writing",
    "test_explicitly_omit_fill_value_in_coord": "about encodings while writing",
    "test_explicitly_omit_fill_value_in_coord_via_encoding_kwarg": "about encodings while writing",
    "test_encoding_same_dtype": "about encodings while writing",
    "test_roundtrip_bytes_with_fill_value": "about the types that the writer chose",
    "test_load_async": "needs a plugin of pytest; test_xarray.py has a test of its own",
}

# Tests that xarray's own Zarr tests also leave out.
NOT_IN_ZARR = {
    "test_encoding_unlimited_dims": "Zarr has no unlimited dimensions",
    "test_encoding_kwarg_fixed_width_string": "texts are not stored by character in Zarr",
}


def without(*lists: dict[str, str]) -> Any:
    """Remove the tests that do not apply from a suite."""

    def leave_out(suite: type) -> type:
        for name in {name for each in lists for name in each}:
            assert hasattr(suite, name), f"{name} is no test of xarray"
            setattr(suite, name, None)
        return suite

    return leave_out


@without(DO_NOT_APPLY)
class TestNetCDF(ReadByHyperslab):
    engine = "h5netcdf"

    def save(self, dataset: Any, path: Any, **options: Any) -> Any:
        pytest.importorskip("h5netcdf")
        return dataset.to_netcdf(path, engine="h5netcdf", **options)


@without(DO_NOT_APPLY, NOT_IN_ZARR)
class TestZarr(ReadByHyperslab):
    zarr_format = 3

    def save(self, dataset: Any, path: Any, **options: Any) -> Any:
        return dataset.to_zarr(path, zarr_format=self.zarr_format, consolidated=False, **options)

    # Zarr attributes are JSON: a float32 scale becomes float64, in xarray's own engine as well.
    @pytest.mark.parametrize("decoded_fn, encoded_fn", backends.MASK_AND_SCALE_DATA)
    @pytest.mark.parametrize("dtype", [np.dtype("float64")])
    def test_roundtrip_mask_and_scale(self, decoded_fn: Any, encoded_fn: Any, dtype: Any) -> None:
        super().test_roundtrip_mask_and_scale(decoded_fn, encoded_fn, dtype)


class TestZarr2(TestZarr):
    zarr_format = 2


# What a ring of conversions changes, whoever makes them.
NOT_IN_RINGS = {
    "test_roundtrip_endian": "byte order is the format's",
    "test_roundtrip_mask_and_scale": "attributes of Zarr are JSON: a scale of float32 comes back as float64",
    "test_string_object_warning": "about writing",
    "test_encoding_unlimited_dims": "Zarr has no unlimited dimensions",
}


class Ring(backends.CFEncodedBase):
    """What xarray writes and we convert through other formats back to its own is what xarray wrote."""

    engine = "h5netcdf"
    file_format = "NETCDF4"
    through = ("zarr2", "zarr3", "netcdf4")

    def save(self, dataset: Any, path: Any, **options: Any) -> Any:
        path = Path(path)
        stages = [path.with_suffix(f".{number}") for number in range(len(self.through))]
        dataset.to_netcdf(stages[0], engine=self.engine, format=self.file_format, **options)
        for source, target, form in zip(stages, [*stages[1:], path], self.through):
            report = hyperslab.convert(source, target, format=form, overwrite=True)
            assert not any(loss["dropped"] for loss in report["losses"]), report


@without(DO_NOT_APPLY, NOT_IN_RINGS)
class TestNetCDFRing(Ring):
    pass


@without(DO_NOT_APPLY, NOT_IN_RINGS, {"test_dtype_coercion_error": "about writing"})
class TestClassicRing(backends.NetCDF3Only, Ring):
    engine = "scipy"
    file_format = "NETCDF3_64BIT"
    through = ("zarr3", "netcdf4", "zarr2", "netcdf3")
