"""Writing: new stores from NumPy, assignment, conversion and comparison, read back by Hyperslab and by the formats' own
libraries."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab
from fields import CHUNKS, SHAPE, field

TARGETS = ["tet", "zarr", "npz"]


@pytest.mark.parametrize("ending", TARGETS)
def test_arrays_from_numpy(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    with hyperslab.create(path) as new:
        new.create_array("/t", field(), chunks=CHUNKS)
        new.create_array("/n", np.arange(10, dtype="int16"))
        assert not path.exists(), "nothing is visible before the end"
    store = hyperslab.open(path)
    assert np.array_equal(store["t"][...], field())
    assert np.array_equal(store["n"][2:4], [2, 3])


@pytest.mark.parametrize("ending", ["tet", "zarr"])
def test_assignment_by_slices(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    with hyperslab.create(path) as new:
        t = new.create_array("/t", shape=SHAPE, dtype="float32", chunks=CHUNKS, fill_value=-1)
        assert (t.shape, t.chunks, t.dtype) == (SHAPE, CHUNKS, np.dtype("float32"))
        t[:8] = field()[:8]  # whole chunks
        for row in range(8, 12):  # parts
            t[row] = field()[row]
        t[12:16, 3:] = field()[12:16, 3:]
        t[12:16, :3] = field()[12:16, :3]
        t[16, 0, 0] = 5
        with pytest.raises(hyperslab.InvalidError):
            t[::2] = 0
    expected = np.full(SHAPE, -1, "float32")
    expected[:16], expected[16, 0, 0] = field()[:16], 5
    found = hyperslab.open(path)["t"]
    if ending == "zarr":
        assert np.array_equal(found[...], expected)
    else:
        assert np.array_equal(found[:17], expected[:17])


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        with hyperslab.create(tmp_path / "x.tet") as new:
            new.create_array("/t", field())
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_existing_targets_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.tet"
    for overwrite in (False, True):
        with hyperslab.create(path, overwrite=overwrite) as new:
            new.create_array("/t", field())
    with pytest.raises(hyperslab.InvalidError):
        hyperslab.create(path)
    with pytest.raises(hyperslab.InvalidError):
        hyperslab.create(tmp_path / "x.what")


def test_zarr_python_reads_new_stores(tmp_path: Path) -> None:
    import zarr

    path = tmp_path / "x.zarr"
    with hyperslab.create(path) as new:
        new.create_group("/g", attrs={"title": "test", "levels": [1, 2]})
        new.create_array(
            "/g/t",
            field(),
            chunks=CHUNKS,
            dims=("z", "y", "x"),
            attrs={"units": "K", "range": np.array([1.5, 2.5])},
            filters=[{"name": "zstd", "level": 3}],
        )
    group = zarr.open_group(path, mode="r")
    assert np.array_equal(group["g/t"][...], field())
    assert group["g"].attrs["title"] == "test"
    assert group["g/t"].attrs["units"] == "K"
    assert group["g/t"].metadata.dimension_names == ("z", "y", "x")


@pytest.mark.parametrize("ending", ["tet", "zarr"])
def test_convert_and_diff(stored: tuple[Path, str], tmp_path: Path, ending: str) -> None:
    source, node = stored
    target = tmp_path / f"converted.{ending}"
    options: dict[str, Any] = {"node": node} if node != "/" else {}
    report = hyperslab.convert(source, target, **options)
    assert report["arrays"] == 1
    store = hyperslab.open(target)
    found = store[store._native.only_node()]
    assert np.array_equal(found[...], field())


def test_convert_takes_parts_and_chunks_by_name(tmp_path: Path) -> None:
    data = np.arange(240.0).reshape(10, 4, 6)
    with hyperslab.create(tmp_path / "a.zarr") as new:
        new.create_array("/time", np.arange(10), dims=("time",))
        for name in ("t", "u"):
            new.create_array(name, data, dims=("time", "y", "x"))
    options: dict[str, Any] = {"keep": "t", "rename": {"t": "temperature"}, "select": "time=2..5"}
    hyperslab.convert(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks={"time": 2, "x": -1}, **options)
    b = hyperslab.open(tmp_path / "b.zarr")
    assert sorted(b) == ["temperature", "time"]
    assert np.array_equal(b["temperature"][...], data[2:6])
    assert b["temperature"].chunks[0] == 2 and b["temperature"].chunks[2] == 6
    hyperslab.convert(tmp_path / "a.zarr", tmp_path / "c.h5", chunks="auto", drop=["u"])
    # HDF5 also shows the scales of dimensions without coordinates.
    assert set(hyperslab.open(tmp_path / "c.h5")) - {"x", "y"} == {"t", "time"}
    with pytest.raises(ValueError, match="auto"):
        hyperslab.convert(tmp_path / "a.zarr", tmp_path / "d.h5", chunks="some")
    hyperslab.set_attributes(tmp_path / "b.zarr", "temperature", {"units": "K", "note": "x"})
    hyperslab.set_attributes(tmp_path / "b.zarr", "temperature", delete="units, note")
    assert dict(hyperslab.open(tmp_path / "b.zarr")["temperature"].attrs) == {}


def test_diff_reports_differences(tmp_path: Path) -> None:
    for name, value in (("a", 0), ("b", 1)):
        with hyperslab.create(tmp_path / f"{name}.tet") as new:
            data = field()
            data[0, 0, 0] = np.nan
            data[3, 3, 3] += value
            new.create_array("/t", data, chunks=CHUNKS)
            new.create_array(f"/{name}", np.zeros(3))
    assert hyperslab.diff(tmp_path / "a.tet", tmp_path / "a.tet")["same"]
    report = hyperslab.diff(tmp_path / "a.tet", tmp_path / "b.tet")
    told = {(each["path"], each["what"]): each for each in report["differences"]}
    assert set(told) == {("/a", "node"), ("/b", "node"), ("/t", "values")}
    assert (told["/t", "values"]["count"], told["/t", "values"]["first"]) == (1, [3, 3, 3])
    assert len(hyperslab.diff(tmp_path / "a.tet", tmp_path / "b.tet", atol=1.0)["differences"]) == 2


def test_append_extends_and_adds_arrays(tmp_path: Path) -> None:
    path, data = tmp_path / "t.tet", field()
    with hyperslab.create(path) as new:
        new.create_array("/t", data, chunks=CHUNKS, dims=("z", "y", "x"))
    before = hyperslab.open(path)["/t"]
    with hyperslab.append(path) as more:
        more.extend("/t", data[:5], axis="z")
        more.create_array("/new", np.arange(3))
        with pytest.raises(hyperslab.InvalidError):
            more.extend("/t", data[:5], axis="time")
    store = hyperslab.open(path)
    assert np.array_equal(store["/t"][...], np.concatenate([data, data[:5]]))
    assert np.array_equal(store["/new"][...], np.arange(3))
    assert before.shape == data.shape, "what was opened before stays as it was"
    with pytest.raises(RuntimeError), hyperslab.append(path) as more:
        more.extend("/t", data)
        raise RuntimeError("nothing of this is kept")
    assert hyperslab.open(path)["/t"].shape == (data.shape[0] + 5, *data.shape[1:])
    with hyperslab.create(tmp_path / "other.tet") as new, pytest.raises(hyperslab.InvalidError):
        new.extend("/t", data)


def test_converts_to_rows_and_to_geometry(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    random = np.random.default_rng(5)
    vertices = random.uniform(0, 100, (500, 3)).astype("f4")
    ids = np.arange(500) % 7
    np.savez(tmp_path / "points.npz", vertices=vertices, object_id=ids)
    assert hyperslab.convert(tmp_path / "points.npz", tmp_path / "points.zv")["rows"] == 500
    report = hyperslab.convert(tmp_path / "points.zv", tmp_path / "points.parquet")
    table = parquet.read_table(tmp_path / "points.parquet")
    assert (report["rows"], table.num_rows) == (500, 500)
    rows = zip(*(table[name].to_pylist() for name in ("x", "y", "z", "object")), strict=True)
    assert sorted(rows) == sorted((*map(float, at), id) for at, id in zip(vertices, ids.tolist(), strict=True))


def test_values_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    with hyperslab.create(path) as w:
        a = w.create_array("a", shape=(3,), dtype="u1")
        for value in (300, [1, -1, 2], 1.5, np.array([1e3]), "7"):
            with pytest.raises(hyperslab.InvalidError):
                a[:] = value
        a[:] = [1, 2, 255]
        f = w.create_array("f", shape=(2,), dtype="f4")
        with pytest.raises(hyperslab.InvalidError):
            f[:] = [1.0, 1e300]
        f[:] = np.array([0.1, np.inf])
        s = w.create_array("s", shape=(1,), dtype="S3")
        with pytest.raises(hyperslab.InvalidError):
            s[:] = b"four"
        s[:] = b"ok"
    with hyperslab.open(path) as store:
        assert store["a"][:].tolist() == [1, 2, 255]
        assert store["f"][:].tolist() == [np.float32(0.1), np.inf]
    with hyperslab.append(path) as more, pytest.raises(hyperslab.InvalidError):
        more.extend("a", [300], axis=0)
    with pytest.raises(hyperslab.InvalidError), hyperslab.create(tmp_path / "y.zarr") as w:
        w.create_array("a", data=np.zeros(3), filters=[{"name": "zstd", "level": 99}])


def test_reductions_decode_by_the_conventions_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    stored = np.array([0, 10, -1, 20], "i2")
    attrs = {"_FillValue": np.int16(-1), "scale_factor": 0.5, "add_offset": 250.0}
    with hyperslab.create(path) as w:
        w.create_array("t", data=stored, attrs=attrs, dims=["x"])
    a = hyperslab.open(path)["t"]
    assert a.mean() == 255.0
    assert a.mean(decode=False) == stored.mean()
    assert a.reduce("count") == 3
    assert a.reduce("null_count") == 1
    np.testing.assert_array_equal(a.decoded[:], [250.0, 255.0, np.nan, 260.0])
    assert a.decoded.dtype == np.float64
    assert "_FillValue" not in a.decoded.attrs
    again = pickle.loads(pickle.dumps(a.decoded))
    np.testing.assert_array_equal(again[:], a.decoded[:])
    assert a[:].dtype == np.int16


def test_types_that_are_asked_for_hold_the_values(tmp_path: Path) -> None:
    """NumPy's conversions would wrap and cut."""
    cases = [([1, 300], "u1"), (np.array([-1]), "u8"), ([1.5], "i4"), (np.array([b"abc"]), "S2"), ([np.nan], "i4")]
    far = np.array(["3000-01-01"], "M8[D]")
    with hyperslab.File(tmp_path / "x.h5", "w") as file:
        for data, dtype in [*cases, (far, "M8[ns]"), (np.array([1500], "m8[ms]"), "m8[s]")]:
            with pytest.raises(hyperslab.InvalidError):
                file.create_dataset("bad", data=data, dtype=dtype)
        file.create_dataset("a", data=np.arange(3.0), dtype="i4")
        file.create_dataset("b", data=[1 / 3], dtype="f4")
    store = hyperslab.open(tmp_path / "x.h5")
    assert store["a"].dtype == "i4" and store["a"][...].tolist() == [0, 1, 2]
    assert store["b"][0] == np.float32(1 / 3)


def test_numpy_texts_are_readable_by_tiledb(tmp_path: Path) -> None:
    tiledb = pytest.importorskip("tiledb")
    texts = np.array([["é1", "abcd"], ["", "z"]])
    np.save(tmp_path / "u.npy", texts)
    hyperslab.convert(tmp_path / "u.npy", tmp_path / "u.tiledb")
    with tiledb.open(str(tmp_path / "u.tiledb")) as array:
        assert array[:]["data"].tolist() == texts.tolist()
    again = hyperslab.open(tmp_path / "u.tiledb")["data"][...]
    assert again.dtype == texts.dtype and again.tolist() == texts.tolist()
    rows = np.array([(1, "é"), (2, "bc")], dtype=[("x", "i4"), ("name", "U2")])
    np.save(tmp_path / "rows.npy", rows)
    hyperslab.convert(tmp_path / "rows.npy", tmp_path / "rows.tiledb", dimensions=["x"])
    with tiledb.open(str(tmp_path / "rows.tiledb")) as array:
        assert array[:]["name"].tolist() == ["é", "bc"]
