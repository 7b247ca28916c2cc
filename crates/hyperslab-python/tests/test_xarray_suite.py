"""xarray's own tests of backends: written by xarray's engines for NetCDF-4 and Zarr, read by ours."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

xr = pytest.importorskip("xarray")
backends = pytest.importorskip("xarray.tests.test_backends")


class ReadByHyperslab(backends.CFEncodedBase):
    """What a backend must read. Tests that write through the backend under test, or ask for its own encoding, do not apply."""

    @contextlib.contextmanager
    def open(self, path: Any, **options: Any) -> Any:
        with xr.open_dataset(path, engine="hyperslab", **options) as dataset:
            yield dataset


# A test that does not apply, and why.
DO_NOT_APPLY = {
    "test_write_store": "writes through a store of the engine",
    "test_dropna": "",
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
    "test_encoding_chunksizes_unlimited": "about writing",
    "test_raise_on_forward_slashes_in_names": "about writing",
    "test_refresh_from_disk": "overwrites a file that is open",
}


def without(suite: type) -> type:
    for name in DO_NOT_APPLY:
        if hasattr(suite, name):
            setattr(suite, name, None)
    return suite


@without
class TestNetCDF(ReadByHyperslab):
    engine = "h5netcdf"

    def save(self, dataset: Any, path: Any, **options: Any) -> Any:
        pytest.importorskip("h5netcdf")
        return dataset.to_netcdf(path, engine="h5netcdf", **options)


@without
class TestZarr(ReadByHyperslab):
    zarr_format = 3

    def save(self, dataset: Any, path: Any, **options: Any) -> Any:
        return dataset.to_zarr(path, zarr_format=self.zarr_format, consolidated=False, **options)


@without
class TestZarr2(TestZarr):
    zarr_format = 2
