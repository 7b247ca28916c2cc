"""h5py's names: each snippet runs with h5py and with Hyperslab, and both libraries read the same content from both
files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab

DATA = np.arange(240, dtype="float32").reshape(20, 12)


def groups_and_datasets(lib: Any, path: Path) -> None:
    with lib.File(path, "w") as file:
        file.attrs["title"] = "sample"
        file.attrs["levels"] = np.array([1, 2, 3])
        group = file.create_group("g")
        group.attrs["about"] = "ours"
        d = group.create_dataset("d", data=DATA, chunks=(4, 6), compression="gzip", compression_opts=9, shuffle=True, fletcher32=True)
        d.attrs["units"] = "K"
        d.attrs["scale"] = 1.5
        file.create_dataset("growing", data=DATA, chunks=(5, 12), maxshape=(None, 12))
        file.create_dataset("g/deep/er", shape=(6,), dtype="int16", fillvalue=7, chunks=(3,))
        file["plain"] = [1.5, 2.5]
        file.require_group("g").create_dataset("level", data=DATA, compression=3, chunks=True)
        assert file.require_group("g/deep") is not None


def filled_by_assignment(lib: Any, path: Path) -> None:
    file = lib.File(path, "w")
    d = file.create_dataset("d", (20, 12), "f4", chunks=(5, 12))
    for start in range(0, 20, 5):
        d[start : start + 5] = DATA[start : start + 5]
    assert d.shape == (20, 12) and d.dtype == np.dtype("f4") and len(d) == 20
    texts = file.create_dataset("texts", data=["a", "", "longer text"], dtype=h5py.string_dtype())
    texts.attrs["language"] = "en"
    file.create_dataset("one", data=3)
    file.close()


def grown(lib: Any, path: Path) -> None:
    with lib.File(path, "w") as file:
        file.create_dataset("d", data=DATA[:8], chunks=(4, 12), maxshape=(None, 12), compression="gzip")
        file.create_dataset("n", data=np.arange(8), chunks=(16,), maxshape=(None,))
    with lib.File(path, "a") as file:
        d = file["d"]
        d.resize(15, axis=0)
        d[8:15] = DATA[8:15]
        d.resize((20, 12))
        d[-5:] = DATA[15:]
        assert d.shape == (20, 12)
        file["n"].resize((10,))
        file["n"][8], file["n"][9] = 8, 9
        file["d"].attrs["units"] = "K"
        file.attrs["appended"] = 1
        file.create_dataset("more/x", data=[1, 2])
    with lib.File(path, "r+") as file:
        assert "more/x" in file and "nothing" not in file
        d = file.require_dataset("d", (20, 12), "f4")
        d.resize(21, axis=0)
        d[20] = DATA[0]
        with pytest.raises(TypeError):
            file.require_dataset("d", (3, 3), "f4")


SNIPPETS = [groups_and_datasets, filled_by_assignment, grown]


def seen(node: Any) -> Any:
    """The content of a file, read by either library."""
    found: dict[str, Any] = {}

    def visit(name: str, node: Any) -> None:
        attrs = {key: np.asarray(value).tolist() for key, value in node.attrs.items()}
        if not hasattr(node, "shape"):
            found[name] = ("group", attrs)
            return
        values = node.asstr()[()] if node.dtype.kind == "O" else node[()]
        about = (node.shape, node.compression, node.compression_opts, node.shuffle, node.fletcher32, node.maxshape)
        found[name] = (attrs, np.asarray(values).tolist(), about)

    node.visititems(visit)
    return found, {key: np.asarray(value).tolist() for key, value in node.attrs.items()}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.__name__)
def test_a_snippet_runs_on_both(tmp_path: Path, snippet: Callable[[Any, Path], None]) -> None:
    pictures = {}
    for writer in (h5py, hyperslab):
        path = tmp_path / f"{writer.__name__}.h5"
        snippet(writer, path)
        for reader in (h5py, hyperslab):
            with reader.File(path, "r") as file:
                pictures[writer.__name__, reader.__name__] = seen(file)
        assert hyperslab.verify(path, deep=True)["ok"]
    reference = pictures["h5py", "h5py"]
    assert len(reference[0]) >= 2
    for pair, picture in pictures.items():
        assert picture == reference, pair


@pytest.mark.parametrize("ending", ["h5", "zarr", "tet", "tiledb"])
def test_late_attributes_in_every_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    with hyperslab.File(path, "w") as file:
        d = file.create_dataset("d", data=DATA, chunks=(5, 12), attrs={"first": 1})
        d.attrs["units"] = "K"
        d.attrs["first"] = 2
        d.attrs["gone"] = 3
        del d.attrs["gone"]
        with pytest.raises(hyperslab.UnsupportedError):
            file.create_dataset("e", data=DATA, chunks=(5, 12), attrs={"kept": 1}).attrs.pop("kept")
        file.attrs["title"] = "root"
        assert dict(d.attrs) == {"first": 2, "units": "K"}
    store = hyperslab.open(path)
    assert (store["d"].attrs["units"], store["d"].attrs["first"], "gone" in store["d"].attrs) == ("K", 2, False)
    assert store.attrs["title"] == "root"
    assert store["e"].attrs["kept"] == 1
    if ending == "zarr":
        import zarr

        group = zarr.open_group(path, mode="r")
        assert (group["d"].attrs["units"], group.attrs["title"]) == ("K", "root")


def test_array_views(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    rows = np.array([(1, 2.5, b"ab"), (3, 4.5, b"c")], dtype=[("a", "i4"), ("b", "f8"), ("c", "S2")])
    with h5py.File(path, "w") as file:
        file["d"], file["rows"], file["fixed"] = DATA, rows, np.array([b"ab", b"c"])
        file.create_dataset("chunked", data=DATA, chunks=(8, 5))
    with h5py.File(path) as theirs, hyperslab.File(path) as ours:
        for file in (theirs, ours):
            assert file["d"].astype("f8")[2:4].dtype == np.dtype("f8")
            assert file["rows"].fields("b")[:].tolist() == [2.5, 4.5]
            assert file["rows"].fields(["a", "c"])[1].item() == (3, b"c")
            assert file["rows"]["b"].tolist() == [2.5, 4.5]
            assert file["rows"]["a", 1:].tolist() == file["rows"][1:, "a"].tolist() == [3]
            assert file["rows"]["a", "c"].dtype.names == ("a", "c")
            assert file["fixed"].asstr()[:].tolist() == ["ab", "c"]
            out = np.zeros((6, 12), "f4")
            file["d"].read_direct(out, np.s_[4:8], np.s_[1:5])
            assert np.array_equal(out[1:5], DATA[4:8]) and not out[0].any() and not out[5].any()
            out = np.zeros((20, 12), "f8")
            file["d"].read_direct(out)
            assert np.array_equal(out, DATA)
        assert list(ours["chunked"].iter_chunks()) == list(theirs["chunked"].iter_chunks())
        part = np.s_[3:17, 4:11]
        assert list(ours["chunked"].iter_chunks(part)) == list(theirs["chunked"].iter_chunks(part))
        with pytest.raises(hyperslab.InvalidError, match="no member 'z'; it has a, b, c"):
            ours["rows"].fields("z")
        with pytest.raises((hyperslab.HyperslabError, TypeError, IndexError)):
            ours["rows"]["z"]
        with pytest.raises(hyperslab.InvalidError, match="texts"):
            ours["d"].asstr()


def test_visits_match_h5py(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    groups_and_datasets(h5py, path)
    with h5py.File(path) as theirs, hyperslab.File(path) as ours:
        names: dict[str, list[str]] = {"theirs": [], "ours": []}
        theirs.visit(names["theirs"].append)
        ours.visit(names["ours"].append)
        assert names["ours"] == names["theirs"]
        assert ours.visititems(lambda name, node: name if getattr(node, "shape", None) == (6,) else None) == "g/deep/er"
        assert theirs.visititems(lambda name, node: name if getattr(node, "shape", None) == (6,) else None) == "g/deep/er"
        assert sorted(ours.keys()) == sorted(theirs.keys())
        assert sorted(name for name, _ in ours["g"].items()) == sorted(theirs["g"].keys())
        assert ours["g/deep"].parent.path == theirs["g/deep"].parent.name
        assert (ours.filename, ours.mode) == (theirs.filename, theirs.mode)


@pytest.mark.parametrize("filters", ["shuffle,gzip:9", ["shuffle", "gzip:9"], [{"name": "shuffle"}, {"name": "gzip", "level": 9}]])
def test_filter_notations(tmp_path: Path, filters: Any) -> None:
    path = tmp_path / "x.h5"
    with hyperslab.create(path) as new:
        new.create_array("t", DATA, chunks=(5, 12), filters=filters)
    array = hyperslab.open(path)["t"]
    assert (array.compression, array.compression_opts, array.shuffle) == ("gzip", 9, True)
    with h5py.File(path) as file:
        assert (file["t"].compression, file["t"].compression_opts, file["t"].shuffle) == ("gzip", 9, True)
    target = tmp_path / "y.zarr"
    hyperslab.convert(path, target, filters="zstd:5")
    assert hyperslab.open(target)["t"].filters == [{"name": "zstd", "level": 5}]


def test_error_messages(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    grown(hyperslab, path)
    with hyperslab.File(path, "r+") as file:
        with pytest.raises(hyperslab.UnsupportedError, match="shorter"):
            file["d"].resize(3, axis=0)
        with pytest.raises(hyperslab.UnsupportedError, match="values that are stored"):
            file["d"][0] = 1
        file["d"].resize(22, axis=0)
        with pytest.raises(hyperslab.UnsupportedError, match="being made longer"):
            file["d"][0]
        with pytest.raises(hyperslab.UnsupportedError, match="values that are stored"):
            file["d"][20:22] = 1
    with pytest.raises(hyperslab.InvalidError, match="can grow to 12"), hyperslab.File(path, "r+") as file:
        file["d"].resize(13, axis=1)
    with pytest.raises(ValueError, match="mode 'q'"):
        hyperslab.File(path, "q")
    with pytest.raises(FileNotFoundError):
        hyperslab.File(tmp_path / "nothing.h5", "r+")
    with pytest.raises(hyperslab.InvalidError):
        hyperslab.File(path, "x")
    with pytest.raises(hyperslab.InvalidError, match="a level"), hyperslab.File(tmp_path / "y.h5", "w") as file:
        file.create_dataset("d", data=DATA, compression="gzip", compression_opts=(1, 2))
    assert not (tmp_path / "y.h5").exists()
    with hyperslab.File(tmp_path / "z.h5", "w") as file:
        d = file.create_dataset("d", data=DATA)
        with pytest.raises(hyperslab.UnsupportedError, match="being written"):
            d[0]


@pytest.mark.parametrize("ending", ["h5", "zarr", "tet"])
@pytest.mark.parametrize("filters", ["none", "gzip:4"])
@pytest.mark.parametrize("blocks", ["one block", "a block each"])
def test_appending_single_samples_stays_compact(tmp_path: Path, ending: str, filters: str, blocks: str) -> None:
    """The stored size stays within 1.2 times the size of the data written at once."""
    if ending == "tet" and filters != "none":
        filters = "zstd:3"
    if blocks == "a block each" and ending in ("h5", "tet") and filters != "none":
        pytest.xfail("a file keeps the old copy of an encoded chunk after every block")
    random = np.random.default_rng(3)
    samples = random.normal(size=(400 if blocks == "one block" else 100, 16, 16)).astype("float32")
    path, whole = tmp_path / f"one.{ending}", tmp_path / f"whole.{ending}"
    options: dict[str, Any] = {"chunks": (32, 16, 16), "filters": filters, "maxshape": (None, 16, 16)}
    with hyperslab.create(whole) as new:
        new.create_array("x", samples, **options)
    with hyperslab.create(path) as new:
        new.create_array("x", samples[:1], **options)
    if blocks == "one block":
        with hyperslab.File(path, "a") as file:
            for sample in samples[1:]:
                file["x"].append(sample)
    else:
        for sample in samples[1:]:
            with hyperslab.File(path, "a") as file:
                file["x"].append(sample)
    assert np.array_equal(hyperslab.open(path)["x"][...], samples)
    assert stored(path) <= 1.2 * stored(whole), (stored(path), stored(whole))


def stored(path: Path) -> int:
    return path.stat().st_size if path.is_file() else sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
