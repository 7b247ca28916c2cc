"""Tables as Arrow, geometries as NumPy arrays."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import hyperslab

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """A sparse array of three cells, written by TileDB."""
    tiledb = pytest.importorskip("tiledb")
    path = tmp_path / "sparse.tiledb"
    axes = [tiledb.Dim(name, (0, 99), tile=10, dtype="int64") for name in ("x", "y")]
    attributes = [tiledb.Attr("v", dtype="float64"), tiledb.Attr("name", dtype="U0", var=True)]
    tiledb.Array.create(str(path), tiledb.ArraySchema(tiledb.Domain(*axes), attributes, sparse=True))
    with tiledb.open(str(path), "w") as array:
        array[[1, 5, 70], [2, 6, 80]] = {"v": np.array([1.5, 2.5, 3.5]), "name": np.array(["a", "Gießen", ""], dtype="U")}
    return path


def test_tables_are_arrow_streams(sparse: Path) -> None:
    store = hyperslab.open(sparse)
    table = store[store._native.only_node()]
    assert isinstance(table, hyperslab.Table)
    assert len(table) == 3
    assert table.columns == ["x", "y", "v", "name"] and table.dimensions == ["x", "y"]
    rows = pa.table(table)
    assert rows.column("x").to_pylist() == [1, 5, 70]
    assert rows.column("v").to_pylist() == [1.5, 2.5, 3.5]
    assert rows.column("name").to_pylist() == ["a", "Gießen", ""]


def test_rows_are_selected_by_dimension(sparse: Path) -> None:
    store = hyperslab.open(sparse)
    table = store[store._native.only_node()].select("x=2..90", ["v", "y"])
    rows = pa.table(pickle.loads(pickle.dumps(table)))
    assert rows.to_pydict() == {"v": [2.5, 3.5], "y": [6, 80]}
    with pytest.raises(hyperslab.InvalidError):
        table.select("nothing=1")


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """Rows of a CSV file as a sparse array."""
    rows = "x,y,count,type,score\n1,1,60,NK,1.5\n2,1,70,B,2\n3,2,80,NK,\n4,2,10,NK,9\n"
    (tmp_path / "cells.csv").write_text(rows)
    report = hyperslab.convert(tmp_path / "cells.csv", tmp_path / "cells.tiledb", dimensions=["x", "y"])
    assert report["rows"] == 4
    return tmp_path / "cells.tiledb"


def test_rows_are_queried(cells: Path) -> None:
    pd = pytest.importorskip("pandas")
    for path in (cells, cells.with_suffix(".csv")):
        table = hyperslab.open(path)["/"]
        rows = table.query("count > 50 and type == 'NK'").to_pandas()
        assert rows["x"].tolist() == [1, 3] and pd.isna(rows["score"][1])
        found = table.query("count > 50", by="type", mean="score", sum=["count", "x"], count=True)
        expected = {"type": ["B", "NK"], "score_mean": [2.0, 1.5], "count_sum": [70, 140], "x_sum": [2, 4], "count": [1, 2]}
        assert found.to_pydict() == expected
        assert found.to_pandas().to_dict("list") == expected
        assert len(pickle.loads(pickle.dumps(table.query("x > 2"))).to_pandas()) == 2
        with pytest.raises(hyperslab.InvalidError, match="did you mean count"):
            table.query("cuont > 5")


def test_queries_of_queries_keep_the_earlier_conditions(cells: Path) -> None:
    pytest.importorskip("pandas")
    for path in (cells, cells.with_suffix(".csv")):
        table = hyperslab.open(path)["/"]
        chained = table.query("count > 50").query("type == 'NK'")
        assert chained.to_pandas()["x"].tolist() == [1, 3]
        assert len(chained) == 2 and len(table.query("count > 50")) == 3 and len(table) == 4
        assert "selection of 4 rows" in repr(chained) and "selection" not in repr(table)
        assert "selection of 4 rows" in chained._repr_html_()
        assert table.query("count > 50").query(sum="x").to_pydict() == {"x_sum": [6]}
        narrow = table.query("count > 50").select(columns=["x", "count"]).query("x > 1")
        assert narrow.to_pandas().to_dict("list") == {"x": [2, 3], "count": [70, 80]}
        assert pickle.loads(pickle.dumps(narrow)).to_pandas().to_dict("list") == {"x": [2, 3], "count": [70, 80]}
        with pytest.raises(hyperslab.InvalidError, match="no column score"):
            narrow.select(columns=["score"])
    table = hyperslab.open(cells)["/"]
    assert table.select("x=1..3").query("count > 60").to_pandas()["x"].tolist() == [2, 3]
    assert table.query("count > 60").select("x=1..3").select("x=3..9", ["x"]).to_pandas()["x"].tolist() == [3]
    assert len(table.select("x=1..2").select("x=3..4")) == 0


def test_polars_and_duckdb_accept_tables(cells: Path) -> None:
    import duckdb
    import polars

    table = hyperslab.open(cells)["/"]
    assert polars.DataFrame(table.query("count > 50"))["x"].to_list() == [1, 2, 3]
    rows = pa.table(table)
    assert duckdb.sql("select sum(count) from rows").fetchall() == [(220,)]
    with duckdb.connect() as connection:
        connection.register("cells", pa.table(table.query("score is not null")))
        found = connection.sql("select type, avg(score) from cells group by type order by type").fetchall()
    assert found == [("B", 2.0), ("NK", 5.25)]


def test_categories_are_kept(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1, 2, 3], "kind": pd.Categorical(["a", "b", "a"])})
    frame.to_parquet(tmp_path / "k.parquet")
    hyperslab.convert(tmp_path / "k.parquet", tmp_path / "k.tiledb", dimensions=["x"])
    found = hyperslab.open(tmp_path / "k.tiledb")["/"].to_pandas()
    assert str(found["kind"].dtype) == "category" and found["kind"].tolist() == ["a", "b", "a"]
    hyperslab.convert(tmp_path / "k.parquet", tmp_path / "more.tiledb", dimensions=["x"], duplicates=True, order="hilbert")
    hyperslab.convert(tmp_path / "k.parquet", tmp_path / "more.tiledb", append=True)
    assert len(hyperslab.open(tmp_path / "more.tiledb")["/"]) == 6


def test_rows_in_memory_become_a_sparse_array(tmp_path: Path) -> None:
    pd, tiledb = pytest.importorskip("pandas"), pytest.importorskip("tiledb")
    level = pd.Categorical(["high", "low", None], categories=["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"x": [3, 1, 2], "level": level, "v": [0.5, 1.5, 2.5]})
    path = tmp_path / "rows.tiledb"
    assert hyperslab.convert(frame, path, dimensions="x")["rows"] == 3
    with tiledb.open(str(path)) as array:
        assert array.enum("level").ordered and list(array.enum("level").values()) == ["low", "mid", "high"]
        assert array[:]["v"].tolist() == [1.5, 2.5, 0.5]
    # The order of the categories is kept by Arrow and pandas.
    found = hyperslab.open(path)["/"].to_pandas()
    assert found["level"].dtype == level.dtype and found["level"].tolist()[::2] == ["low", "high"]
    hyperslab.convert(path, tmp_path / "rows.arrow")
    assert pa.ipc.open_file(tmp_path / "rows.arrow").read_all().to_pandas()["level"].dtype == level.dtype
    # Parquet's dictionaries have no order and only the names that occur, so these are described beside the rows.
    hyperslab.convert(path, tmp_path / "rows.parquet")
    assert not pd.read_parquet(tmp_path / "rows.parquet")["level"].dtype.ordered
    frame.to_parquet(tmp_path / "frame.parquet")
    for name in ["rows.arrow", "rows.parquet", "frame.parquet"]:
        hyperslab.convert(tmp_path / name, tmp_path / f"{name}.tiledb", dimensions="x")
        assert hyperslab.open(tmp_path / f"{name}.tiledb")["/"].to_pandas()["level"].dtype == level.dtype, name
    # Tables of Arrow, of any number of batches, and our own are rows as well.
    more = pa.Table.from_batches([pa.record_batch({"x": [7], "level": ["mid"], "v": [9.0]})] * 1)
    hyperslab.convert(pa.concat_tables([more, more.set_column(0, "x", [[8]])]), path, append=True)
    hyperslab.convert(hyperslab.open(path)["/"].query("v > 2"), tmp_path / "part.tiledb", dimensions=["x"])
    assert hyperslab.open(tmp_path / "part.tiledb")["/"].to_pandas()["x"].tolist() == [2, 7, 8]
    with pytest.raises(hyperslab.InvalidError, match="choose the columns"):
        hyperslab.convert(frame, tmp_path / "none.tiledb")
    with pytest.raises(hyperslab.HyperslabError, match="column d of Arrow's type Decimal"):
        import decimal

        hyperslab.convert(pa.table({"d": [decimal.Decimal("1.5")]}), tmp_path / "none.tiledb", dimensions=["d"])
    assert not (tmp_path / "none.tiledb").exists()


@pytest.mark.parametrize("ending", ["parquet", "arrow", None])
def test_columns_of_arrow_that_are_not_plain(tmp_path: Path, ending: str | None) -> None:
    import datetime

    tiledb = pytest.importorskip("tiledb")
    numbers = pa.array([10, None, 30, 10], pa.int64()).dictionary_encode()
    columns = {
        "x": pa.array([1, 2, 3, 4]),
        "code": numbers,
        "rgb": pa.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]], pa.list_(pa.uint8(), 3)),
        "grid": pa.array([[[i, i + 1], [i + 2, i + 3]] for i in range(4)], pa.list_(pa.list_(pa.int16(), 2), 2)),
        "some": pa.array([[1.5], [], [2.5, 3.5], [4.5]], pa.list_(pa.float64())),
        "at": pa.array([datetime.time(1, 2, 3)] * 4, pa.time32("s")),
    }
    table = pa.table(columns)
    source: object = table
    if ending == "parquet":
        pa.parquet = __import__("pyarrow.parquet").parquet
        pa.parquet.write_table(table, tmp_path / "t.parquet")
    elif ending == "arrow":
        with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    if ending:
        source = tmp_path / f"t.{ending}"
    hyperslab.convert(source, tmp_path / "t.tiledb", dimensions=["x"])
    with tiledb.open(str(tmp_path / "t.tiledb")) as array:
        cells = array[:]
        assert [tuple(cell) for cell in cells["rgb"]] == [(1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12)]
        assert [cell.tolist() for cell in cells["some"]] == [[1.5], [], [2.5, 3.5], [4.5]]
    found = pa.table(hyperslab.open(tmp_path / "t.tiledb")["/"]).to_pydict()
    assert found["code"] == [10, None, 30, 10]
    assert found["grid"] == [[i, i + 1, i + 2, i + 3] for i in range(4)]
    assert found["at"] == [datetime.timedelta(seconds=3723)] * 4
    holes = pa.table({"x": [1, 2], "some": pa.array([[1], [2, None]], pa.list_(pa.int64()))})
    with pytest.raises(hyperslab.InvalidError, match="column some: items are missing inside lists"):
        hyperslab.convert(holes, tmp_path / "holes.tiledb", dimensions=["x"])
    assert not (tmp_path / "holes.tiledb").exists()


@pytest.mark.parametrize("ending", ["h5", "npy"])
def test_structs_become_rows(tmp_path: Path, ending: str) -> None:
    h5py, tiledb = pytest.importorskip("h5py"), pytest.importorskip("tiledb")
    kind = np.dtype([("x", "i4"), ("name", "S3"), ("v", "f8")])
    values = np.array([(3, b"c", 0.3), (1, b"a", 0.1), (2, b"bb", 0.2)], dtype=kind)

    def write(name: str, part: np.ndarray) -> Path:
        path = tmp_path / f"{name}.{ending}"
        if ending == "npy":
            np.save(path, part)
        else:
            with h5py.File(path, "w") as file:
                file["g/table"] = part
        return path

    target = tmp_path / "rows.tiledb"
    hyperslab.convert(write("a", values), target, dimensions=["name", "x"])
    values["x"] += 10
    hyperslab.convert(write("b", values), target, append=True)
    with tiledb.open(str(target)) as array:
        assert array.schema.sparse and array.schema.domain.dim("name").dtype.kind == "S"
        cells = array[:]
    assert cells["x"].tolist() == [1, 11, 2, 12, 3, 13]
    assert cells["v"].tolist() == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]
    with pytest.raises(hyperslab.InvalidError, match="no column y"):
        hyperslab.convert(write("c", values), tmp_path / "none.tiledb", dimensions=["y"])
    # Without dimensions, an array of structs stays an array.
    hyperslab.convert(write("d", values), tmp_path / "d.zarr")
    assert hyperslab.open(tmp_path / "d.zarr")["g/table" if ending == "h5" else "/"].shape == (3,)
