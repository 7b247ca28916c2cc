"""zarr-vectors' side of the benchmarks: `zvf.py CASE ARGUMENTS …` prints the median seconds of a case and its result, or creates files."""

import pathlib
import shutil
import statistics
import sys
import time
import warnings

import numpy as np
from peers import clear

warnings.simplefilter("ignore")
SIDE, CHUNK, BIN, RUNS = 1000.0, 125.0, 31.25, 3
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def median(work, prepare=lambda: None, runs=RUNS):
    """Runs the work once to warm up, then several times. Prints the median and the returned value."""
    seconds, found = [], None
    for _ in range(runs + 1):
        prepare()
        begin = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - begin)
    print(statistics.median(seconds[1:]), found)


@case
def make_inputs(folder):
    """Writes the input of all contenders: points with an attribute and scattered ids, streamlines, boxes, fragment blobs."""
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    rng = np.random.default_rng(11)
    n = 2_000_000
    points = rng.uniform(0, SIDE, (n, 3)).astype("f4")
    np.save(part / "points.npy", points)
    np.save(part / "values.npy", (points.sum(1) / 3).astype("f4"))
    np.save(part / "ids.npy", rng.integers(0, 20_000, n))
    low = rng.uniform(0, SIDE * 0.95, (100, 3))
    np.save(part / "boxes.npy", np.stack([low, low + SIDE * 0.05], 1))
    lengths = rng.integers(40, 120, 20_000)
    steps = rng.normal(0, 1, (lengths.sum(), 3)) + np.repeat(rng.normal(0, 2, (len(lengths), 3)), lengths, 0)
    lines, at = [], 0
    for length in lengths:
        line = rng.uniform(0, SIDE, 3) + np.cumsum(steps[at : at + length], 0)
        lines.append(np.clip(line, 0, SIDE).astype("f4"))
        at += length
    np.save(part / "lines.npy", np.concatenate(lines))
    np.save(part / "lengths.npy", lengths)
    from zarr_vectors.encoding.fragments import encode_fragments

    blobs = []
    for _ in range(10_000):
        fragments = []
        for start in range(0, 256 * 16, 16):
            count = int(rng.integers(0, 16))
            if rng.random() < 0.1:
                fragments.append(np.sort(rng.choice(4096, count, replace=False)).astype("i8"))
            else:
                fragments.append((start, count))
        blobs.append(encode_fragments(fragments))
    np.save(part / "blobs.npy", np.frombuffer(b"".join(blobs), "u1"))
    np.save(part / "blob_lengths.npy", np.array([len(blob) for blob in blobs]))
    part.rename(folder)


def load(folder, *names):
    return [np.load(pathlib.Path(folder) / f"{name}.npy") for name in names]


def write(folder, path, compressor=None, ids=False, bins=True):
    from zarr_vectors.types.points import write_points

    points, values = load(folder, "points", "values")
    options = {"object_ids": load(folder, "ids")[0]} if ids else {}
    if bins:
        options["bin_shape"] = (BIN,) * 3
    if compressor:
        options["compressor"] = compressor
    write_points(str(path), points, chunk_shape=(CHUNK,) * 3, vertex_attributes={"v": values}, bounds=([0.0] * 3, [SIDE] * 3), **options)


@case
def make_points_zstd(folder, path):
    write(folder, path)


@case
def make_points_raw(folder, path):
    write(folder, path, compressor="none")


@case
def make_points_ids(folder, path):
    write(folder, path, ids=True, bins=False)


@case
def make_lines(folder, path):
    from zarr_vectors.types.polylines import write_polylines

    lines, lengths = load(folder, "lines", "lengths")
    write_polylines(str(path), np.split(lines, np.cumsum(lengths)[:-1]), chunk_shape=(CHUNK,) * 3, bounds=([0.0] * 3, [SIDE] * 3))


@case
def boxes(folder, path):
    from zarr_vectors.types.points import read_points

    (wanted,) = load(folder, "boxes")
    median(lambda: sum(len(read_points(str(path), bbox=(low, high))["positions"]) for low, high in wanted))


@case
def points_object(folder, path):
    from zarr_vectors.types.points import read_points

    median(lambda: sum(len(read_points(str(path), object_ids=[i])["positions"]) for i in range(0, 20_000, 1000)))


@case
def lines_object(folder, path):
    from zarr_vectors.types.polylines import read_polylines

    median(lambda: sum(read_polylines(str(path), object_ids=[i])["vertex_count"] for i in range(0, 20_000, 1000)))


@case
def lines_boxes(folder, path):
    """Queries ten boxes. The library reads the whole store for each and returns every line of a touched chunk, so the exact test is added here."""
    from zarr_vectors.types.polylines import read_polylines

    (wanted,) = load(folder, "boxes")

    def exact():
        found = 0
        for low, high in wanted[:10]:
            for line in read_polylines(str(path), bbox=(low, high))["polylines"]:
                line = np.concatenate(line)
                found += int(((line >= low) & (line <= high)).all(1).sum())
        return found

    median(exact, runs=1)


@case
def write_points(folder, path):
    median(lambda: write(folder, path), lambda: clear(path))


@case
def write_points_ids(folder, path):
    median(lambda: write(folder, path, ids=True, bins=False), lambda: clear(path), runs=1)


@case
def pyramid(folder, path):
    """Adds two coarser levels to a copy of an existing store. The copying is not timed."""
    from zarr_vectors.multiresolution.coarsen import build_pyramid

    copy = pathlib.Path(str(path) + ".copy")

    def prepare():
        clear(copy)
        shutil.copytree(path, copy)

    def build():
        return build_pyramid(str(copy), factors=[(2.0, 1.0), (2.0, 1.0)], cross_level_storage="none")["levels_created"]

    median(build, prepare, runs=1)


@case
def fragments(folder, path):
    """Decodes the indexes, and checks what the format guarantees: counts, order of offsets, no negative or missing rows."""
    from zarr_vectors.encoding.fragments import decode_fragments

    blobs, lengths = load(folder, "blobs", "blob_lengths")
    data, ends = blobs.tobytes(), np.cumsum(lengths)
    parts = [data[end - length : end] for end, length in zip(ends, lengths)]

    def check():
        total = 0
        for part in parts:
            index = decode_fragments(part)
            # Use the arrays behind the index: querying it fragment by fragment takes twenty times as long.
            ranges, offsets, rows = index._range_table, index._csr_offsets, index._csr_indices
            bits = np.unpackbits(index._bitmap, bitorder="little")[: index.num_fragments]
            assert int(bits.sum()) == len(ranges)
            assert (ranges >= 0).all() and (ranges.sum(1) <= 4096).all()
            assert offsets[0] == 0 and (np.diff(offsets.astype("i8")) >= 0).all()
            assert (rows >= 0).all() and (rows < 4096).all()
            total += int(ranges[:, 1].sum()) + len(rows)
        return total

    median(check)


if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
