"""Creates Blosc2 frames of several chunks beside this file, which HDF5 does not write. Needs blosc2 4.14."""

import pathlib

import blosc2
import numpy as np

assert blosc2.__version__.startswith("4.14"), blosc2.__version__

HERE = pathlib.Path(__file__).parent


def save(name, frame, values):
    (HERE / f"frame.{name}.b2").write_bytes(frame)
    (HERE / f"frame.{name}.raw").write_bytes(np.ascontiguousarray(values).tobytes())


def schunk(name, values, chunk, **cparams):
    cparams = blosc2.CParams(typesize=values.itemsize, nthreads=1, **cparams)
    frame = blosc2.SChunk(chunksize=chunk, data=values, cparams=cparams, storage=blosc2.Storage(contiguous=True))
    save(name, frame.to_cframe(), np.frombuffer(frame[:], values.dtype))


def array(name, values, chunks, blocks, **cparams):
    cparams = blosc2.CParams(nthreads=1, **cparams)
    save(name, blosc2.asarray(values, chunks=chunks, blocks=blocks, cparams=cparams).to_cframe(), values)


def main():
    f = blosc2.Filter
    n = np.arange(5003)
    stair = (n // 3 * 5).astype("<u4")
    delta = [f.DELTA, f.SHUFFLE]
    schunk("chunks", stair, 4096)
    schunk("delta", stair, 12000, filters=delta, filters_meta=[0, 0], blocksize=2048)
    schunk("delta12", np.arange(6000, dtype="<u2").view("V12"), 6000, filters=delta, filters_meta=[0, 0], blocksize=1200)
    schunk("bits", stair, 10000, filters=[f.BITSHUFFLE], filters_meta=[0], codec=blosc2.Codec.LZ4, blocksize=1000)
    schunk("trunc", (n / 7).astype("<f4"), 8192, filters=[f.TRUNC_PREC, f.SHUFFLE], filters_meta=[23, 0])
    schunk("group", stair, 8192, filters=[f.SHUFFLE], filters_meta=[8])
    schunk("nosplit", stair, 8192, splitmode=blosc2.SplitMode.NEVER_SPLIT, codec=blosc2.Codec.LZ4HC)
    schunk("split", stair, 8192, splitmode=blosc2.SplitMode.ALWAYS_SPLIT, codec=blosc2.Codec.ZLIB)
    schunk("stored", np.random.default_rng(1).integers(0, 256, 3000, dtype="u1"), 1024, clevel=0)
    for name, value in (("zeros", 0.0), ("nan", np.nan), ("value", 2.5)):
        made = {"zeros": blosc2.zeros, "nan": blosc2.full, "value": blosc2.full}[name]
        arguments = () if name == "zeros" else (value,)
        frame = made((70, 33), *arguments, dtype="<f8", chunks=(32, 16), blocks=(8, 8))
        save(name, frame.to_cframe(), frame[:])
    nans = blosc2.nans((70, 33), dtype="<f4", chunks=(32, 16), blocks=(8, 8))
    save("nans", nans.to_cframe(), nans[:])
    cube = (np.arange(17 * 23 * 31) // 3).astype("<i2").reshape(17, 23, 31)
    array("cube", cube, (8, 10, 31), (3, 4, 7))
    array("plane", cube[0], (23, 31), (23, 8), codec=blosc2.Codec.LZ4)
    array("line", cube[0, 0], (10,), (4,))
    array("mixed", np.where(np.arange(600).reshape(20, 30) < 300, 0, cube[0, :20, :30]), (5, 10), (5, 4))


main()
