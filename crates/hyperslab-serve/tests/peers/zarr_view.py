"""Creates stores with content that Zarr lacks, and compares their views over HTTP with their conversions."""

import json
import pathlib
import sys
import urllib.request

import numpy as np

#: Added by conversions.
PROVENANCE = "hyperslab_provenance"


def make(folder: pathlib.Path) -> None:
    import h5py
    import netCDF4
    import tiledb
    import zarr

    with netCDF4.Dataset(folder / "climate.nc", "w") as data:
        # A dimension without a variable, one with a coordinate, and a variable named like another dimension.
        for name, size in (("time", None), ("lat", 3), ("station", 2)):
            data.createDimension(name, size)
        lat = data.createVariable("lat", "f4", ("lat",))
        lat.units = "degrees_north"
        lat[:] = [-30, 0, 30]
        values = data.createVariable("t", "i2", ("time", "lat"), fill_value=-9)
        values.setncatts({"units": "K", "scale_factor": 0.5})
        values.set_auto_maskandscale(False)
        values[:] = np.arange(12).reshape(4, 3)
        data.createVariable("heights", "f8", ("station",))[:] = [5, 7]
    with h5py.File(folder / "types.h5", "w") as file:
        member = np.dtype([("id", "i4"), ("name", h5py.string_dtype()), ("at", [("x", "f4"), ("y", ">f4")])])
        rows = np.zeros(3, member)
        rows["id"], rows["name"], rows["at"]["y"] = [1, 2, 3], ["a", "bc", ""], [0.5, 1.5, 2.5]
        file.create_dataset("deep/rows", data=rows)
        file.create_dataset("enum", data=np.array([0, 1, 1], "i1"), dtype=h5py.enum_dtype({"A": 0, "B": 1}, "i1"))
        lists = file.create_dataset("lists", (2,), dtype=h5py.vlen_dtype(h5py.string_dtype()))
        lists[0] = np.array(["a", "b"], object)
        file.create_dataset("plain", data=np.arange(10.0), chunks=(4,), compression="gzip")
        file["axis"] = np.arange(10) * 2
        file["axis"].make_scale("x")
        file["plain"].dims[0].attach_scale(file["axis"])
        file["scalar"] = 7.5
    domain = tiledb.Domain(tiledb.Dim("x", domain=(3, 8), tile=3, dtype="i4"))
    attributes = [tiledb.Attr("n", "i4", nullable=True), tiledb.Attr("s", "U0", var=True), tiledb.Attr("v", "f4")]
    tiledb.Array.create(str(folder / "null.tdb"), tiledb.ArraySchema(domain=domain, attrs=attributes))
    with tiledb.open(str(folder / "null.tdb"), "w") as array:
        count = np.arange(6, dtype="i4")
        import pandas

        array[:] = {"n": pandas.array([0, None, 2, 3, None, 5], dtype="Int32"), "s": np.array(list("abcdef"), "O"), "v": count.astype("f4") / 4}
    group = zarr.open_group(folder / "plain.zarr", mode="w", zarr_format=3, attributes={"title": "plain"})
    group.create_array("a", data=np.arange(20).reshape(4, 5), chunks=(2, 5), dimension_names=("y", "x"), attributes={"units": "m"})
    print("climate.nc\ntypes.h5\nnull.tdb\nplain.zarr")


def nodes(address: str, version: int) -> dict:
    import zarr

    root = zarr.open_group(address, mode="r", zarr_format=version)
    return {"": root, **dict(root.members(max_depth=None))}


def attributes(node) -> dict:
    return {name: value for name, value in node.attrs.asdict().items() if name != PROVENANCE}


def compare(folder: pathlib.Path, url: str, stores: list[str]) -> None:
    import zarr

    count, differences = 0, []

    def check(what: str, found, wanted) -> None:
        nonlocal count
        count += 1
        if not np.array_equal(np.asarray(found), np.asarray(wanted)):
            differences.append(f"{what}: {found!r}, not {wanted!r}")

    for store in stores:
        for route, version in (("zarr", 3), ("zarr-numcodecs", 3), ("zarr2", 2)):
            found = nodes(f"{url}/{route}/{store}", version)
            wanted = nodes(str(folder / f"{store}.zarr{version}"), version)
            check(f"{route} {store}: nodes", sorted(found), sorted(wanted))
            for path in found.keys() & wanted.keys():
                own, other = found[path], wanted[path]
                what = f"{route} {store}/{path}"
                check(f"{what}: attributes", json.dumps(attributes(own), sort_keys=True), json.dumps(attributes(other), sort_keys=True))
                # Without consolidated metadata, the node is found by its own path.
                alone = zarr.open(f"{url}/{route}/{store}/{path}".rstrip("/"), mode="r", zarr_format=version)
                check(f"{what}: alone", json.dumps(attributes(alone), sort_keys=True), json.dumps(attributes(own), sort_keys=True))
                if isinstance(other, zarr.Array):
                    check(f"{what}: type", str(own.dtype), str(other.dtype))
                    check(f"{what}: dimensions", str(getattr(own.metadata, "dimension_names", None)), str(getattr(other.metadata, "dimension_names", None)))
                    check(what, alone[...], other[...])
            if store == "types.h5":
                document = ".zmetadata" if version == 2 else "zarr.json"
                told = json.load(urllib.request.urlopen(f"{url}/{route}/{store}/{document}"))
                told = told if version == 2 else told["consolidated_metadata"]
                check(f"{route} {store}: left out", list(told["left_out"]), ["lists"])
    print(count)
    sys.stdout.write("\n".join(differences))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]))
    else:
        compare(pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
