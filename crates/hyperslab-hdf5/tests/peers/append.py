"""Checks files that we extended with h5py, and creates files for us to extend.

make FOLDER     files of libhdf5's own, each with a dataset `/frames` of 10 frames and something else
check FOLDER    every file has `/frames`, whose frame i is [100 i, 100 i + 1, …]; prints how many frames each has
extend FOLDER   resizes and writes more frames, adds groups, attributes and members, deletes some
index FILE N    a dataset like `/x` of FILE, in `/y` of a second file, N one-element chunks; prints both headers
read FILE N     `/x` has N elements, element i is i mod 251
follow FILE N   reads a file that is being written until it has N frames
"""

import json
import pathlib
import sys
import time

import h5py
import hdf5plugin  # noqa: F401
import numpy as np

CELLS = 16


def frames(first, last):
    return np.arange(first, last, dtype="u8")[:, None] * 100 + np.arange(CELLS, dtype="u8")


def make(folder):
    for libver in ("earliest", "v108", "v110", "latest"):
        for name, options in {
            "plain": {"chunks": (1, CELLS), "maxshape": (None, CELLS)},
            "thick": {"chunks": (4, CELLS // 2), "maxshape": (None, CELLS)},
            "gzip": {"chunks": (3, CELLS), "maxshape": (None, CELLS), "compression": "gzip", "shuffle": True},
            "two": {"chunks": (2, 5), "maxshape": (None, None), "fletcher32": True},
            "limit": {"chunks": (1, CELLS), "maxshape": (4000, CELLS)},
            "big": {"chunks": (2, CELLS), "maxshape": (None, CELLS), "dtype": ">u8"},
        }.items():
            with h5py.File(folder / f"{libver}-{name}.h5", "w", libver=libver) as file:
                dtype = options.pop("dtype", "u8")
                file["other"] = np.arange(1000)
                data = file.create_dataset("frames", (10, CELLS), dtype=dtype, **options)
                data[:] = frames(0, 10)
                data.attrs["units"] = "counts"
                data.attrs["level"] = 1
                file.attrs["title"] = "frames"
            options["dtype"] = dtype


def check(folder):
    found = {}
    for path in sorted(folder.glob("*.h5")):
        with h5py.File(path, "r") as file:
            data = file["frames"][()]
            assert (data == frames(0, len(data))).all(), path
            found[path.name] = len(data)
            if "other" in file:
                assert (file["other"][()] == np.arange(1000)).all()
                attributes = file["frames"].attrs
                assert attributes["units"] == "counts, and many of them"
                assert attributes["level"] == 2.5
                assert list(file.attrs["title"]) == [1, 2, 3]
                assert attributes.get("a3", "three") == "three"
                assert attributes.get("a4", 4) == 4
                ours = [name for name in file if name.startswith("of us")]
                assert len(ours) == len(file["ours"]) > 0, list(file)
                assert all(file[name].attrs["who"] == "we" for name in ours)
                assert all(file["frames"].attrs[name] == "text" for name in ours)
                file.visit(lambda name: None)
    print(json.dumps(found))


def extend(folder):
    for path in sorted(folder.glob("*.h5")):
        with h5py.File(path, "r+") as file:
            data = file["frames"]
            count = len(data)
            data.resize(count + 500, axis=0)
            data[count:] = frames(count, count + 500)
            for index in range(20):
                data.attrs[f"a{index}"] = index
                file.create_group(f"g{index}")
            del file["g3"]
            file["more"] = np.arange(5)
            data.resize(count + 300, axis=0)


def header(path):
    """The fields of the extensible array header that must be equal."""
    content = path.read_bytes()
    start = content.index(b"EAHD")
    numbers = np.frombuffer(content[start + 12 : start + 60], "<u8").tolist()
    return [content[start + 4 : start + 12].hex(), *numbers]


def index(path, count):
    """Writes chunks in the same order with libhdf5, and compares headers and sizes."""
    other = path.with_suffix(".theirs.h5")
    step = 1 if count > 0 else 997
    with h5py.File(path, "r") as ours, h5py.File(other, "w", libver="v110") as theirs:
        data = ours["x"]
        own = theirs.create_dataset("x", data.shape, data.dtype, chunks=data.chunks, maxshape=data.maxshape)
        for at in range(0, data.shape[0], step):
            own.id.write_direct_chunk((at,), b"\x01")
    print(json.dumps({
        "ours": header(path), "theirs": header(other),
        "sizes": [path.stat().st_size, other.stat().st_size],
    }))


def read(path, count):
    with h5py.File(path, "r") as file:
        data = file["x"]
        assert data.shape == (count,), data.shape
        expected = (np.arange(count) % 251).astype("u1")
        for start in range(0, count, 1 << 16):
            part = data[start : start + (1 << 16)]
            assert (part == expected[start : start + (1 << 16)]).all(), start


def follow(path, count):
    deadline = time.monotonic() + 120
    with h5py.File(path, "r", libver="latest", swmr=True) as file:
        data = file["frames"]
        seen, looks = [], 0
        while True:
            data.refresh()
            have = len(data)
            looks += 1
            if have and (not seen or have > seen[-1]):
                assert (data[-1] == frames(have - 1, have)[0]).all(), have
                assert (data[have // 2] == frames(have // 2, have // 2 + 1)[0]).all(), have
                seen.append(have)
            # The file grows until it is killed, so growth is visible even if this process starts late.
            if have >= count and len(seen) > 1:
                break
            assert time.monotonic() < deadline, f"{have} frames"
        assert (data[()] == frames(0, len(data))).all()


what, where, *rest = sys.argv[1:]
globals()[what](pathlib.Path(where), *(int(argument) for argument in rest))
