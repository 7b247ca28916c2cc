"""Creates files and kerchunk's references to one of them, and reads our references with zarr.

    references.py make FOLDER       writes the sources, and `kerchunk.json` by kerchunk
    references.py check FOLDER      compares every `NAME.json`, read with zarr, with `NAME.npz`
"""

import json
import pathlib
import sys
import zipfile

import fsspec
import h5py
import netCDF4
import numpy as np
import scipy.io
import zarr
from zarr.storage import FsspecStore, ZipStore

command, folder = sys.argv[1], pathlib.Path(sys.argv[2])


def make():
    rng = np.random.default_rng(5)
    smooth = np.cumsum(rng.standard_normal((37, 20)), axis=1)
    with h5py.File(folder / "a.h5", "w") as file:
        file.attrs["title"] = "referred to"
        for name, dtype, options in [
            ("gzip", "<f4", {"compression": "gzip", "shuffle": True}),
            ("fletcher", "<i8", {"fletcher32": True, "compression": "gzip"}),
            ("big", ">f8", {"compression": "gzip"}),
            ("plain", "<i2", {}),
            ("lzf", "<i4", {"compression": "lzf"}),
        ]:
            file.create_dataset(f"g/{name}", data=(smooth * 100).astype(dtype), chunks=(8, 6), **options).attrs["units"] = "K"
        file["contiguous"] = smooth
        layout = h5py.VirtualLayout((40, 20), "f8")
        layout[:37] = h5py.VirtualSource(".", "contiguous", smooth.shape)
        file.create_virtual_dataset("virtual", layout, fillvalue=-1)
        file["scalar"] = np.int32(7)
        masked = file.create_dataset("masked", shape=(8, 6), chunks=(4, 6), dtype="<i4", compression="gzip")
        masked[...] = 3
        masked.id.write_direct_chunk((4, 0), np.full((4, 6), 9, "<i4").tobytes(), filter_mask=1)
    (folder / "inner").mkdir()
    with h5py.File(folder / "inner/v.h5", "w") as file:
        for name, path in (("outside", "../a.h5"), ("missing", "no.h5"), ("damaged", "damaged.h5")):
            layout = h5py.VirtualLayout(smooth.shape, "f8")
            layout[:] = h5py.VirtualSource(path, "contiguous", smooth.shape)
            file.create_virtual_dataset(name, layout, fillvalue=-1)
    (folder / "inner/damaged.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with scipy.io.netcdf_file(folder / "b.nc", "w") as file:
        file.createDimension("y", 37)
        file.createDimension("x", 20)
        file.createVariable("v", "f8", ("y", "x"))[:] = smooth
    with netCDF4.Dataset(folder / "c.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 20)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(37.0)
        file.createVariable("v", "f4", ("time", "x"), zlib=True, chunksizes=(8, 20))[:] = smooth
        file["v"].units = "K"
    with netCDF4.Dataset(folder / "d.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 20)
        for name in ("v", "w"):
            file.createVariable(name, "f4", ("time", "x"))[:] = smooth
    values = {"b": {"v": smooth}, "a": {}, "c": {"v": smooth.astype("f4"), "time": np.arange(37.0)}}
    values["d"] = {"v": smooth.astype("f4"), "w": smooth.astype("f4")}
    with h5py.File(folder / "a.h5") as file:
        file.visititems(lambda name, node: values["a"].update({name: node[()]}) if isinstance(node, h5py.Dataset) else None)
    np.save(folder / "f.npy", np.asfortranarray(smooth))
    values["f"] = {"": smooth}
    for name, method in (("y", zipfile.ZIP_STORED), ("z", zipfile.ZIP_DEFLATED)):
        with ZipStore(folder / f"{name}.zip", mode="w", compression=method) as store:
            group = zarr.open_group(store, zarr_format=2)
            for order in "CF":
                group.create_array(order, shape=smooth.shape, chunks=(8, 20), dtype="f8", order=order, compressors=None)[:] = smooth
        values[name] = {"C": smooth, "F": smooth}
    for name, arrays in values.items():
        np.savez(folder / f"{name}.npz", **{path.replace("/", "~"): value for path, value in arrays.items()})
    from kerchunk.hdf import SingleHdf5ToZarr

    with h5py.File(folder / "k.h5", "w") as file:
        file.create_dataset("g/t", data=smooth.astype("<f4"), chunks=(8, 6), compression="gzip", shuffle=True)
        file.create_dataset("small", data=np.arange(5))
    document = SingleHdf5ToZarr(str(folder / "k.h5"), inline_threshold=100).translate()
    (folder / "kerchunk.json").write_text(json.dumps(document, default=str))


def check():
    for name in ("a", "b", "c", "d", "f", "y", "z"):
        document = json.loads((folder / f"{name}.json").read_text())
        filesystem = fsspec.filesystem("reference", fo=document, asynchronous=True, remote_protocol="file")
        group = zarr.open(FsspecStore(filesystem, read_only=True), mode="r", zarr_format=2)
        expected = np.load(folder / f"{name}.npz")
        for key in expected.files:
            array = group[key.replace("~", "/")] if key else group
            found = array[...] if array.shape else np.asarray(array[()])
            assert found.dtype.newbyteorder("=") == expected[key].dtype.newbyteorder("="), (name, key, found.dtype)
            assert np.array_equal(found, expected[key]), (name, key)
        assert dict(group.attrs) == ({"title": "referred to"} if name == "a" else dict(group.attrs))
        if name == "c":
            # References include neither HDF5's bookkeeping nor dimensions without a variable.
            assert sorted(group) == ["time", "v"], sorted(group)
            assert dict(group["v"].attrs) == {"units": "K", "_ARRAY_DIMENSIONS": ["time", "x"]}, dict(group["v"].attrs)
            assert set(dict(group["time"].attrs)) == {"_ARRAY_DIMENSIONS"}, dict(group["time"].attrs)
        if name == "d":
            # Records that are not contiguous are chunks, as in kerchunk.
            assert group["v"].chunks == (1, 20), group["v"].chunks
            assert all(isinstance(document["refs"][f"v/{record}.0"], list) for record in range(37)), name


make() if command == "make" else check()
