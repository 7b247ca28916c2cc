"""Opens, validates and reads the stores written by Rust with zarr-vectors, and compares them with its own stores of the same geometries:
`written.json` lists {path, store, kind, levels}, `cases.json` the expected results."""

import json
import pathlib
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
from zarr_vectors.core.arrays import link_endpoints_to_rows, read_link_arrays, read_link_attributes  # noqa: E402
from zarr_vectors.core.store import get_resolution_level, open_store  # noqa: E402
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


def rows(array):
    return [tuple(map(float, row)) for row in np.asarray(array)]


def linked(read, links, directed):
    """Links by the positions of their ends, in sorted order."""
    positions = rows(read["positions"] if "positions" in read else read["vertices"])
    ends = [tuple(positions[i] for i in link) for link in np.asarray(links)]
    return sorted(ends if directed else (tuple(sorted(link)) for link in ends))


def points(path, truth, label):
    global boxes
    read = read_points(path, attribute_names=["n"])
    n = np.asarray(read["vertex_attributes"]["n"]).astype(int).reshape(-1)
    assert sorted(n) == truth["vertices"], label
    source = read_points(str(folder / truth["store"]), attribute_names=["n"])
    theirs = dict(zip(np.asarray(source["vertex_attributes"]["n"]).reshape(-1).tolist(), rows(source["positions"])))
    assert all(theirs[number] == row for number, row in zip(n.tolist(), rows(read["positions"]))), label
    for case in [case for case in cases if case["store"] == truth["store"] and case["level"] == 0][1::3]:
        if "box" in case and "objects" not in case:
            found = read_points(path, bbox=tuple(np.array(corner) for corner in case["box"]))["positions"]
            assert sorted(rows(found)) == sorted(theirs[i] for i in case["vertices"]), (label, case["box"])
            boxes += 1
        elif case.get("objects") and "box" not in case:
            found = read_points(path, object_ids=case["objects"])["positions"]
            assert sorted(rows(found)) == sorted(theirs[i] for i in case["vertices"]), (label, case["objects"])


def coarse_points(path, levels, count, label):
    global boxes
    for level in range(1, levels):
        coarse = read_points(path, level=level)["positions"].astype("f8")
        assert 0 < len(coarse) <= count, label
        distinct = np.unique(coarse, axis=0)
        for box in ([[0, 0, 0], [50, 60, 70]], [[-40, -40, -40], [20, 20, 20]]):
            box = [corner[: coarse.shape[1]] for corner in box]
            inside = distinct[((distinct >= box[0]) & (distinct <= box[1])).all(1)]
            found = read_points(path, level=level, bbox=tuple(np.array(corner) for corner in box))["positions"]
            assert len(np.unique(found, axis=0)) == len(inside), (label, level, box)
            boxes += 1


def polylines(path, truth, label):
    read, source = read_polylines(path), read_polylines(str(folder / truth["store"]))
    assert sorted(read["object_ids"]) == sorted(int(i) for i in truth["paths"]), label
    n, at = np.asarray(read["vertex_attributes"]["n"]).reshape(-1).astype(int).tolist(), 0
    theirs = {i: rows(np.concatenate(line)) for i, line in zip(source["object_ids"], source["polylines"])}
    for i, line in zip(read["object_ids"], read["polylines"]):
        line = np.concatenate(line)
        assert rows(line) == theirs[i], (label, i)
        assert n[at : at + len(line)] == truth["paths"][str(i)], (label, i)
        at += len(line)


def link_weights(path):
    """The attribute `w` of every link, with the positions of its ends."""
    level = get_resolution_level(open_store(path), 0)
    positions, starts, at = rows(read_graph(path)["positions"]), {}, 0
    from zarr_vectors.core.arrays import list_chunk_keys, read_chunk_vertices

    for key in list_chunk_keys(level):
        starts[key] = at
        at += sum(len(part) for part in read_chunk_vertices(level, key, dtype=np.float32, ndim=len(positions[0])))
    chunks, ends = read_link_arrays(level, delta=0)
    ends = link_endpoints_to_rows(chunks, ends, starts)
    weights = np.asarray(read_link_attributes(level, "w")).reshape(-1).tolist()
    return sorted((tuple(positions[i] for i in link), weight) for link, weight in zip(ends, weights))


for written in json.loads((folder / "written.json").read_text()):
    path, truth, label = written["path"], whole[written["store"]], (written["path"], written["store"])
    result = validate(path, level=5)
    assert result.ok, (label, result.summary())
    kind, source = written["kind"], str(folder / written["store"])
    if kind == "point_cloud":
        points(path, truth, label)
        coarse_points(path, written["levels"], len(truth["vertices"]), label)
    elif kind in ("polyline", "streamline"):
        polylines(path, truth, label)
    elif kind == "line":
        ours, theirs = read_lines(path), read_lines(source)
        key = "endpoints"
        assert sorted(map(str, np.asarray(ours[key]).tolist())) == sorted(map(str, np.asarray(theirs[key]).tolist())), label
    elif kind in ("graph", "skeleton"):
        ours, theirs = read_graph(path), read_graph(source)
        assert sorted(rows(ours["positions"])) == sorted(rows(theirs["positions"])), label
        directed = kind == "graph"
        assert linked(ours, ours["edges"], directed) == linked(theirs, theirs["edges"], directed), label
        if written["store"] == "graph":
            assert link_weights(path) == link_weights(source), label
    elif kind == "mesh":
        ours, theirs = read_mesh(path), read_mesh(source)
        assert sorted(rows(ours["vertices"])) == sorted(rows(theirs["vertices"])), label
        assert linked(ours, ours["faces"], True) == linked(theirs, theirs["faces"], True), label
assert boxes > 40, boxes
