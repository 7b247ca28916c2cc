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
