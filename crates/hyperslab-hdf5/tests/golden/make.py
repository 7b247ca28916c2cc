"""Creates the golden files beside this script, and describes what h5py reads from each.

Run again only to add cases: what is there is never rewritten by a newer library without a reason.
"""

import json
import pathlib
import sys

import h5py
import hdf5plugin
import netCDF4
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "peers"))
from expect import expect  # noqa: E402

assert h5py.__version__ == "3.16.0", h5py.__version__
assert h5py.version.hdf5_version == "2.0.0", h5py.version.hdf5_version
assert hdf5plugin.version == "7.1.0", hdf5plugin.version
rng = np.random.default_rng(11)


def fill(file):
    file.attrs["title"] = "golden"
    file.attrs["numbers"] = np.arange(5, dtype=">i4")
    for dtype in ("i1", ">i2", "<u4", "<f2", ">f4", "<f8", "<c8", "?"):
        name = dtype.strip("<>").replace("?", "bool")
        file.create_dataset(f"types/{name}", data=(rng.integers(0, 2, (3, 4)) * 5 % 7).astype(dtype))
    data = np.cumsum(rng.integers(-2, 3, (13, 11)), axis=0).astype("<i4")
    for name, extra in {
        "gzip": dict(compression="gzip", shuffle=True), "fletcher": dict(fletcher32=True), "lzf": dict(compression="lzf"),
        "szip": dict(compression="szip", compression_opts=("nn", 8)), "scaleoffset": dict(scaleoffset=0),
        "zstd": dict(**hdf5plugin.Zstd()), "lz4": dict(**hdf5plugin.LZ4()), "blosc": dict(**hdf5plugin.Blosc()),
        "blosc2": dict(**hdf5plugin.Blosc2()), "bitshuffle": dict(**hdf5plugin.Bitshuffle()), "bzip2": dict(**hdf5plugin.BZip2()),
    }.items():
        file.create_dataset(f"filters/{name}", data=data, chunks=(5, 4), **extra)
    for name, most in {"fixed": (13, 11), "grow0": (None, 11), "grow1": (20, None), "both": (None, None)}.items():
        for extra in ({}, {"compression": "gzip"}):
            dset = file.create_dataset(f"grids/{name}{len(extra)}", shape=(13, 11), maxshape=most, chunks=(2, 3), dtype="<i4", fillvalue=7, **extra)
            dset[3:, 2:] = data[3:, 2:]
    file.create_dataset("grids/single", data=data, chunks=(13, 11))
    long = file.create_dataset("grids/long", shape=(1500,), maxshape=(None,), chunks=(1,), dtype="i1")
    long[:150] = np.arange(150) % 100
    long[1100] = 5
    file["text/fixed"] = np.array([b"one", b"", b"three"])
    file.create_dataset("text/variable", data=["one", "", "dr\u00e9i"], dtype=h5py.string_dtype())
    ragged = file.create_dataset("text/ragged", shape=(3,), dtype=h5py.vlen_dtype("<i2"))
    ragged[1] = np.arange(4)
    row = np.dtype([("x", "<f8"), ("n", ">i4"), ("name", "S5"), ("v", "<i2", (2,)), ("t", h5py.string_dtype())])
    rows = np.zeros(3, row)
    rows["x"], rows["t"] = [1.5, -2, 0], ["a", "", "ccc"]
    file["rows"] = rows
    file["enum"] = np.array([0, 1, 1], dtype=h5py.enum_dtype({"A": 0, "B": 1}))
    file["empty"] = h5py.Empty("f4")
    file["scalar"] = 2.5
    file["refs"] = np.array([file["scalar"].ref, file["types"].ref], dtype=h5py.ref_dtype)
    file["soft"] = h5py.SoftLink("/types/f8")
    file["dangling"] = h5py.SoftLink("/nowhere")
    file["types/up"] = file["/"]
    for i in range(20):
        file["scalar"].attrs[f"attribute {i}"] = i
        file[f"many/entry {i}"] = i
    file["t"] = np.arange(4.0)
    file["t"].make_scale("time")
    file["v"] = np.arange(8).reshape(4, 2)
    file["v"].dims[0].attach_scale(file["t"])
    layout = h5py.VirtualLayout((3, 11), "<i4")
    layout[0:3:2, :] = h5py.VirtualSource(".", "filters/gzip", shape=(13, 11))[2:4, :]
    file.create_virtual_dataset("virtual", layout, fillvalue=-1)


for name, bounds in {"earliest": "earliest", "v110": ("v110", "v110"), "latest": "latest"}.items():
    with h5py.File(HERE / f"{name}.h5", "w", libver=bounds, userblock_size=512 if name == "v110" else 0) as made:
        fill(made)
with netCDF4.Dataset(HERE / "netcdf.h5", "w") as made:
    made.createDimension("time", None)
    made.createDimension("x", 4)
    made.createDimension("bare", 2)
    time = made.createVariable("time", "f8", ("time",), chunksizes=(4,))
    time.units = "days since 2000-01-01"
    time[:] = np.arange(5.0)
    made.createVariable("t", "f4", ("time", "x", "bare"), zlib=True, shuffle=True, fill_value=-9.0, chunksizes=(2, 4, 2))[:3] = rng.normal(size=(3, 4, 2))
    made.createGroup("inner").createVariable("v", "i2", ("time", "x"), chunksizes=(2, 2))[:] = np.arange(20).reshape(5, 4)
for made in sorted(HERE.glob("*.h5")):
    made.with_suffix(".json").write_text(json.dumps(expect(made), separators=(",", ":")))
