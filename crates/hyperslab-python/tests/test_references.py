"""References: read back through zarr and fsspec, equal to the source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab
from fields import field

zarr = pytest.importorskip("zarr")
fsspec = pytest.importorskip("fsspec")


def read_back(document: dict[str, object], node: str) -> np.ndarray:
    filesystem = fsspec.filesystem("reference", fo=json.loads(json.dumps(document)), asynchronous=True, remote_protocol="file")
    store = zarr.storage.FsspecStore(filesystem, read_only=True)
    return np.asarray(zarr.open(store, mode="r", path=node.strip("/"))[...])


def test_references_read_equal(stored: tuple[Path, str]) -> None:
    path, node = stored
    document = hyperslab.references(path)
    assert document["version"] == 1
    assert np.array_equal(read_back(document, node), field())


def test_chunks_stay_where_they_are(tmp_path: Path) -> None:
    with hyperslab.create(tmp_path / "x.tet") as new:
        new.create_array("/x", np.arange(4096.0).reshape(64, 64), chunks=(16, 16), filters=["zstd"])
    refs = hyperslab.references(tmp_path / "x.tet")["refs"]
    rows = [refs[f"x/{i}.{j}"] for i in range(4) for j in range(4)]
    assert all(isinstance(row, list) and row[0] == str(tmp_path / "x.tet") for row in rows)


def test_unsupported_references_name_the_array(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("lzf", data=np.arange(10000.0) // 50, chunks=(1000,), compression="lzf")
        file["text"] = np.array(["a", "Gießen"], dtype=h5py.string_dtype())
        file["big"] = np.arange(100, dtype=">u4")
    document = hyperslab.references(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(read_back(document, "lzf"), file["lzf"][...])
        assert np.array_equal(read_back(document, "big"), file["big"][...])
    assert read_back(document, "text").tolist() == ["a", "Gießen"]
    with pytest.raises(hyperslab.UnsupportedError, match="/lzf.*lzf"):
        hyperslab.references(tmp_path / "x.h5", inline_limit=1000)


def test_virtualizarr_accepts_the_parser(tmp_path: Path) -> None:
    pytest.importorskip("virtualizarr")
    import xarray as xr
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    from hyperslab.virtualizarr import HyperslabParser

    with hyperslab.create(tmp_path / "x.tet") as new:
        new.create_array("/x", np.arange(4096.0).reshape(64, 64), chunks=(16, 16), filters=["zstd"], dims=("a", "b"))
    registry = ObjectStoreRegistry({"file://": LocalStore()})
    store = HyperslabParser()(f"file://{tmp_path}/x.tet", registry)
    with xr.open_zarr(store, consolidated=False, zarr_format=3) as found:
        assert np.array_equal(found.x.values, np.arange(4096.0).reshape(64, 64))


def test_virtualizarr_reads_ordinary_files(tmp_path: Path) -> None:
    """Scalars, missing chunks, compounds, groups, Fortran order, whole objects."""
    pytest.importorskip("virtualizarr")
    h5py = pytest.importorskip("h5py")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    from hyperslab.virtualizarr import HyperslabParser

    records = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["scalar"] = 3.5
        file["records"] = records
        file.create_dataset("g/hole", shape=(10, 10), dtype=">i4", chunks=(5, 5), fillvalue=7)[:5, :5] = 1
        file.create_dataset("lzf", data=np.arange(100), compression="lzf")
    np.save(tmp_path / "f.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    with hyperslab.create(tmp_path / "z.zarr") as new:
        new.create_array("t", np.arange(10), chunks=(4,), filters="zstd:3")
    registry = ObjectStoreRegistry({"file://": LocalStore()})

    def read(name: str, **options: Any) -> Any:
        return zarr.open_group(HyperslabParser(**options)(f"file://{tmp_path}/{name}", registry), mode="r")

    with pytest.raises(hyperslab.UnsupportedError, match="skip=.'lzf'"):
        read("x.h5")
    found = read("x.h5", skip=("/lzf",))
    assert found["scalar"][()] == 3.5
    assert found["records"][...].tolist() == records.tolist()
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(found["g/hole"][...], file["g/hole"][...])
        assert np.array_equal(read("x.h5", group="g")["hole"][...], file["g/hole"][...])
    assert np.array_equal(read("f.npy")["data"][...], np.arange(6.0).reshape(2, 3))
    assert np.array_equal(read("z.zarr")["t"][...], np.arange(10))
