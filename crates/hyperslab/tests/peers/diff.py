"""Writes pairs of stores that differ in one respect with the real libraries: FOLDER/CODE~NAME.a.EXT and .b.EXT.

    diff.py FOLDER           writes the pairs, prints their names
"""
import json, sys

import h5py
import netCDF4
import numpy as np
import zarr

folder = sys.argv[1]
names = []


def hdf5(code, name, a, b):
    for side, write in (("a", a), ("b", b)):
        with h5py.File(f"{folder}/{code}~{name}.{side}.h5", "w") as f:
            f["x"] = np.arange(6)
            write(f)
    names.append((code, name, "h5"))


def dataset(**options):
    return lambda f: f.create_dataset("d", **options)


colour = lambda **members: h5py.enum_dtype(members, basetype="i1")
zeros = {"data": np.zeros(4, "i4"), "chunks": (2,)}
hdf5("same", "order", lambda f: [f.create_group("a"), f.create_group("b")], lambda f: [f.create_group("b"), f.create_group("a")])
hdf5("same", "hard", lambda f: f.__setitem__("y", f["x"]), lambda f: f.__setitem__("y", f["x"]))
hdf5("same", "cycle", lambda f: f.__setitem__("g/up", f["/"]), lambda f: f.__setitem__("g/up", f["/"]))
hdf5("same", "chunks", dataset(**zeros), dataset(data=np.zeros(4, "i4"), chunks=(4,), compression="gzip"))
hdf5("attribute", "value", lambda f: f["x"].attrs.update(u=1), lambda f: f["x"].attrs.update(u=2))
hdf5("attribute", "missing", lambda f: f.attrs.update(u=1), lambda f: None)
hdf5("node", "more", lambda f: f.create_group("g"), lambda f: None)
hdf5("kind", "group", lambda f: f.create_group("g"), lambda f: f.__setitem__("g", 1))
hdf5("type", "wide", dataset(data=np.zeros(4, "i4")), dataset(data=np.zeros(4, "i8")))
hdf5("type", "enum", dataset(shape=4, dtype=colour(RED=0)), dataset(shape=4, dtype="i1"))
hdf5("shape", "long", dataset(data=np.zeros(4)), dataset(data=np.zeros(5)))
hdf5("values", "one", dataset(data=np.zeros(4)), dataset(data=np.ones(4)))
hdf5("fill", "value", dataset(**zeros, fillvalue=1), dataset(**zeros, fillvalue=2))
hdf5("growth", "unlimited", dataset(**zeros, maxshape=(None,)), dataset(**zeros))
hdf5("growth", "limit", dataset(**zeros, maxshape=(8,)), dataset(**zeros, maxshape=(9,)))
hdf5("enumeration", "names", dataset(shape=4, dtype=colour(RED=0, BLUE=1)), dataset(shape=4, dtype=colour(RED=0, GREEN=1)))
hdf5("enumeration", "member", dataset(shape=4, dtype=np.dtype([("c", colour(RED=0))])), dataset(shape=4, dtype=np.dtype([("c", colour(BLUE=0))])))
hdf5("null", "array", lambda f: f.__setitem__("n", h5py.Empty("f4")), lambda f: f.create_dataset("n", shape=(), dtype="f4"))
hdf5("null", "attribute", lambda f: f.attrs.update(n=h5py.Empty("f4")), lambda f: f.attrs.create("n", np.zeros(0, "f4")))
hdf5("link", "soft", lambda f: f.__setitem__("s", h5py.SoftLink("/x")), lambda f: f.__setitem__("s", h5py.SoftLink("/y")))
hdf5("link", "soft_or_hard", lambda f: f.__setitem__("z", h5py.SoftLink("/x")), lambda f: f.__setitem__("z", f["x"]))
hdf5("link", "copy", lambda f: f.__setitem__("y", f["x"]), lambda f: f.__setitem__("y", np.arange(6)))
hdf5("link", "external", lambda f: f.__setitem__("e", h5py.ExternalLink("o.h5", "/x")), lambda f: f.__setitem__("e", h5py.ExternalLink("p.h5", "/x")))
hdf5("dimensions", "label", lambda f: f["x"].dims[0].__setattr__("label", "a"), lambda f: f["x"].dims[0].__setattr__("label", "b"))
hdf5("dimensions", "none", lambda f: f["x"].dims[0].__setattr__("label", "a"), lambda f: None)


def coordinates(which):
    def write(f):
        for name in ("p", "q"):
            f[name] = np.arange(6)
            f[name].make_scale("s")
        f["d"] = np.zeros(6)
        f["d"].dims[0].label = "d"
        f["d"].dims[0].attach_scale(f[which])
    return write


hdf5("coordinates", "scale", coordinates("p"), coordinates("q"))


def array(side, name, fill, version, **options):
    zarr.create_array(f"{folder}/{name}.{side}.zarr", data=np.arange(4), chunks=2, fill_value=fill, zarr_format=version, **options)


for version in (2, 3):
    array("a", f"fill~zarr{version}", 1, version)
    array("b", f"fill~zarr{version}", 2, version)
    names.append(("fill", f"zarr{version}", "zarr"))
array("a", "dimensions~zarr3", 0, 3, dimension_names=["a"])
array("b", "dimensions~zarr3", 0, 3, dimension_names=["b"])
names.append(("dimensions", "zarr3", "zarr"))

for kind in ("NETCDF4", "NETCDF3_CLASSIC"):
    for side, length in (("a", None), ("b", 3)):
        with netCDF4.Dataset(f"{folder}/growth~{kind}.{side}.nc", "w", format=kind) as f:
            f.createDimension("t", length)
            f.createVariable("v", "f4", ("t",))[:] = [1, 2, 3]
    names.append(("growth", kind, "nc"))

# Properties that Zarr cannot express.
with h5py.File(f"{folder}/rich.h5", "w") as f:
    f.create_dataset("x", data=np.arange(6), maxshape=(None,), chunks=(2,))
    f["hard"] = f["x"]
    f["soft"] = h5py.SoftLink("/x")
    f["g/inner"] = np.arange(3.0)
print(json.dumps(names))
