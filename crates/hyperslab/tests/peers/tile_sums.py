"""Writes random integers as .npy and with the TileDB library, and their exact sums and means: tile_sums.py FOLDER."""

import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import tiledb

folder = Path(sys.argv[1])
random = np.random.default_rng(11)
cases = []
for number in range(60):
    dtype = np.dtype(["int64", "uint64", "int32"][number % 3])
    rank = 1 + number // 3 % 2
    # Every other array ends inside a tile. The library computes the sum of such a tile row by row.
    tile = [int(random.integers(2, 9)) for _ in range(rank)]
    shape = [int(random.integers(1, 6)) * extent + (number % 2) * int(random.integers(1, extent)) for extent in tile]
    info = np.iinfo(dtype)
    shift = int(random.integers(0, 12)) if number % 4 == 0 else 0
    values = random.integers(info.min >> shift, info.max >> shift, shape, dtype=dtype, endpoint=True)
    np.save(folder / f"{number}.npy", values)
    dims = [
        tiledb.Dim(f"d{axis}", domain=(0, extent - 1), tile=min(tile[axis], extent), dtype=np.int64)
        for axis, extent in enumerate(shape)
    ]
    schema = tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=[tiledb.Attr("a", dtype=dtype)])
    uri = str(folder / f"{number}.tiledb")
    tiledb.Array.create(uri, schema)
    with tiledb.open(uri, "w") as array:
        array[:] = values
    exact = int(values.astype(object).sum())
    cases.append({
        "number": number, "tile": [min(t, s) for t, s in zip(tile, shape)], "sum": str(exact),
        "mean": float(Fraction(exact, values.size)),
    })
(folder / "expected.json").write_text(json.dumps(cases))
