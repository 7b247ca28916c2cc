"""Tables for the tests of conditions, aggregations and conversions, with the answers of pandas and TileDB.

make FOLDER      writes the files, prints the queries and their answers
check FOLDER     compares the converted tables with those of pandas
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import tiledb

ROWS = 5000
TYPES = ["NK", "B", "T cell", "Gießen"]


def frame(rows: int = ROWS, seed: int = 7, first: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    score = random.normal(size=rows)
    score[::17] = np.nan
    names = np.array([f"n{i % 113}" for i in range(rows)], dtype=object)
    weight = pd.array(random.integers(0, 9, rows), dtype="Int32")
    weight[::5] = pd.NA
    return pd.DataFrame(
        {
            "x": random.permutation(rows).astype("int64") + first,
            "y": random.integers(-50, 50, rows).astype("int64"),
            "count": random.integers(0, 100, rows).astype("int32"),
            "score": score,
            "ratio": random.integers(0, 10, rows).astype("float32") / np.float32(10),
            "type": pd.Categorical.from_codes(random.integers(0, len(TYPES), rows), TYPES),
            "name": names,
            "day": np.datetime64("2020-01-01", "D") + random.integers(0, 400, rows).astype("timedelta64[D]"),
            "weight": weight,
        }
    )


CONDITIONS = {
    # our condition: (pandas', TileDB's if it supports it)
    "count > 50 and type == 'NK'": ("count > 50 and type == 'NK'", "count > 50 and type == 'NK'"),
    "count > 50 or score < -1.5": ("count > 50 or score < -1.5", "count > 50 or score < -1.5"),
    "not (count <= 90)": ("not (count <= 90)", "count > 90"),
    "count in (3, 5, 99)": ("count in (3, 5, 99)", "count in [3, 5, 99]"),
    "type in ('B', 'Gießen') and x < 1000": ("type in ('B', 'Gießen') and x < 1000", "type in ['B', 'Gießen'] and x < 1000"),
    "name == 'n7'": ("name == 'n7'", "name == 'n7'"),
    "name >= 'n5' and name < 'n6'": ("name >= 'n5' and name < 'n6'", None),
    "10 <= x < 20": ("10 <= x < 20", "x >= 10 and x < 20"),
    "x between 4000 and 4100 and y > 0": ("4000 <= x <= 4100 and y > 0", "x >= 4000 and x <= 4100 and y > 0"),
    "ratio == 0.3": ("ratio == @f", None),
    "score != score2": None,
    "weight is null": ("weight.isnull()", None),
    "weight > 3": ("weight > 3", "weight > 3"),
    "not weight > 3": ("weight <= 3", "weight <= 3"),
    "weight is not null and weight != 2": ("weight != 2", "weight != 2"),
    "day >= 2020-12": ("day >= '2020-12-01'", None),
    "day == '2020-02'": ("'2020-02-01' <= day <= '2020-02-29'", None),
    "score > 100": ("score > 100", "score > 100"),
    "count > 1e3": ("count > 1000", "count > 1000"),
}
del CONDITIONS["score != score2"]


def write_sparse(path: Path, data: pd.DataFrame, duplicates: bool, parts: int, order: str = "row-major") -> None:
    """Writes several fragments whose boxes overlap."""
    dims = [
        tiledb.Dim("x", domain=(0, 100_000), tile=1000, dtype="int64"),
        tiledb.Dim("y", domain=(-50, 50), tile=20, dtype="int64"),
    ]
    text = tiledb.Enumeration("types", True, np.array(TYPES, dtype="U"))
    attrs = [
        tiledb.Attr("count", dtype="int32", filters=[tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(3)]),
        tiledb.Attr("score", dtype="float64"),
        tiledb.Attr("ratio", dtype="float32"),
        tiledb.Attr("type", dtype="int8", enum_label="types"),
        tiledb.Attr("name", dtype="U0", var=True),
        tiledb.Attr("day", dtype="datetime64[D]"),
        tiledb.Attr("weight", dtype="int32", nullable=True),
    ]
    schema = tiledb.ArraySchema(
        tiledb.Domain(*dims), attrs, sparse=True, allows_duplicates=duplicates, capacity=300, enums=[text],
        cell_order="hilbert" if order == "hilbert" else "row-major",
    )
    tiledb.Array.create(str(path), schema)
    for part in range(parts):
        own = data.iloc[part::parts]
        with tiledb.open(str(path), "w") as array:
            array[own["x"].to_numpy(), own["y"].to_numpy()] = {
                "count": own["count"].to_numpy(),
                "score": own["score"].to_numpy(),
                "ratio": own["ratio"].to_numpy(),
                "type": own["type"].cat.codes.to_numpy().astype("int8"),
                "name": own["name"].to_numpy().astype("U"),
                "day": own["day"].to_numpy().astype("datetime64[D]"),
                "weight": pa.array(own["weight"], type=pa.int32()),
            }


def answers(data: pd.DataFrame) -> dict:
    grouped = data[data["count"] > 20].groupby("type", observed=True)
    by = grouped.agg(
        score_mean=("score", "mean"), score_std=("score", lambda s: s.std(ddof=0)), count_sum=("count", "sum"),
        x_min=("x", "min"), x_max=("x", "max"), weight_count=("weight", "count"), score_median=("score", "median"),
        count=("x", "size"),
    )
    return {name: by[name].tolist() for name in by} | {"type": list(by.index)}


def make(folder: Path) -> None:
    data = frame()
    write_sparse(folder / "plain.tiledb", data, True, 3)
    write_sparse(folder / "merged.tiledb", data, False, 3)
    write_sparse(folder / "hilbert.tiledb", data, True, 2, "hilbert")
    # A newer version of some cells, which must hide the older ones.
    newer = data.iloc[:500].assign(count=np.int32(200), score=-9.0)
    with tiledb.open(str(folder / "merged.tiledb"), "w") as array:
        own = newer
        array[own["x"].to_numpy(), own["y"].to_numpy()] = {
            "count": own["count"].to_numpy(),
            "score": own["score"].to_numpy(),
            "ratio": own["ratio"].to_numpy(),
            "type": own["type"].cat.codes.to_numpy().astype("int8"),
            "name": own["name"].to_numpy().astype("U"),
            "day": own["day"].to_numpy().astype("datetime64[D]"),
            "weight": pa.array(own["weight"], type=pa.int32()),
        }
    merged = pd.concat([newer, data.iloc[500:]])
    data.to_csv(folder / "rows.csv", index=False)
    data.to_parquet(folder / "rows.parquet", index=False, row_group_size=700)
    pa.feather.write_feather(pa.Table.from_pandas(data, preserve_index=False), str(folder / "rows.arrow"), compression="uncompressed", chunksize=900)
    tables = {"plain.tiledb": data, "hilbert.tiledb": data, "merged.tiledb": merged, "rows.csv": data, "rows.parquet": data, "rows.arrow": data}
    found = {}
    for name, own in tables.items():
        rows = {}
        for ours, (theirs, tile) in CONDITIONS.items():
            f = np.float32(0.3)  # noqa: F841
            engine = own.query(theirs, engine="python", local_dict={"f": f})
            rows[ours] = sorted(engine["x"].tolist())
            if tile is not None and name.endswith(".tiledb"):
                with tiledb.open(str(folder / name)) as array:
                    seen = array.query(cond=tile, attrs=["count"])[:]
                assert sorted(seen["x"].tolist()) == rows[ours], (name, tile)
        found[name] = {"rows": rows, "groups": answers(own)}
    more = frame(500, 11, ROWS)
    more.to_csv(folder / "more.csv", index=False)
    write_dense(folder / "dense.tiledb")
    print(json.dumps(found))


def write_dense(path: Path) -> None:
    """Writes a dense array with an enumeration, a domain that starts below zero, 32-bit dimensions and a few filters."""
    dims = [
        tiledb.Dim("lat", domain=(-10, 9), tile=5, dtype="int32"),
        tiledb.Dim("lon", domain=(0, 7), tile=4, dtype="int32"),
    ]
    text = tiledb.Enumeration("kinds", False, np.array(TYPES, dtype="U"))
    attrs = [
        tiledb.Attr("kind", dtype="int8", enum_label="kinds"),
        tiledb.Attr("v", dtype="float64", filters=[tiledb.FloatScaleFilter(0.5, 1.0, 4), tiledb.BitShuffleFilter(), tiledb.GzipFilter(7)]),
        tiledb.Attr("n", dtype="int64", filters=[tiledb.DoubleDeltaFilter(), tiledb.BitWidthReductionFilter(128), tiledb.ChecksumMD5Filter()]),
    ]
    tiledb.Array.create(str(path), tiledb.ArraySchema(tiledb.Domain(*dims), attrs, enums=[text]))
    with tiledb.open(str(path), "w") as array:
        cells = np.arange(160)
        array[:] = {
            "kind": (cells % 4).astype("int8").reshape(20, 8),
            "v": (cells / 2.0).reshape(20, 8),
            "n": cells.astype("int64").reshape(20, 8),
        }
        array.meta["title"] = "dense"


def table_of(path: Path) -> pd.DataFrame:
    with tiledb.open(str(path)) as array:
        data = array.query(use_arrow=False)[:] if array.schema.sparse else None
        own = pd.DataFrame({name: data[name] for name in ["x", "y", "count", "score", "ratio"]})
        own["name"] = [v.decode() if isinstance(v, bytes) else v for v in data["name"]]
        labels = None
        if array.attr("type").enum_label is not None:
            labels = array.enum(array.attr("type").enum_label).values()
        kinds = data["type"]
        own["type"] = [labels[k] if labels is not None else (k.decode() if isinstance(k, bytes) else k) for k in kinds]
        own["day"] = data["day"].astype("datetime64[D]")
        weight = data["weight"]
        own["weight"] = pd.array(np.ma.filled(weight.astype("float64"), np.nan) if np.ma.isMaskedArray(weight) else weight).astype("Float64")
    return own.sort_values(["x", "y"]).reset_index(drop=True)


def same(found: pd.DataFrame, expected: pd.DataFrame, what: str) -> None:
    expected = expected.sort_values(["x", "y"]).reset_index(drop=True)
    assert len(found) == len(expected), (what, len(found), len(expected))
    for name in ["x", "y", "count", "name"]:
        assert found[name].tolist() == expected[name].tolist(), (what, name)
    assert found["type"].tolist() == expected["type"].astype(str).tolist(), what
    assert np.array_equal(found["day"].to_numpy().astype("datetime64[D]"), expected["day"].to_numpy().astype("datetime64[D]")), what
    for name in ["score", "ratio"]:
        # A float32 written as text is read as a float64 with the same digits.
        assert np.array_equal(found[name].to_numpy().astype(expected[name].dtype), expected[name].to_numpy(), equal_nan=True), (what, name)


def check(folder: Path) -> None:
    data = frame()
    for name in ["csv", "parquet", "arrow", "copy", "curve"]:
        path = folder / f"from_{name}.tiledb"
        if name in ("parquet", "arrow") and not path.exists():
            continue  # a build without Arrow
        same(table_of(path), data, name)
        with tiledb.open(str(path)) as array:
            types = {array.domain.dim(i).dtype for i in range(2)}
            assert types == {np.dtype("int64")}, types
            assert array.schema.allows_duplicates is (name in ("copy", "curve"))
            if name != "csv":
                assert array.attr("type").enum_label is not None, name
            if name == "copy":
                assert array.domain.dim("x").domain == (0, 100_000) and array.domain.dim("x").tile == 1000
                assert array.enum("types").ordered
                assert [f.__class__.__name__ for f in array.attr("count").filters] == ["ByteShuffleFilter", "ZstdFilter"]
                assert array.schema.capacity == 300
            if name == "curve":
                assert array.schema.cell_order == "hilbert"
            if name != "csv":
                seen = array.query(cond="count > 50 and type == 'NK'", attrs=["count"])[:]
                expected = data.query("count > 50 and type == 'NK'")
                assert sorted(seen["x"].tolist()) == sorted(expected["x"].tolist()), name
    for name in ["from_copy", "merged"]:
        path = folder / f"{name}_less.tiledb"
        with tiledb.open(str(path)) as array:
            assert sorted(array[:]["x"].tolist()) == json.loads((folder / f"{name}_less.json").read_text()), name
    same(table_of(folder / "grown.tiledb"), pd.concat([data, frame(500, 11, ROWS)]), "grown")
    with tiledb.open(str(folder / "names.tiledb")) as array:
        assert array.domain.dim("name").dtype == np.dtype("S0") or array.domain.dim("name").isvar
        found = array[:]
        assert len(found["name"]) == ROWS
    with tiledb.open(str(folder / "dense.tiledb")) as old, tiledb.open(str(folder / "dense_copy.tiledb")) as new:
        assert new.domain.dim("lat").domain == (-10, 9) and new.domain.dim("lat").dtype == np.dtype("int32")
        assert new.domain.dim("lon").domain == (0, 7) and new.domain.dim("lon").dtype == np.dtype("int32")
        assert new.attr("kind").enum_label == "kinds"
        assert list(new.enum("kinds").values()) == TYPES
        for name in ["kind", "v", "n"]:
            assert np.array_equal(old[:][name], new[:][name]), name
            filters = [[f.__class__.__name__ for f in a.attr(name).filters] for a in (old, new)]
            assert filters[0] == filters[1], filters
        assert new.meta["title"] == "dense"


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](Path(sys.argv[2]))
