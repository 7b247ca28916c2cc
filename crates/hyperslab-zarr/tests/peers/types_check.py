"""Reads what Rust wrote with codecs and types beyond the standard ones: `written.json` lists {path, reader, type, values}."""

import json
import pathlib
import sys

import numcodecs.zarr3  # noqa: F401  registers the codecs
import numpy as np
import tensorstore as ts
import zarr

folder = pathlib.Path(sys.argv[1])
for written in json.loads((folder / "written.json").read_text()):
    expected = np.frombuffer((folder / written["values"]).read_bytes(), written["wide"]).reshape(written["shape"])
    if written["reader"] == "zarr":
        values = zarr.open_group(written["path"], mode="r")["g/a"][...]
    else:
        spec = {"driver": written["reader"], "kvstore": {"driver": "file", "path": written["path"] + "/g/a/"}}
        store = ts.open(spec, read=True).result()
        assert str(store.dtype.name) == written["type"], (written, store.dtype)
        values = store.read().result().astype(written["wide"])
    assert np.array_equal(values, expected), (written, values, expected)
