"""Reading: every kind of index, in every format, compared with NumPy."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab
from fields import CHUNKS, SHAPE, field

RANDOM = np.random.default_rng(7)

BASIC: list[Any] = [
    (),
    ...,
    0,
    -1,
    np.int64(3),
    slice(None),
    slice(2, 15, 3),
    slice(None, None, -1),
    slice(15, 2, -4),
    slice(5, 5),
    (slice(3, 9), 4),
    (..., 2),
    (0, ..., slice(1, 8)),
    (None, 3, None, slice(None, None, -2)),
    (1, 2, 3),
    (slice(None), None, 0),
    (slice(0, 1), slice(0, 1), slice(0, 1)),
]


@pytest.mark.parametrize("key", BASIC, ids=repr)
def test_basic_indexing_matches_numpy(array: hyperslab.Array, key: Any) -> None:
    expected, found = field()[key], array[key]
    assert np.shape(found) == np.shape(expected)
    assert np.array_equal(found, expected)
    assert type(found) is type(expected)


LISTS: list[Any] = [
    [3, 1, 3],
    np.array([19, 0, -1], "int32"),
    (slice(None), [16, 0, 5, 5]),
    (2, slice(None), np.array([8, 0])),
    RANDOM.random(SHAPE[0]) > 0.5,
    (slice(None, None, 2), RANDOM.random(SHAPE[1]) > 0.5, 4),
    [],
]


@pytest.mark.parametrize("key", LISTS, ids=lambda key: repr(key)[:40])
def test_one_list_matches_numpy(array: hyperslab.Array, key: Any) -> None:
    key = tuple(np.asarray(part, dtype=int) if isinstance(part, list) and not part else part for part in key) if isinstance(key, tuple) else key
    whole = field()
    expected = whole[np.array([], int)] if isinstance(key, list) and not key else whole[key]
    if isinstance(key, tuple) and isinstance(key[0], int):
        expected = whole[key[0]][key[1:]]  # per axis: NumPy would move the list's axis to the front
    assert np.array_equal(array[key], expected)


def test_lists_select_per_axis(array: hyperslab.Array) -> None:
    rows, columns = [19, 3, 3, 0], RANDOM.random(SHAPE[1]) > 0.5
    expected = field()[np.ix_(rows, columns, [8, 1])]
    assert np.array_equal(array[rows, columns, [8, 1]], expected)
    assert np.array_equal(array.oindex[rows, columns, [8, 1]], expected)
    assert np.array_equal(array.oindex[rows, :, 4], field()[rows, :, 4])


def test_points_are_picked_one_by_one(array: hyperslab.Array) -> None:
    points = [RANDOM.integers(-extent, extent, (50, 2)) for extent in SHAPE]
    assert np.array_equal(array.vindex[tuple(points)], field()[tuple(points)])
    assert np.array_equal(array.vindex[points[0], 3, 2], field()[points[0], 3, 2])
    mask = field() % 7 == 0
    assert np.array_equal(array[mask], field()[mask])
    assert np.array_equal(array.vindex[mask], field()[mask])


@pytest.mark.parametrize("key", [20, -21, (0, 0, 0, 0), (..., ...), [20], 1.5, "x", True, ([True, False],)], ids=repr)
def test_invalid_indices(array: hyperslab.Array, key: Any) -> None:
    with pytest.raises(IndexError) as raised:
        array[key]
    assert isinstance(raised.value, hyperslab.HyperslabError)
    assert raised.value.kind == "invalid"


def test_array_properties(array: hyperslab.Array) -> None:
    assert array.shape == SHAPE
    assert array.dtype == np.dtype("float32")
    assert (array.ndim, array.size, array.nbytes) == (3, np.prod(SHAPE), np.prod(SHAPE) * 4)
    assert len(array) == SHAPE[0]
    assert array.chunks in (CHUNKS, None)
    assert len(array.dims) == len(array.maxshape) == len(array.labels) == 3
    assert isinstance(array.filters, list)
    assert "Array" in repr(array)


def test_attributes(tmp_path: Path) -> None:
    import fields

    for writer in (fields.write_hdf5, fields.write_zarr2, fields.write_zarr3, fields.write_tet):
        path, node = writer(tmp_path)
        assert hyperslab.open(path)[node].attrs["units"] == "K", path


def test_numpy_accepts_an_array(array: hyperslab.Array) -> None:
    assert np.array_equal(np.asarray(array), field())
    assert np.asarray(array, "float64").dtype == "float64"
    copy = np.array(array)
    copy[0] = -1
    assert np.array_equal(array[0], field()[0])


def test_raw_contiguous_bytes_are_a_view_on_request(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", field())
    assert hyperslab.open_array(tmp_path / "x.npy")[3:5].flags.writeable
    array = hyperslab.open_array(tmp_path / "x.npy", views=True)
    assert not pickle.loads(pickle.dumps(array))[3:5].flags.writeable
    view = array[3:5]
    assert not view.flags.writeable
    assert np.shares_memory(view, array[4])
    del array
    assert np.array_equal(view, field()[3:5])
    # Gathered values are a writable copy.
    assert hyperslab.open_array(tmp_path / "x.npy", views=True)[:, 1].flags.writeable


def truncated_array(tmp_path: Path, **options: Any) -> tuple[Path, hyperslab.Array]:
    """An array whose file is truncated to its first page after opening."""
    path = tmp_path / "x.npy"
    np.save(path, np.ones(1 << 18))
    array = hyperslab.open_array(path, **options)
    with path.open("r+b") as file:
        file.truncate(4096)
    return path, array


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be truncated")
@pytest.mark.parametrize("mapped", [True, False])
def test_a_truncated_file_is_an_exception(tmp_path: Path, mapped: bool) -> None:
    path, array = truncated_array(tmp_path, mapped=mapped)
    for read in (lambda: array[...], lambda: array[::7], lambda: array.sum(), lambda: array[[5, 100_000]]):
        with pytest.raises((OSError, hyperslab.CorruptError)):
            read()
    # The interpreter continues, and other files remain readable.
    np.save(path.with_name("y.npy"), field())
    assert np.array_equal(hyperslab.open_array(path.with_name("y.npy"))[...], field())


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be truncated")
def test_copies_outlive_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones(1 << 18))
    copy = hyperslab.open_array(path)[...]
    path.write_bytes(b"")
    assert copy.sum() == 1 << 18


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be truncated")
def test_a_view_of_a_truncated_file_ends_with_a_message(tmp_path: Path) -> None:
    script = """
import sys, numpy as np, hyperslab
path = sys.argv[1]
np.save(path, np.ones(1 << 18))
view = hyperslab.open_array(path, views=True)[...]
open(path, "r+b").truncate(4096)
print(view.sum())
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "x.npy")], capture_output=True, text=True)
    assert done.returncode != 0
    assert "truncated" in done.stderr


def test_unaligned_views_are_flagged(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=512) as file:
        file["odd"] = np.arange(3, dtype="u1")
        file["x"] = np.arange(1000, dtype="f8")
    x = hyperslab.open(tmp_path / "x.h5", views=True)["x"][...]
    assert x.flags.aligned == (x.ctypes.data % 8 == 0)
    assert x.sum() == 999 * 500


def test_read_into(array: hyperslab.Array) -> None:
    out = np.zeros((5, 17, 9), "float32")
    array.read_into(out, np.s_[2:7])
    assert np.array_equal(out, field()[2:7])
    rows = np.zeros((2, 17, 9), "float32")
    array.read_into(rows, [7, 1])
    assert np.array_equal(rows, field()[[7, 1]])
    with pytest.raises(hyperslab.InvalidError):
        array.read_into(out[:, ::2], np.s_[2:7, ::2])
    with pytest.raises(hyperslab.InvalidError):
        array.read_into(np.zeros((5, 17, 9), "int32"), np.s_[2:7])
    with pytest.raises(hyperslab.InvalidError):
        array.read_into(np.zeros(3, "float32"))


def test_chunk_refs_lead_to_the_bytes(array: hyperslab.Array) -> None:
    refs = array.chunk_refs()
    assert refs.coords.shape == (len(refs.offsets), 3)
    assert array.usage() == (len({tuple(c) for c in refs.coords.tolist()}), int(refs.lengths.sum()))
    if refs.plain.all() and not refs.blobs[0]:
        content = Path(array.file).read_bytes()
        stored = b"".join(content[o : o + n] for o, n in zip(refs.offsets.tolist(), refs.lengths.tolist(), strict=True))
        if array.chunks is None:
            assert stored == field().tobytes()


def test_reductions(array: hyperslab.Array) -> None:
    whole = field().astype("float64")
    assert array.mean() == pytest.approx(whole.mean())
    assert np.allclose(array.mean(0), whole.mean(0))
    assert np.allclose(array.sum((0, -1)), whole.sum((0, 2)))
    assert array.min() == whole.min() and array.max() == whole.max()
    assert np.allclose(array.reduce("std", 1), whole.std(1))
    assert array.reduce("count", where="> 100") == np.count_nonzero(whole > 100)
    assert np.allclose(array.reduce("sum", 0, selection=np.s_[10:2:-2, 3]), whole[10:2:-2, 3].sum(0))
    with pytest.raises(hyperslab.InvalidError):
        array.mean(5)
    with pytest.raises(hyperslab.InvalidError):
        array.reduce("blend")


def test_reads_from_many_threads(array: hyperslab.Array) -> None:
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda i: array[i % SHAPE[0]], range(200)))
    assert all(np.array_equal(row, field()[i % SHAPE[0]]) for i, row in enumerate(rows))


def test_the_gil_is_free_while_reading(tmp_path: Path) -> None:
    """A counting thread continues while another thread reads."""
    with hyperslab.create(tmp_path / "big.tet") as new:
        new.create_array("/x", np.zeros((512, 512, 64), "float32"), chunks=(64, 64, 64), filters=["zstd"])
    array = hyperslab.open_array(tmp_path / "big.tet")
    counted, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            counted[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    try:
        before, interval = counted[0], sys.getswitchinterval()
        sys.setswitchinterval(100)  # threads never have to give up the GIL, so only a voluntary release lets the other one run
        try:
            with hyperslab.threads(1):
                array[...]
        finally:
            sys.setswitchinterval(interval)
        assert counted[0] > before
    finally:
        done.set()
        counter.join()


def test_threads_sets_the_number_of_threads(array: hyperslab.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    from hyperslab._threads import current

    for count in (1, 2, 5):
        with hyperslab.threads(count):
            assert current() == count
            assert np.array_equal(array[...], field())
    monkeypatch.setenv("HYPERSLAB_NUM_THREADS", "3")
    assert current() == 3
    with pytest.raises(ValueError):
        with hyperslab.threads(0):
            pass


def test_arrays_are_pickled_as_a_path(array: hyperslab.Array) -> None:
    pickled = pickle.dumps(array)
    assert len(pickled) < 400 + len(array.file)
    assert np.array_equal(pickle.loads(pickled)[...], field())
    assert array.__dask_tokenize__() == pickle.loads(pickled).__dask_tokenize__()


def test_stores_and_groups_are_mappings(stored: tuple[Path, str]) -> None:
    path, node = stored
    with hyperslab.open(path) as store:
        assert store.format in hyperslab.formats()
        assert node in store and "/nothing/here" not in store
        with pytest.raises(KeyError) as raised:
            store["/nothing/here"]
        assert isinstance(raised.value, hyperslab.NotFoundError)
        assert dict(store).keys() == set(store.keys())
        assert len(store) == len(list(store))
        paths = {path for path, _ in store.walk()}
        assert node == "/" or node in paths
        array = store[node]
        assert store.verify(deep=True)["ok"]
        assert pickle.loads(pickle.dumps(store)).file == store.file
    assert store.closed
    with pytest.raises(hyperslab.InvalidError):
        store["/"]
    assert np.array_equal(array[1], field()[1]), "arrays outlive their store"


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        hyperslab.open(tmp_path / "nothing.h5")
    assert isinstance(raised.value, hyperslab.HyperslabError) and raised.value.kind == "io"
    (tmp_path / "text.txt").write_text("not an array")
    with pytest.raises(hyperslab.InvalidError):
        hyperslab.open(tmp_path / "text.txt")


def test_errors_survive_pickling(tmp_path: Path) -> None:
    with pytest.raises(hyperslab.HyperslabError) as raised:
        hyperslab.open(tmp_path / "nothing.h5")
    back = pickle.loads(pickle.dumps(raised.value))
    assert (type(back), str(back), back.details) == (type(raised.value), str(raised.value), raised.value.details)


def test_corruption_errors_name_the_place(tmp_path: Path) -> None:
    import fields

    path, node = fields.write_tet(tmp_path)
    content = bytearray(path.read_bytes())
    refs = hyperslab.open(path)[node].chunk_refs()
    at = int(refs.offsets[0])
    content[at : at + 8] = b"damaged!"
    path.write_bytes(content)
    with pytest.raises(hyperslab.CorruptError) as raised:
        hyperslab.open(path)[node][...]
    assert raised.value.kind == "corrupt"
    assert not hyperslab.verify(path, deep=True)["ok"]


def test_a_forked_child_reads(tmp_path: Path) -> None:
    """A forked child has no threads, so reading there must not wait for them."""
    with hyperslab.create(tmp_path / "x.tet") as new:
        new.create_array("/x", np.ones((64, 64), "f8"), chunks=(8, 8), filters=["zstd"])
    script = f"""
import os, numpy as np, hyperslab
array = hyperslab.open_array({str(tmp_path / "x.tet")!r})
with hyperslab.threads(2):
    assert array[...].sum() == 4096
    child = os.fork()
    if child == 0:
        os._exit(0 if array[...].sum() == 4096 and array.sum() == 4096 else 1)
    assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_forked_child_queries_objects(tmp_path: Path) -> None:
    """The same for the thread that decodes a geometry's object index ahead."""
    count, objects = 400_000, 2000
    places = np.random.default_rng(3).uniform(0, 900, (count, 3)).astype("f4")
    np.savez(tmp_path / "points.npz", vertices=places, object_id=np.arange(count) * 7919 % objects)
    hyperslab.convert(tmp_path / "points.npz", tmp_path / "points.zv")
    script = f"""
import os, hyperslab
geometry = hyperslab.open({str(tmp_path / "points.zv")!r})["/"]
def found(id):
    return len(geometry.query(objects=[id])["vertices"])
assert found(1) == {count // objects}
child = os.fork()
if child == 0:
    os._exit(0 if [found(id) for id in (2, 1990, 1000)] == [{count // objects}] * 3 else 1)
assert os.waitpid(child, 0)[1] == 0
assert found(1999) == {count // objects}
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_types(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    struct = np.zeros(4, [("a", "i4"), ("b", "f8"), ("c", "S3")])
    struct["a"], struct["c"] = range(4), b"abc"
    with h5py.File(tmp_path / "types.h5", "w") as file:
        file["struct"] = struct
        file["text"] = np.array(["Gießen", "", "x"], dtype=h5py.string_dtype())
        file["bytes"] = np.array([b"ab", b"c"], "S4")
        file["enum"] = np.array([1, 0], dtype=h5py.enum_dtype({"no": 0, "yes": 1}, "u1"))
        file["big"] = np.arange(5, dtype=">i4")
        file["complex"] = np.array([1 + 2j, 3j])
        file["scalar"] = 4.5
        file["bool"] = np.array([True, False])
        lists = file.create_dataset("lists", (2,), dtype=h5py.vlen_dtype("i4"))
        lists[0], lists[1] = [1, 2, 3], []
        file.create_dataset("empty", (0, 3), "f4")
    store = hyperslab.open(tmp_path / "types.h5")
    assert np.array_equal(store["struct"][...], struct)
    assert store["struct"].dtype.names == ("a", "b", "c")
    assert store["text"][...].tolist() == ["Gießen", "", "x"]
    assert store["text"][0] == "Gießen"
    assert store["text"].vindex[[2, 0],].tolist() == ["x", "Gießen"]
    assert store["bytes"][...].tolist() == [b"ab", b"c"]
    assert store["enum"].dtype.metadata["enum"] == {"no": 0, "yes": 1}
    assert store["big"][...].tolist() == [0, 1, 2, 3, 4]
    assert store["big"].dtype == np.dtype("i4")
    assert store["complex"][...].tolist() == [1 + 2j, 3j]
    assert store["scalar"][()] == 4.5 and store["scalar"].shape == ()
    assert store["lists"][0].tolist() == [1, 2, 3] and store["lists"][1].tolist() == []
    assert store["empty"][...].shape == (0, 3)


def test_labels_select_as_in_xarray(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    path = tmp_path / "x.nc"
    time = np.datetime64("2000-01-01", "ns") + np.arange(40) * np.timedelta64(1, "D")
    values = np.arange(40 * 5).reshape(40, 5)
    lat = [50.0, 40.0, 30.0, 20.0, 10.0]
    xr.Dataset({"t": (("time", "lat"), values)}, {"time": time, "lat": lat}).to_netcdf(path, engine="h5netcdf")
    a, t = hyperslab.open(path)["t"], xr.open_dataset(path, engine="h5netcdf").t
    np.testing.assert_array_equal(a["lat=20..40"], values[:, 1:4])
    np.testing.assert_array_equal(a["time=2000-02", "lat=30"], values[31:, 2])
    np.testing.assert_array_equal(a.sel(lat=slice(20, 40)), values[:, 1:4])
    np.testing.assert_array_equal(a.sel(lat=slice(40, 20)), t.sel(lat=slice(40, 20)))
    np.testing.assert_array_equal(a.sel(time="2000-02"), t.sel(time="2000-02"))
    np.testing.assert_array_equal(a.sel(time=slice("2000-01-30", "2000-02")), t.sel(time=slice("2000-01-30", "2000-02")))
    np.testing.assert_array_equal(a.sel(time=np.datetime64("2000-01-05"), lat=10), values[4, 4])
    np.testing.assert_array_equal(a.sel(lat=33, method="nearest"), t.sel(lat=33, method="nearest"))
    with pytest.raises(hyperslab.InvalidError, match="neighbours are 30 and 40"):
        a.sel(lat=33)


def test_open_takes_memory_time_and_key(tmp_path: Path) -> None:
    tiledb = pytest.importorskip("tiledb")
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((1000, 100)))
    with pytest.raises(hyperslab.InvalidError, match="the limit is 1000"):
        hyperslab.open(path, memory=1000)["/"][::2]
    assert pickle.loads(pickle.dumps(hyperslab.open(path, memory=1000)["/"])).shape == (1000, 100)
    with pytest.raises(hyperslab.InvalidError, match="the limit is 1000"):
        pickle.loads(pickle.dumps(hyperslab.open(path, memory=1000)["/"]))[::2]

    uri, key = str(tmp_path / "t"), b"0123456789abcdeF0123456789abcdeF"
    config = tiledb.Config({"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": key.decode()})
    with tiledb.scope_ctx(tiledb.Ctx(config)):
        domain = tiledb.Domain(tiledb.Dim("x", domain=(0, 3), tile=4, dtype="i4"))
        schema = tiledb.ArraySchema(domain, [tiledb.Attr("v", dtype="i4")])
        tiledb.Array.create(uri, schema)
        for time, value in ((10, 1), (20, 2)):
            with tiledb.open(uri, "w", timestamp=time) as array:
                array[:] = np.full(4, value, "i4")
    assert hyperslab.open(uri, key=key)["v"][:].tolist() == [2] * 4
    assert hyperslab.open(uri, key=key, at=15)["v"][:].tolist() == [1] * 4
    with pytest.raises(hyperslab.HyperslabError):
        hyperslab.open(uri)["v"][:]


def test_labels_of_every_type_select_as_in_xarray(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    pd = pytest.importorskip("pandas")
    path = tmp_path / "x.nc"
    time = np.datetime64("2000-01-01", "ns") + np.arange(40) * np.timedelta64(12, "h")
    lat = np.array([0.1, 0.2, 0.3, 0.4], "f4")
    values = np.arange(160.0).reshape(40, 4)
    xr.Dataset({"t": (("time", "lat"), values)}, {"time": time, "lat": lat}).to_netcdf(path)
    a, t = hyperslab.open(path)["t"], xr.open_dataset(path).t
    day = np.datetime64("2000-01-05")
    for labels in [
        {"time": day},
        {"time": pd.Timestamp(day)},
        {"time": pd.Timestamp(day).to_pydatetime()},
        {"time": "2000-01-05"},
        {"time": slice(day, np.datetime64("2000-01-06"))},
        {"time": slice("2000-01-05", "2000-01-06")},
        {"time": time[3]},
        {"time": [time[3], time[1]]},
        {"time": t.time[2:4]},
        {"lat": lat[2]},
        {"lat": 0.3},
        {"lat": [0.4, 0.1], "time": "2000-01-02"},
        {"lat": slice(lat[1], 0.3)},
        {"lat": slice(np.float32(0.2), None), "time": [day]},
    ]:
        np.testing.assert_array_equal(a.sel(**labels), t.sel(**labels), err_msg=str(labels))
    np.testing.assert_array_equal(a.sel(lat=[0.12, 0.39], method="nearest"), values[:, [0, 3]])
    assert a.reduce("mean", selection="lat=0.2..0.3") == values[:, 1:3].mean()
    with pytest.raises(hyperslab.InvalidError, match="no label"):
        a.sel(lat=[0.1, 0.5])


def test_numpys_functions_reduce_without_loading(tmp_path: Path) -> None:
    values = np.arange(24.0).reshape(2, 3, 4) ** 2
    path = tmp_path / "x.zarr"
    with hyperslab.create(path) as new:
        new.create_array("/v", values, dims=("t", "y", "x"))
    a = hyperslab.open(path)["/v"]
    for name in ["mean", "sum", "min", "max", "std", "var"]:
        function = getattr(np, name)
        for options in [{}, {"axis": 0}, {"axis": (0, -1)}, {"axis": 1, "keepdims": True}, {"keepdims": True}]:
            found, expected = function(a, **options), function(values, **options)
            np.testing.assert_allclose(found, expected, rtol=1e-14, err_msg=f"{name} {options}")
            assert np.shape(found) == np.shape(expected), (name, options)
    assert np.mean(a, dtype="f4").dtype == np.float32
    out = np.empty((3, 4))
    assert np.sum(a, axis=0, out=out) is out and (out == values.sum(0)).all()
    assert np.std(a, ddof=1) == pytest.approx(np.std(values, ddof=1))
    assert a.mean(axis="y", keepdims=True).shape == (2, 1, 4)
    assert (a.median(axis=-1) == np.median(values, -1)).all()
    with pytest.raises(hyperslab.InvalidError, match="over and axis"):
        a.mean("t", axis=0)


def test_times_are_dates(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    path = tmp_path / "x.nc"
    when = np.array(["2000-01-01", "NaT", "2000-01-03T06"], "datetime64[ns]")
    noleap = xr.date_range("2000-02-28", periods=2, calendar="noleap", use_cftime=True)
    xr.Dataset({"when": ("x", when), "other": ("y", noleap), "whole": ("y", when[::2])}).to_netcdf(path)
    store, expected = hyperslab.open(path), xr.open_dataset(path)
    a = store["when"]
    assert a.max() == np.nanmax(when) and store["whole"].mean() == expected.whole.mean().values
    assert a.max(decode=False) != a.max()
    assert a.decoded.dtype.kind == "M"
    np.testing.assert_array_equal(a.decoded[...], when)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(a.decoded))[...], when)
    assert store["other"].max() == "2000-03-01"
    # xarray writes "not a time" without a marker if it encodes the variable as an integer of nanoseconds.
    bare = tmp_path / "bare.nc"
    encoding = {"when": {"dtype": "int64", "units": "nanoseconds since 1970-01-01"}}
    fine = np.array(["2000-01-01T00:00:00.000000001", "NaT", "2000-01-01T00:00:00.000000005"], "datetime64[ns]")
    xr.Dataset({"when": ("x", fine)}).to_netcdf(bare, encoding=encoding)
    a = hyperslab.open(bare)["when"]
    assert a.mean() == np.datetime64("2000-01-01T00:00:00.000000003") and a.min() == fine[0] and a.max() == fine[2]
