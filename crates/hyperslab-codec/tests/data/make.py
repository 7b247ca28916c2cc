"""Makes the reference bytes next to this file: stored chunks as the formats' own implementations write them.

Needs h5py 3.16, hdf5plugin 7.1, numcodecs 0.16 and tiledb 0.36. Names say codec and case; `*.raw` is what the
stored bytes must decode to, where a test does not compute that itself.
"""

import gzip
import pathlib

import h5py
import hdf5plugin  # noqa: F401  (registers its filters)
import numcodecs
import numpy as np

assert h5py.version.hdf5_version == "2.0.0", h5py.version.hdf5_version
assert numcodecs.__version__.startswith("0.16"), numcodecs.__version__

HERE = pathlib.Path(__file__).parent


def save(name, data):
    (HERE / name).write_bytes(bytes(data))


def hdf5_chunk(data, **filters):
    """The bytes that libhdf5 stores for one chunk of `data`, and its filter's client data."""
    with h5py.File("memory", driver="core", backing_store=False, mode="w") as file:
        node = file.create_dataset("a", data=data, chunks=data.shape, **filters)
        file.flush()
        mask, stored = node.id.read_direct_chunk((0,) * data.ndim)
        assert mask == 0, mask
        return stored, node.id.get_create_plist().get_filter(0)[2]


def steps():
    """300 integers in runs of seven."""
    return np.arange(300, dtype="<i4") // 7 * 3


def general():
    raw = steps().tobytes()
    save("steps.zlib", numcodecs.Zlib(6).encode(raw))
    save("steps.gz", gzip.compress(raw[:500], 6, mtime=0) + gzip.compress(raw[500:], 9, mtime=0))
    save("steps.bz2", numcodecs.BZ2(9).encode(raw))
    save("steps.lz4", numcodecs.LZ4().encode(raw)[4:])
    save("steps.lzf", hdf5_chunk(steps(), compression="lzf")[0])


def ramp(n, dtype):
    """n numbers that grow and wobble."""
    i = np.arange(n, dtype="<i8")
    return (i * 37 + (i * i) % 101).astype(dtype)


def blocks():
    for size, n in ((1, 1003), (2, 2050), (4, 5003), (8, 1029)):
        data = ramp(n, f"<u{size}")
        for name, options in (
            ("none", dict(cname="none")),
            ("lz4", dict(cname="lz4")),
            ("zstd", dict(cname="zstd", clevel=3)),
        ):
            if size in (1, 8) and name != "lz4":
                continue
            stored, _ = hdf5_chunk(data, **hdf5plugin.Bitshuffle(**options))
            save(f"ramp{size}.bshuf.{name}", stored)
    stored, _ = hdf5_chunk(ramp(500, "<u4"), **hdf5plugin.Bitshuffle(nelems=64, cname="lz4"))
    save("ramp4.bshuf.lz4.64", stored)
    save("steps.hdf5lz4", hdf5_chunk(steps(), **hdf5plugin.LZ4(nbytes=512))[0])
    noise = np.random.default_rng(1).integers(0, 256, 700, dtype="u1")
    save("noise.raw", noise)
    save("noise.hdf5lz4", hdf5_chunk(noise, **hdf5plugin.LZ4(nbytes=256))[0])


def stair(n, dtype):
    """n numbers, each three times."""
    return (np.arange(n, dtype="<i8") // 3 * 5).astype(dtype)


def blosc1():
    for codec in numcodecs.blosc.list_compressors():
        for shuffle in (0, 1, 2):
            frame = numcodecs.Blosc(codec, 5, shuffle, blocksize=4096).encode(stair(6001, "<u4"))
            save(f"stair4.blosc.{codec}.{shuffle}", frame)
    save("ramp4.blosc.blosclz.1", numcodecs.Blosc("blosclz", 9, 1).encode(ramp(1503, "<u4")))
    save("steps.blosc.blosclz.0", numcodecs.Blosc("blosclz", 9, 0).encode(steps().repeat(50)))
    save("ramp8.blosc.lz4.1", numcodecs.Blosc("lz4", 5, 1, blocksize=512).encode(ramp(1029, "<u8")))
    save("stair2.blosc.zstd.2", numcodecs.Blosc("zstd", 5, 2, blocksize=1000).encode(stair(2051, "<u2")))
    save("stair1.blosc.lz4.2", numcodecs.Blosc("lz4", 5, 2).encode(stair(1008, "<u1")))
    save("noise.blosc", numcodecs.Blosc("lz4", 5, 1).encode(np.fromfile(HERE / "noise.raw", "u1")))


def blosc2():
    for codec in ("blosclz", "lz4", "zlib", "zstd"):
        for filters in (0, 1, 2):
            stored, _ = hdf5_chunk(stair(6001, "<u4"), **hdf5plugin.Blosc2(codec, 5, filters))
            save(f"stair4.blosc2.{codec}.{filters}", stored)
    delta = hdf5plugin.Blosc2("zstd", 5, hdf5plugin.Blosc2.DELTA)
    save("ramp4.blosc2.delta", hdf5_chunk(ramp(5003, "<u4"), **delta)[0])
    cube = stair(12 * 35 * 50, "<u2").reshape(12, 35, 50)
    save("cube2.blosc2.lz4", hdf5_chunk(cube, **hdf5plugin.Blosc2("lz4", 5, 1))[0])
    save("zeros.blosc2", hdf5_chunk(np.zeros(3000, "<f4"), **hdf5plugin.Blosc2("lz4", 5, 1))[0])
    save("ones.blosc2", hdf5_chunk(np.ones((30, 100), "<f4"), **hdf5plugin.Blosc2("lz4", 5, 1))[0])
    save("noise.blosc2", hdf5_chunk(np.fromfile(HERE / "noise.raw", "u1"), **hdf5plugin.Blosc2("lz4", 5, 0))[0])


if __name__ == "__main__":
    general()
    blocks()
    blosc1()
    blosc2()
