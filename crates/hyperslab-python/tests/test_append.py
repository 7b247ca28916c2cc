"""Appending to stores written by Hyperslab and by the formats' own libraries, read by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab
from fields import CHUNKS, SHAPE, field

ENDINGS = ["tet", "h5", "tiledb", "zarr"]
MAXSHAPE = (None, *SHAPE[1:])


def read_by_peer(path: Path, name: str) -> np.ndarray[Any, Any] | None:
    """The array, read by the format's own library."""
    if path.suffix == ".h5":
        import h5py

        with h5py.File(path) as file:
            return file[name][...]
    if path.suffix == ".zarr":
        import zarr

        return np.asarray(zarr.open_group(path, mode="r")[name][...])
    if path.suffix == ".tiledb":
        import tiledb

        with tiledb.open(str(path)) as array:
            found = array[:]
            return found[name] if isinstance(found, dict) else found
    return None


def check(path: Path, expected: np.ndarray[Any, Any], name: str = "t") -> None:
    found = hyperslab.open(path)[f"/{name}"]
    assert found.shape == expected.shape
    assert np.array_equal(found[...], expected)
    assert hyperslab.verify(path, deep=True)["ok"]
    peer = read_by_peer(path, name)
    assert peer is None or np.array_equal(peer, expected)


@pytest.mark.parametrize("filters", [[], ["gzip"]])
@pytest.mark.parametrize("ending", ENDINGS)
def test_arrays_grow(tmp_path: Path, ending: str, filters: list[str]) -> None:
    path, data = tmp_path / f"t.{ending}", field()
    if ending == "tet" and filters:
        filters = ["zstd"]
    with hyperslab.create(path) as new:
        new.create_array("/t", data, chunks=CHUNKS, dims=("z", "y", "x"), filters=filters, maxshape=MAXSHAPE)
    before = hyperslab.open(path)["/t"]
    expected = data
    for count in (1, 3, 20, 8):
        with hyperslab.append(path) as more:
            more.extend("/t", data[:count], axis="z")
        expected = np.concatenate([expected, data[:count]])
        check(path, expected)
    assert before.shape == data.shape, "what was opened before stays as it was"
    assert hyperslab.open(path)["/t"].dims == ("z", "y", "x")
    with pytest.raises(RuntimeError), hyperslab.append(path) as more:
        more.extend("/t", data)
        raise RuntimeError("nothing of this is kept")
    check(path, expected)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ["h5", "zarr"])
def test_nodes_and_attributes(tmp_path: Path, ending: str) -> None:
    path, data = tmp_path / f"t.{ending}", field()
    with hyperslab.create(path) as new:
        new.create_group("/", attrs={"title": "one", "kept": 1})
        new.create_array("/t", data, chunks=CHUNKS, attrs={"units": "K", "scale": 1.5}, maxshape=MAXSHAPE)
    with hyperslab.append(path) as more:
        more.extend("/t", data[:2])
        more.create_array("/g/new", np.arange(5), attrs={"why": "added"})
        more.update_attrs("/t", {"units": "degrees Celsius", "range": np.array([1.5, 2.5])})
        more.update_attrs("/", {"title": "another"})
        with pytest.raises(KeyError):
            more.update_attrs("/nothing", {"a": 1})
        with pytest.raises(hyperslab.InvalidError):
            more.create_array("/t", data)
    check(path, np.concatenate([data, data[:2]]))
    check(path, np.arange(5), "g/new")
    store = hyperslab.open(path)
    assert (store.attrs["title"], store.attrs["kept"]) == ("another", 1)
    units = store["/t"].attrs
    assert (units["units"], units["scale"], list(units["range"])) == ("degrees Celsius", 1.5, [1.5, 2.5])
    if ending == "h5":
        import h5py

        with h5py.File(path) as file:
            assert dict(file.attrs) == {"title": "another", "kept": 1}
            assert file["t"].attrs["units"] == "degrees Celsius"
            assert file["t"].attrs["range"].tolist() == [1.5, 2.5]
            assert file["g/new"].attrs["why"] == "added"
    else:
        import zarr

        group = zarr.open_group(path, mode="r")
        assert dict(group.attrs) == {"title": "another", "kept": 1}
        assert group["t"].attrs["units"] == "degrees Celsius"


@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
def test_a_file_of_h5py(tmp_path: Path, libver: str) -> None:
    import h5py

    path, data = tmp_path / "t.h5", field()
    with h5py.File(path, "w", libver=libver) as file:
        options: dict[str, Any] = {"chunks": CHUNKS, "compression": "gzip", "shuffle": True}
        t = file.create_dataset("t", data=data, maxshape=(None, None, None), **options)
        t.attrs["units"] = "K"
        file.create_dataset("raw", data=data, maxshape=(None, *SHAPE[1:]), chunks=CHUNKS)
        file.create_dataset("words", data=["a", "bb", ""], maxshape=(None,), chunks=(2,), dtype=h5py.string_dtype())
        file["fixed"] = data
    longer, wider = np.concatenate([data, data[:7]]), np.concatenate([data, data[:, :4]], axis=1)
    with hyperslab.append(path) as more:
        more.extend("/t", data[:, :4], axis=1)
        more.extend("/raw", data[:7])
        more.extend("/words", np.array(["ccc", "d"], dtype=object))
        more.update_attrs("/t", {"units": "kelvin, since then"})
        with pytest.raises(hyperslab.InvalidError, match="cannot grow"):
            more.extend("/fixed", data[:1])
    check(path, wider)
    check(path, longer, "raw")
    assert hyperslab.open(path)["/words"][...].tolist() == ["a", "bb", "", "ccc", "d"]
    with h5py.File(path, "r+") as file:
        assert file["words"].asstr()[...].tolist() == ["a", "bb", "", "ccc", "d"]
        assert file["t"].attrs["units"] == "kelvin, since then"
        # libhdf5 can continue from there.
        file["raw"].resize(40, axis=0)
        file["raw"][27:] = data[:13]
    check(path, np.concatenate([longer, data[:13]]), "raw")


@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("options", [{"zarr_format": 2}, {"zarr_format": 3}, {"zarr_format": 3, "shards": (16, 10, 9)}])
def test_a_store_of_zarr_python(tmp_path: Path, options: dict[str, Any], consolidated: bool) -> None:
    import zarr

    path, data = tmp_path / "t.zarr", field()
    version = options["zarr_format"]
    options = {name: value for name, value in options.items() if name != "zarr_format"}
    group = zarr.open_group(path, mode="w", zarr_format=version)
    group.create_array("t", data=data, chunks=CHUNKS, **options)
    group["t"].attrs["units"] = "K"
    if consolidated:
        zarr.consolidate_metadata(path)
    with hyperslab.append(path) as more:
        more.extend("/t", data[:7])
        more.create_array("/g/new", np.arange(5))
        more.update_attrs("/t", {"units": "kelvin"})
    longer = np.concatenate([data, data[:7]])
    check(path, longer)
    check(path, np.arange(5), "g/new")
    again = zarr.open_group(path, mode="a")
    assert again["t"].attrs["units"] == "kelvin"
    again["t"].append(data[:2])
    if consolidated:
        zarr.consolidate_metadata(path)
    check(path, np.concatenate([longer, data[:2]]))


def test_an_array_of_tiledb(tmp_path: Path) -> None:
    tiledb = pytest.importorskip("tiledb")
    path, data = tmp_path / "t.tiledb", field()
    limits = (1000, *SHAPE[1:])
    axes = [
        tiledb.Dim(name, (0, extent - 1), tile=chunk, dtype="uint64")
        for name, extent, chunk in zip("zyx", limits, CHUNKS, strict=True)
    ]
    schema = tiledb.ArraySchema(
        tiledb.Domain(*axes), [tiledb.Attr("t", dtype="float32"), tiledb.Attr("n", dtype="int64")]
    )
    current = tiledb.NDRectangle(schema.ctx, schema.domain)
    for name, extent in zip("zyx", SHAPE, strict=True):
        current.set_range(name, 0, extent - 1)
    now = tiledb.CurrentDomain(schema.ctx)
    now.set_ndrectangle(current)
    schema.set_current_domain(now) if hasattr(schema, "set_current_domain") else schema._set_current_domain(now)
    tiledb.Array.create(str(path), schema)
    with tiledb.open(str(path), "w") as array:
        array[0:20, 0:17, 0:9] = {"t": data, "n": data.astype("int64")}
    assert hyperslab.open(path)["/t"].shape == SHAPE
    longer = np.concatenate([data, data[:7]])
    with hyperslab.append(path) as more:
        more.extend("/t", data[:7], axis="z")
        more.extend("/n", data[:7].astype("int64"), axis="z")
        more.update_attrs("/t", {"units": "K"})
        with pytest.raises(hyperslab.UnsupportedError, match="creating /new"):
            more.create_array("/new", data)
    assert np.array_equal(hyperslab.open(path)["/t"][...], longer)
    assert np.array_equal(hyperslab.open(path)["/n"][...], longer.astype("int64"))
    with tiledb.open(str(path)) as array:
        assert array.schema.current_domain.ndrectangle.range("z") == (0, 26)
        found = array[0:27]
        assert np.array_equal(found["t"], longer)
        assert np.array_equal(found["n"], longer.astype("int64"))
    # Fails with only one of the attributes, and beyond the end of the domain.
    with pytest.raises(hyperslab.InvalidError, match="missing"), hyperslab.append(path) as more:
        more.extend("/t", data[:7])
    with hyperslab.append(path) as more, pytest.raises(hyperslab.InvalidError, match='"z" is full'):
        more.extend("/t", np.zeros((980, *SHAPE[1:]), "float32"))
    assert hyperslab.open(path)["/t"].shape == longer.shape
