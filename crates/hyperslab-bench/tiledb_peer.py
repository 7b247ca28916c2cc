"""TileDB's side of the benchmarks: `tiledb_peer.py CASE FILE …` prints the median seconds of a case, or creates FILE."""

import resource
import shutil
import statistics
import sys
import time

import numpy as np
import tiledb

RUNS, BOXES, BOX = 3, 100, 32
POINTS, SIDE, SPARSE_BOX = 5_000_000, 1000.0, 20.0
FRAGMENTS, FRAGMENT_CELLS = 1000, 10
CONTEXT = tiledb.Ctx({"sm.compute_concurrency_level": "2", "sm.io_concurrency_level": "2"})
FILTERS = {
    "raw": [],
    "zstd": [tiledb.ZstdFilter(3)],
    "shuffle": [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(3)],
}


def median(work, before=lambda: None, after=lambda: None, warm=True):
    """The median of several runs. Preparation and cleanup are not timed."""
    seconds = []
    for run in range(RUNS + warm):
        before()
        begin = time.perf_counter()
        work()
        if run >= warm:
            seconds.append(time.perf_counter() - begin)
        after()
    print(statistics.median(seconds))


def walk(count, extents):
    """The same pseudo-random walk as the Rust side: `count` starts below the extents."""
    state, starts = 12345, []
    for _ in range(count):
        start = []
        for extent in extents:
            state = (state * 1103515245 + 12345) % 2**31
            start.append(state % extent)
        starts.append(start)
    return starts


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def create_dense(field, path, filters):
    axes = [tiledb.Dim(f"d{i}", domain=(0, n - 1), tile=64, dtype=np.int64) for i, n in enumerate(field.shape)]
    attribute = tiledb.Attr("field", dtype=field.dtype, filters=tiledb.FilterList(FILTERS[filters]))
    tiledb.Array.create(path, tiledb.ArraySchema(domain=tiledb.Domain(*axes), attrs=[attribute]), ctx=CONTEXT)


def write_dense(field, path, filters):
    create_dense(field, path, filters)
    with tiledb.open(path, "w", ctx=CONTEXT) as array:
        array[:] = field


@case
def make_dense(source, path, filters):
    write_dense(np.load(source), path, filters)


@case
def dense_write(source, path, filters):
    field, clear = np.load(source), lambda: shutil.rmtree(path, ignore_errors=True)
    median(lambda: write_dense(field, path, filters), clear, clear)


@case
def dense_full(path):
    array = tiledb.open(path, ctx=CONTEXT)
    median(lambda: array[:]["field"])


@case
def dense_boxes(path):
    array = tiledb.open(path, ctx=CONTEXT)
    starts = walk(BOXES, [extent - BOX for extent in array.shape])
    wanted = [tuple(slice(s, s + BOX) for s in start) for start in starts]
    median(lambda: [array[box]["field"] for box in wanted])


@case
def make_sparse_empty(path):
    axes = [tiledb.Dim(name, domain=(0, SIDE), tile=SIDE / 50, dtype=np.float64) for name in "xy"]
    schema = tiledb.ArraySchema(
        domain=tiledb.Domain(*axes), attrs=[tiledb.Attr("v", dtype=np.float64)], sparse=True, allows_duplicates=True
    )
    tiledb.Array.create(path, schema, ctx=CONTEXT)


def points(path):
    return np.fromfile(path, dtype=np.float64).reshape(3, POINTS)


def write_points(path, columns):
    with tiledb.open(path, "w", ctx=CONTEXT) as array:
        array[columns[0], columns[1]] = columns[2]


@case
def make_sparse(source, empty, path):
    shutil.copytree(empty, path)
    write_points(path, points(source))


@case
def sparse_write(source, empty, path):
    columns = points(source)
    clear = lambda: shutil.rmtree(path, ignore_errors=True)
    median(lambda: write_points(path, columns), lambda: (clear(), shutil.copytree(empty, path)), clear)


@case
def sparse_full(path):
    array = tiledb.open(path, ctx=CONTEXT)
    # The library is fastest without an order.
    assert len(array.query(order="U")[:]["v"]) == POINTS
    median(lambda: array.query(order="U")[:])


@case
def sparse_boxes(path):
    array = tiledb.open(path, ctx=CONTEXT)
    starts = walk(BOXES, [int(SIDE - SPARSE_BOX)] * 2)
    query = array.query(order="U")
    median(lambda: [query.multi_index[x : x + SPARSE_BOX, y : y + SPARSE_BOX] for x, y in starts])


@case
def make_fragments(path, kind):
    last = FRAGMENTS * FRAGMENT_CELLS - 1
    axis = tiledb.Dim("d", domain=(0, last), tile=FRAGMENT_CELLS, dtype=np.int64)
    attribute = tiledb.Attr("v", dtype=np.float64)
    schema = tiledb.ArraySchema(domain=tiledb.Domain(axis), attrs=[attribute], sparse=kind == "sparse")
    tiledb.Array.create(path, schema, ctx=CONTEXT)
    for number in range(FRAGMENTS):
        cells = np.arange(number * FRAGMENT_CELLS, (number + 1) * FRAGMENT_CELLS)
        with tiledb.open(path, "w", ctx=CONTEXT, timestamp=number + 1) as array:
            array[cells if kind == "sparse" else slice(cells[0], cells[-1] + 1)] = cells * 0.5


@case
def fragments_open(path):
    def work():
        # Use a new context each time, because the library caches the footers of opened arrays.
        with tiledb.open(path, ctx=tiledb.Ctx(CONTEXT.config())) as array:
            array.nonempty_domain()

    median(work)


@case
def fragments_consolidate(source, path):
    clear = lambda: shutil.rmtree(path, ignore_errors=True)
    median(
        lambda: tiledb.consolidate(path, ctx=tiledb.Ctx(CONTEXT.config())),
        lambda: (clear(), shutil.copytree(source, path)),
        clear,
    )
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)


@case
def check_fragments(path):
    """Checks that a consolidated copy holds the values that were written."""
    with tiledb.open(path, ctx=CONTEXT) as array:
        values = array[:]["v"] if array.schema.sparse else array[:]
        values = values if isinstance(values, np.ndarray) else values["v"]
    expected = np.arange(FRAGMENTS * FRAGMENT_CELLS) * 0.5
    assert np.array_equal(values, expected), "the consolidated array holds something else"
    print(len(tiledb.array_fragments(path)))


if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
