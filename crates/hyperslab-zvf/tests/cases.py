"""Stores that zarr-vectors writes, with queries and their expected results, for the tests in Rust.

Every vertex has an attribute `n`, its number in the input. Results are computed from the input by brute force, never by the library's
own queries: {store, level, box, objects, groups, vertices: [n …], links: [[n, …] …], paths: {id: [n …]}}.
"""

import pathlib
import sys
import warnings

import numpy as np
import zarr_vectors

warnings.simplefilter("ignore")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from truth import Cases  # noqa: E402
from zarr_vectors.multiresolution.coarsen import build_pyramid  # noqa: E402
from zarr_vectors.types.graphs import write_graph  # noqa: E402
from zarr_vectors.types.lines import write_lines  # noqa: E402
from zarr_vectors.types.meshes import write_mesh  # noqa: E402
from zarr_vectors.types.points import read_points, write_points  # noqa: E402
from zarr_vectors.types.polylines import write_polylines  # noqa: E402

assert zarr_vectors.__version__ == "0.9.2", zarr_vectors.__version__


def points(cases, rng, n, more, d):
    positions = rng.uniform(-40, 100, (n, d)).astype("f4")
    number = {"n": np.arange(n), "v": positions * 2}
    chunk = dict(chunk_shape=(50.0,) * d)
    write_points(cases.path("points"), positions, vertex_attributes=number, **chunk)
    cases.add("points", positions)
    write_points(cases.path("points_bins"), positions, vertex_attributes=number, bin_shape=(12.5, 25.0, 10.0)[:d], **chunk)
    cases.add("points_bins", positions)
    ids = rng.integers(0, 12, n) * 7 - 5
    objects = {int(i): np.flatnonzero(ids == i).tolist() for i in np.unique(ids)}
    dense = np.unique(ids, return_inverse=True)[1]
    dense_objects = {i: np.flatnonzero(dense == i).tolist() for i in range(dense.max() + 1)}
    groups = {0: [0, 1, 2], 1: [3, 6]}
    write_points(cases.path("points_ids"), positions, vertex_attributes=number, object_ids=dense, bin_shape=(25.0,) * d, groups=groups, **chunk)
    cases.add("points_ids", positions, objects=dense_objects, groups=groups, ordered=False)
    if more:
        write_points(cases.path("points_sparse_ids"), positions, vertex_attributes=number, object_ids=ids, **chunk)
        cases.add("points_sparse_ids", positions, objects=objects, ordered=False)
        write_points(cases.path("points_shards"), positions, vertex_attributes=number, object_ids=dense, shard_shape=2, **chunk)
        cases.add("points_shards", positions, objects=dense_objects, ordered=False)
        write_points(cases.path("points_f8_2d"), positions[:, :2].astype("f8"), vertex_attributes=number, dtype="float64", chunk_shape=(20.0, 30.0))
        cases.add("points_f8_2d", positions[:, :2].astype("f8"))
        write_points(cases.path("points_raw"), positions, vertex_attributes=number, compressor="none", **chunk)
        cases.add("points_raw", positions)


def paths(cases, rng, count, more, d):
    lines = [(rng.uniform(20, 80, d) + np.cumsum(rng.normal(0, 8, (rng.integers(1 + i % 2, 25), d)), 0)).astype("f4") for i in range(count)]
    starts = np.cumsum([0] + [len(line) for line in lines])
    numbers = [np.arange(a, b) for a, b in zip(starts, starts[1:])]
    objects = {i: rows.tolist() for i, rows in enumerate(numbers)}
    links = [(a, a + 1) for rows in numbers for a in rows[:-1]]
    groups = {0: [0, 1], 1: list(range(2, count))}
    for name, kind in [("streamlines", {}), ("polylines", {"geometry_type": "polyline", "shard_shape": 2})][: 1 + more]:
        write_polylines(cases.path(name), lines, chunk_shape=(25.0 if more else 50.0,) * d, vertex_attributes={"n": numbers}, groups=groups, **kind)
        cases.add(name, np.concatenate(lines), links, objects, groups)
    ends = rng.uniform(0, 100, (count * 2, 2, d)).astype("f4")
    number = np.arange(count * 4).reshape(-1, 2)
    write_lines(cases.path("lines"), ends, chunk_shape=(50.0,) * d, vertex_attributes={"n": number})
    cases.add("lines", ends.reshape(-1, d), number.tolist(), {i: row.tolist() for i, row in enumerate(number)})


def write_graph_of(dtype, *arguments, **options):
    """Like `write_graph`, but stores the rows of links in another type. The functions that it calls accept a type; it does
    not."""
    import zarr_vectors.core.arrays as arrays
    import zarr_vectors.types.graphs as graphs

    kept = arrays.create_links_array, arrays.write_links, graphs.create_links_array, graphs.write_links
    create = lambda *a, **k: kept[0](*a, **k | {"dtype": dtype})  # noqa: E731
    write = lambda *a, **k: kept[1](*a, **k | {"dtype": np.dtype(dtype)})  # noqa: E731
    arrays.create_links_array, arrays.write_links, graphs.create_links_array, graphs.write_links = create, write, create, write
    try:
        graphs.write_graph(*arguments, **options)
    finally:
        arrays.create_links_array, arrays.write_links, graphs.create_links_array, graphs.write_links = kept


def linked(cases, rng, n, more, d):
    positions = rng.uniform(0, 100, (n, d)).astype("f4")
    number = {"n": np.arange(n)}
    edges = rng.integers(0, n, (2 * n, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    whole = {0: list(range(n))}
    chunk = dict(chunk_shape=(40.0 if more else 50.0,) * d)
    write_graph(cases.path("graph"), positions, edges, vertex_attributes=number, link_attributes={"w": np.arange(len(edges))}, **chunk)
    cases.add("graph", positions, edges, whole, ordered=False)
    faces = np.array([rng.choice(n, 3, replace=False) for _ in range(n)])
    write_mesh(cases.path("mesh"), positions, faces, vertex_attributes=number, **chunk)
    cases.add("mesh", positions, faces, whole, ordered=False)
    parents = np.array([(i, rng.integers(max(0, i - 4), i)) for i in range(1, n)])
    write_graph(cases.path("skeleton"), positions, parents, kind="skeleton", vertex_attributes=number, **chunk)
    cases.add("skeleton", positions, parents, whole, ordered=False)
    for dtype in ["int32", "uint64", "int16"][: 3 if more else 1]:
        write_graph_of(dtype, cases.path(f"graph_{dtype}"), positions, edges, vertex_attributes=number, **chunk)
        cases.add(f"graph_{dtype}", positions, edges, whole, ordered=False)
    if more:
        write_graph(cases.path("graph_shards"), positions, edges, vertex_attributes=number, shard_shape=2, **chunk)
        cases.add("graph_shards", positions, edges, whole, ordered=False)
        half = np.arange(n) % 2
        same = edges[half[edges[:, 0]] == half[edges[:, 1]]]
        write_graph(cases.path("graph_ids"), positions, same, object_ids=half, vertex_attributes=number, **chunk)
        cases.add("graph_ids", positions, same, {i: np.flatnonzero(half == i).tolist() for i in (0, 1)}, ordered=False)


def pyramids(cases, rng, n):
    """Coarse levels: the positions that the library reads from the whole level, and brute-force boxes over them."""
    positions = rng.uniform(0, 100, (n, 3)).astype("f4")
    for name, ids in (("pyramid", None), ("pyramid_ids", np.arange(n) % 9)):
        write_points(cases.path(name), positions, object_ids=ids, chunk_shape=(25.0, 25.0, 25.0), bin_shape=(12.5, 12.5, 12.5))
        build_pyramid(cases.path(name), factors=[(2.0, 1.0), (2.0, 2.0)])
        for level in (0, 1, 2):
            all_of_it = read_points(cases.path(name), level=level)["positions"].astype("f8")
            all_of_it = np.unique(all_of_it, axis=0)
            for box in [None, [[10, 10, 10], [60, 70, 80]], [[50, 50, 50], [50.5, 99, 99]]]:
                inside = all_of_it if box is None else all_of_it[((all_of_it >= box[0]) & (all_of_it <= box[1])).all(1)]
                case = {"store": name, "level": level, "positions": inside.tolist()}
                cases.cases.append(case | ({} if box is None else {"box": box}))


def write(folder, small):
    rng = np.random.default_rng(7)
    cases = Cases(folder, 3 if small else 12)
    d = 2 if small else 3
    points(cases, rng, 60 if small else 500, not small, d)
    paths(cases, rng, 6 if small else 30, not small, d)
    linked(cases, rng, 40 if small else 300, not small, d)
    if not small:
        pyramids(cases, rng, 400)
    cases.finish()


if __name__ == "__main__":
    write(sys.argv[1], small=False)
