"""The peers' side of the tables: `tables.py CASE FILE` prints the median seconds of a case, or makes FILE."""

import numpy as np
import pandas
import tiledb
from peers import case, main, median

ROWS = 2_000_000
TYPES = ["B", "NK", "T"]
CONTEXT = tiledb.Ctx({"sm.compute_concurrency_level": "2", "sm.io_concurrency_level": "2"})


@case
def make(path):
    """Cells in a plane, in the order of time."""
    axes = [tiledb.Dim(name, domain=(0, 1 << 20), tile=1 << 14, dtype="int64") for name in "xy"]
    names = tiledb.Enumeration("types", False, np.array(TYPES))
    zstd = [tiledb.ZstdFilter(3)]
    attributes = [
        tiledb.Attr("count", dtype="int32", filters=zstd),
        tiledb.Attr("score", dtype="float64", filters=zstd),
        tiledb.Attr("step", dtype="int64", filters=zstd),
        tiledb.Attr("type", dtype="int8", enum_label="types", filters=zstd),
    ]
    schema = tiledb.ArraySchema(
        tiledb.Domain(*axes), attributes, sparse=True, allows_duplicates=True, capacity=10_000, enums=[names]
    )
    tiledb.Array.create(path, schema, ctx=CONTEXT)
    random = np.random.default_rng(5)
    x = np.sort(random.integers(0, 1 << 20, ROWS))
    with tiledb.open(path, "w", ctx=CONTEXT) as array:
        array[x, random.integers(0, 1 << 20, ROWS)] = {
            "count": random.integers(0, 100, ROWS, "int32"),
            "score": random.random(ROWS),
            "step": np.arange(ROWS),
            "type": random.integers(0, len(TYPES), ROWS, "int8"),
        }


@case
def rows(path, condition, found):
    """All columns of the rows that meet a condition; unordered is the library's fastest."""
    array = tiledb.open(path, ctx=CONTEXT)
    query = array.query(cond=condition, order="U")
    assert len(query[:]["x"]) == int(found)
    median(lambda: query[:])


@case
def means(path, condition):
    """The mean score of each type: the library filters, pandas groups."""
    array = tiledb.open(path, ctx=CONTEXT)
    query = array.query(cond=condition, attrs=["score", "type"], dims=False, order="U")
    median(lambda: pandas.DataFrame(query[:]).groupby("type", observed=True)["score"].mean())


if __name__ == "__main__":
    main()
