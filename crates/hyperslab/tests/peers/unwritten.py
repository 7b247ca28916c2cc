"""Writes arrays with far more cells than were written, and exact answers about their values.

The arrays are written by zarr-python and h5py. expected.json has one case for each, with answers computed by Python's integers and fractions."""

import json
import sys
from fractions import Fraction
from math import sqrt
from pathlib import Path

import h5py
import numpy as np
import zarr

folder = Path(sys.argv[1])
cases = []


def blocks(shape, chunk, count):
    """Regions of whole chunks at the start, in the middle and at the end, with their values."""
    extents = [(s + c - 1) // c for s, c in zip(shape, chunk)]
    found = []
    for number, place in enumerate([[0] * len(shape), [e // 2 for e in extents], [e - 1 for e in extents]][:count]):
        region = [(p * c, min((p + 1) * c, s)) for p, c, s in zip(place, chunk, shape)]
        sizes = [stop - start for start, stop in region]
        values = (np.arange(int(np.prod(sizes)), dtype=np.int64) % 50 + number * 7 - 20).reshape(sizes)
        found.append((region, values))
    return found


def expect(name, node, shape, written, fill, axis=None):
    """Adds the answers over all cells, and the sums of each row if the first axis is short."""
    total = 1
    for extent in shape:
        total *= extent
    values = [int(v) for _, block in written for v in block.ravel()]
    rest = total - len(values)
    everything = values + [fill]
    mean = Fraction(sum(values) + rest * fill, total)
    var = (sum((v - mean) ** 2 for v in values) + rest * (fill - mean) ** 2) / total

    def first(best):
        places = []
        if best == fill:
            # The first cell outside all blocks: the blocks never cover the start of a whole row of chunks.
            at = [0] * len(shape)
            inside = [region for region, _ in written if all(start == 0 for start, _ in region)]
            at[-1] = inside[0][-1][1] if inside else 0
            places.append(tuple(at))
        for region, block in written:
            hits = np.argwhere(block == best)
            if len(hits):
                places.append(tuple(int(h) + start for h, (start, _) in zip(hits[0], region)))
        number = 0
        for at, extent in zip(min(places), shape):
            number = number * extent + at
        return number

    counts = {v: values.count(v) for v in set(values)}
    counts[fill] = counts.get(fill, 0) + rest
    def ranked(rank):
        for v in sorted(counts):
            if rank < counts[v]:
                return v
            rank -= counts[v]
    case = {
        "file": name, "node": node, "cells": total, "fill": fill,
        "answers": {
            "count": total, "sum": sum(values) + rest * fill, "mean": float(mean),
            "min": min(everything), "max": max(everything), "var": float(var), "std": sqrt(var),
            "norm_l1": sum(map(abs, values)) + rest * abs(fill),
            "norm_l2": sqrt(sum(v * v for v in values) + rest * fill * fill),
            "arg_min": first(min(everything)), "arg_max": first(max(everything)),
            "median": ranked((total - 1) // 2), "all_finite": 1, "nan_count": 0,
            "above": sum(n for v, n in counts.items() if v > 3),
        },
    }
    # The positions that unwritten_check.py reads, and the expected values.
    case["places"] = [[start for start, _ in region] for region, _ in written] or [[0] * len(shape)]
    part = tuple(slice(0, 2) for _ in shape)
    size = 1
    for extent in shape:
        size *= min(extent, 2)
    case["parts"] = [[int(v) for v in block[part].ravel()] for _, block in written] or [[fill] * size]
    if axis is not None:
        sums = []
        for row in range(shape[0]):
            own = [int(v) for region, block in written if region[0][0] <= row < region[0][1]
                   for v in block[row - region[0][0]].ravel()]
            sums.append(sum(own) + (total // shape[0] - len(own)) * fill)
        case["rows"] = sums
    cases.append(case)


SHAPES = [((2**62,), (2**10,), None), ((3, 2**60), (2, 2**9), 0), ((2**31, 2**31), (16, 32), None)]
for number, (shape, chunk, axis) in enumerate(SHAPES):
    for stored in (0, 3):
        for dtype, fill in (("i4", 0), ("i8", -3), ("f8", 2), ("f4", 0), ("u1", 5)):
            written = blocks(shape, chunk, stored)
            if dtype == "u1":
                written = [(region, block % 90) for region, block in written]
            name = f"{number}_{stored}_{dtype}.zarr"
            array = zarr.create_array(
                folder / name, shape=shape, chunks=chunk, dtype=dtype, fill_value=fill, config={"write_empty_chunks": True}
            )
            for region, block in written:
                array[tuple(slice(*part) for part in region)] = block.astype(dtype)
            expect(name, "/", shape, written, fill, axis)

    with h5py.File(folder / f"{number}.h5", "w") as file:
        for stored in (0, 3):
            for dtype, fill in (("i4", 0), ("f8", 2)):
                written = blocks(shape, chunk, stored)
                node = f"chunked_{stored}_{dtype}"
                data = file.create_dataset(node, shape, dtype, chunks=chunk, fillvalue=fill)
                for region, block in written:
                    data[tuple(slice(*part) for part in region)] = block
                expect(f"{number}.h5", "/" + node, shape, written, fill, axis)
        # Never allocated, so the contiguous layout has no address.
        file.create_dataset("contiguous", tuple(s // 4 if i == len(shape) - 1 else s for i, s in enumerate(shape)), "i4", fillvalue=7)
        expect(f"{number}.h5", "/contiguous", tuple(s // 4 if i == len(shape) - 1 else s for i, s in enumerate(shape)), [], 7, axis)

(folder / "expected.json").write_text(json.dumps(cases))
