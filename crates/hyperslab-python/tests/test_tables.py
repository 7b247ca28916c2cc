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
