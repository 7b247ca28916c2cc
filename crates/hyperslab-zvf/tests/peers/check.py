"""Opens, validates and reads with zarr-vectors what Rust wrote: `written.json` lists {path, store, kind, levels}, `cases.json` the truth."""

import json
import pathlib
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
from zarr_vectors.types.graphs import read_graph  # noqa: E402
from zarr_vectors.types.lines import read_lines  # noqa: E402
from zarr_vectors.types.meshes import read_mesh  # noqa: E402
from zarr_vectors.types.points import read_points  # noqa: E402
from zarr_vectors.types.polylines import read_polylines  # noqa: E402
from zarr_vectors.validate import validate  # noqa: E402

folder = pathlib.Path(sys.argv[1])
cases = json.loads((folder / "cases.json").read_text())
whole = {case["store"]: case for case in cases if not {"box", "objects", "groups", "positions"} & set(case) and case["level"] == 0}
boxes = 0
for written in json.loads((folder / "written.json").read_text()):
    path, truth, label = written["path"], whole[written["store"]], (written["path"], written["store"])
    result = validate(path, level=5)
    assert result.ok, (label, result.summary())
    count, kind = len(truth["vertices"]), written["kind"]
    if kind == "point_cloud":
        read = read_points(path, attribute_names=["n"])
        n = np.asarray(read["vertex_attributes"]["n"]).astype(int).reshape(-1)
        assert sorted(n) == truth["vertices"], label
        everything = read["positions"].astype("f8")
        for case in [case for case in cases if case["store"] == written["store"] and case["level"] == 0][1::3]:
            if "box" in case and "objects" not in case:
                found = read_points(path, bbox=tuple(np.array(corner) for corner in case["box"]))["positions"]
                assert len(found) == len(case["vertices"]), (label, case["box"], len(found), len(case["vertices"]))
                boxes += 1
            elif case.get("objects") and "box" not in case:
                found = read_points(path, object_ids=case["objects"])["positions"]
                assert len(found) == len(case["vertices"]), (label, case["objects"])
        for level in range(1, written["levels"]):
            coarse = read_points(path, level=level)["positions"].astype("f8")
            assert 0 < len(coarse) <= count, label
            distinct = np.unique(coarse, axis=0)
            for box in ([[0, 0, 0], [50, 60, 70]], [[-40, -40, -40], [20, 20, 20]]):
                box = [corner[: coarse.shape[1]] for corner in box]
                inside = distinct[((distinct >= box[0]) & (distinct <= box[1])).all(1)]
                found = read_points(path, level=level, bbox=tuple(np.array(corner) for corner in box))["positions"]
                assert len(np.unique(found, axis=0)) == len(inside), (label, level, box)
                boxes += 1
    elif kind in ("polyline", "streamline"):
        read = read_polylines(path)
        # It loses rows of lines through chunks below zero, in its own stores too: only the objects are compared.
        assert sorted(read["object_ids"]) == sorted(int(i) for i in truth["paths"]), label
    elif kind == "line":
        assert read_lines(path)["line_count"] * 2 == count, label
    elif kind in ("graph", "skeleton"):
        read = read_graph(path)
        assert len(read["positions"]) == count and len(read["edges"]) == len(truth["links"]), label
    elif kind == "mesh":
        read = read_mesh(path)
        assert len(read["vertices"]) == count and len(read["faces"]) == len(truth["links"]), label
assert boxes > 40, boxes
