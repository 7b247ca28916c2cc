"""Writes stores in the layouts before 0.9, beside this file. The argument is the format's version, which zarr-vectors must write:

| version | zarr-vectors |
|---|---|
| 0.7.0 | 0.2.0, from the Python Package Index |
| 0.6.0 | 0.1.0, commit e8da9ff of the repository (never published) |

Later versions reject these stores or read nothing from them, so the expected results come from the input alone.
"""

import pathlib
import shutil
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
import zarr_vectors  # noqa: E402
from zarr_vectors.constants import FORMAT_VERSION  # noqa: E402
from zarr_vectors.types.graphs import write_graph  # noqa: E402
from zarr_vectors.types.meshes import write_mesh  # noqa: E402
from zarr_vectors.types.points import write_points  # noqa: E402
from zarr_vectors.types.polylines import write_polylines  # noqa: E402

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent))
from truth import Cases  # noqa: E402

version = sys.argv[1]
package = {"0.6.0": "0.1.0", "0.7.0": "0.2.0"}[version]
assert (FORMAT_VERSION, zarr_vectors.__version__) == (version, package), (FORMAT_VERSION, zarr_vectors.__version__)

folder = here / "older" / version
shutil.rmtree(folder, ignore_errors=True)
cases = Cases(folder, 3)
rng = np.random.default_rng(3)
n, chunk = 24, dict(chunk_shape=(50.0, 50.0))
number = {"n": np.arange(n)}
positions = rng.uniform(-45, 45, (n, 2)).astype("f4")

ids = np.arange(n) % 5
objects = {i: np.flatnonzero(ids == i).tolist() for i in range(5)}
groups = {0: [0, 1], 1: [4, 2, 3]}
write_points(cases.path("points_ids"), positions, object_ids=ids, groups=groups, vertex_attributes=number | {"v": positions * 2}, object_attributes={"q": np.arange(5) * 1.5}, **chunk)
cases.add("points_ids", positions, objects=objects, groups=groups, ordered=False)

lines = [rng.uniform(-45, 45, (length, 2)).astype("f4") for length in (1, 9, 6)]
starts = np.cumsum([0] + [len(line) for line in lines])
numbers = [np.arange(a, b) for a, b in zip(starts, starts[1:])]
paths = {i: rows.tolist() for i, rows in enumerate(numbers)}
links = [(a, a + 1) for rows in numbers for a in rows[:-1]]
write_polylines(cases.path("polylines"), lines, vertex_attributes={"n": numbers}, geometry_type="polyline", **chunk)
cases.add("polylines", np.concatenate(lines), links, paths)

edges = rng.integers(0, n, (2 * n, 2))
edges = edges[edges[:, 0] != edges[:, 1]]
whole = {0: list(range(n))}
write_graph(cases.path("graph"), positions, edges, vertex_attributes=number, link_attributes={"w": np.arange(len(edges))}, **chunk)
cases.add("graph", positions, edges, whole, ordered=False)

if version == "0.7.0":
    write_points(cases.path("points"), positions, vertex_attributes=number, **chunk)
    cases.add("points", positions)
    faces = np.array([rng.choice(n, 3, replace=False) for _ in range(n)])
    write_mesh(cases.path("mesh"), positions, faces, vertex_attributes=number, **chunk)
    cases.add("mesh", positions, faces, whole, ordered=False)
    parents = np.array([(i, rng.integers(max(0, i - 4), i)) for i in range(1, n)])
    write_graph(cases.path("skeleton"), positions, parents, kind="skeleton", vertex_attributes=number, **chunk)
    cases.add("skeleton", positions, parents, whole, ordered=False)
cases.finish()
