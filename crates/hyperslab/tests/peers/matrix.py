"""Writes stores with content that some formats lack, and checks conversions with the reference libraries.

    matrix.py make FOLDER           writes the sources, prints their names
    matrix.py compare FOLDER        compares FOLDER/x/SOURCE~TARGET with FOLDER/SOURCE; prints a line per difference

Forms are read here by the rules of docs/notes/0003-forms.md, with nothing but the reference libraries.
"""
import json, os, sys, warnings

import h5py
import netCDF4
import numpy as np
import pandas as pd
import tiledb
import zarr

warnings.simplefilter("ignore")


def nullable(path):
    dims = [tiledb.Dim("y", domain=(0, 4), tile=3, dtype="int32"), tiledb.Dim("x", domain=(0, 3), tile=2, dtype="int32")]
    attrs = [tiledb.Attr("a", dtype="int32", nullable=True), tiledb.Attr("f", dtype="float64", nullable=True),
             tiledb.Attr("b", dtype="uint8")]
    tiledb.Array.create(path, tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=attrs))
    with tiledb.open(path, "w") as array:
        array[:] = {
            "a": pd.array([None if n % 3 == 0 else n for n in range(20)], dtype="Int32"),
            "f": pd.array([None if n % 5 == 1 else n / 2 for n in range(20)], dtype="Float64"),
            "b": (np.arange(20).reshape(5, 4) % 7).astype("u1"),
        }


def table(path):
    dims = [tiledb.Dim("x", domain=(0, 99), tile=10, dtype="int32"), tiledb.Dim("day", domain=(0, 999), tile=100, dtype="int64")]
    attrs = [tiledb.Attr("v", dtype="float64"), tiledb.Attr("n", dtype="int32", nullable=True),
             tiledb.Attr("t", dtype="U0", var=True)]
    tiledb.Array.create(path, tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=attrs, sparse=True))
    with tiledb.open(path, "w") as array:
        frame = {"v": np.arange(6) / 4, "n": pd.array([1, None, 3, None, 5, 6], dtype="Int32"),
                 "t": np.array(["a", "ä", "", "longer", "b", "c"], "O")}
        array[np.array([1, 2, 3, 50, 60, 99], "i4"), np.array([5, 4, 3, 2, 1, 0], "i8")] = frame


def types():
    point = np.zeros(3, [("a", "i4"), ("b", "f8"), ("c", "i1")])
    point["a"], point["b"], point["c"] = [1, 2, 3], [0.5, 1.5, -2.5], [-1, 0, 127]
    return {
        "yes": np.array([True, False, True, True]),
        "small": np.array([-128, 0, 127], "i1"),
        "half": np.array([0.5, -2, 65504], "f2"),
        "complex": (np.arange(6) + 1j * np.arange(6)[::-1]).astype("c8").reshape(2, 3),
        "wide": np.array([1 + 2j, -3.5j], "c16"),
        "fixed": np.array([b"ab", b"c", b"xyz"], "S3"),
        "point": point,
        "big": np.arange(12, dtype=">i4").reshape(3, 4),
    }


def numpy_types(path):
    np.savez(path, **types(), when=np.array(["2000-01-01", "NaT", "1969-12-31T23"], "M8[ms]"),
             text=np.array(["ä", "", "abc"]), span=np.array([5, -3], "m8[s]"))


def hdf5_types(path):
    with h5py.File(path, "w") as file:
        for name, values in types().items():
            file[name] = values
        file["text"] = np.array(["ä", "", "longer text"], object)
        state = h5py.enum_dtype({"OFF": 0, "ON": 1, "LOST": -1}, basetype="i1")
        file.create_dataset("state", data=np.array([1, 0, -1, 1], "i1"), dtype=state)


def zarr_types(path):
    group = zarr.create_group(path, zarr_format=3)
    for name, values in types().items():
        if name != "point":
            own = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
            group.create_array(name, data=own, chunks=tuple(max(1, n // 2) for n in own.shape))
    group.create_array("text", data=np.array(["ä", "", "longer text"], np.dtypes.StringDType()))


def netcdf_types(path):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("n", 4)
        state = file.createEnumType("i1", "state_t", {"OFF": 0, "ON": 1, "LOST": -1})
        file.createVariable("state", state, ("n",))[:] = np.array([1, 0, -1, 1], "i1")
        file.createVariable("text", str, ("n",))[:] = np.array(["ä", "", "longer text", "x"], object)
        file.createVariable("one", "f4", ())[...] = 2.5
        point = file.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "point_t")
        values = np.zeros(4, [("a", "i4"), ("b", "f8")])
        values["a"], values["b"] = [1, 2, 3, 4], [0.5, 1.5, 2.5, 3.5]
        file.createVariable("point", point, ("n",))[:] = values


SOURCES = {"nullable.tiledb": nullable, "table.tiledb": table, "types.npz": numpy_types, "types.h5": hdf5_types,
           "types.zarr3": zarr_types, "types.nc": netcdf_types}


# Content as libraries read it: path -> (attributes, values or None for a group, names of an enumeration's values).

def seen_hdf5(path):
    found = {}
    with h5py.File(path) as file:
        def visit(name, node):
            attrs = {key: node.attrs[key] for key in node.attrs if key.startswith("hyperslab_")}
            if isinstance(node, h5py.Dataset):
                if node.attrs.get("NAME", b"").startswith(b"This is a netCDF dimension but not"):
                    return
                values = node.asstr()[()] if h5py.check_string_dtype(node.dtype) and node.dtype.kind == "O" else node[()]
                found["/" + name] = (attrs, values, h5py.check_enum_dtype(node.dtype))
            elif isinstance(node, h5py.Group):
                found["/" + name] = (attrs, None, None)
        visit("", file)
        file.visititems(visit)
    return found


def seen_netcdf(path):
    found = {}
    def visit(prefix, group):
        own = {key: group.getncattr(key) for key in group.ncattrs() if key.startswith("hyperslab_")}
        found[prefix or "/"] = (own, None, None)
        for name, variable in group.variables.items():
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            attrs = {key: variable.getncattr(key) for key in variable.ncattrs()}
            values = variable[...]
            if variable.dtype == "S1" and variable.ndim and attrs.get("_Encoding", "utf-8"):
                values = np.array(netCDF4.chartostring(variable[...], encoding="utf-8"), object)
            if attrs.get("dtype") == "bool":
                values = values.astype(bool)
            names = getattr(variable.datatype, "enum_dict", None)
            if names is None and "flag_meanings" in attrs:
                names = dict(zip(attrs["flag_meanings"].split(), np.atleast_1d(attrs["flag_values"]).tolist()))
            found[f"{prefix}/{name}"] = (attrs, values, names)
        for name, below in group.groups.items():
            visit(f"{prefix}/{name}", below)
    with netCDF4.Dataset(path, auto_complex=True) as file:
        visit("", file)
    return found


def seen_zarr(path):
    found = {}
    def visit(prefix, group):
        found[prefix or "/"] = (dict(group.attrs), None, None)
        for name, node in group.members():
            if isinstance(node, zarr.Group):
                visit(f"{prefix}/{name}", node)
            else:
                found[f"{prefix}/{name}"] = (dict(node.attrs), np.asarray(node[...]), None)
    visit("", zarr.open_group(path, mode="r"))
    return found


def seen_npz(path):
    with np.load(path) as file:
        return {"/" + name: ({}, file[name], None) for name in file.files}


def seen_tiledb(path):
    found = {}
    def fields(prefix, where):
        with tiledb.open(where) as array:
            query = array.query(attrs=None)[:]
            for number in range(array.schema.nattr):
                attr = array.schema.attr(number)
                values = query[attr.name]
                if isinstance(values, np.ma.MaskedArray) or attr.isnullable:
                    values = np.ma.masked_array(values)
                found[f"{prefix}/{attr.name}"] = ({}, values, None)
    kind = tiledb.object_type(path)
    if kind == "array":
        with tiledb.open(path) as array:
            sparse = array.schema.sparse
            if sparse:
                return {"/": ({"rows": array[:]}, None, None)}
        fields("", path)
        return found
    def visit(prefix, where):
        with tiledb.Group(where) as group:
            for member in group:
                name = member.name or os.path.basename(member.uri)
                if member.type is tiledb.Group:
                    visit(f"{prefix}/{name}", member.uri)
                else:
                    with tiledb.open(member.uri) as array:
                        only = array.schema.nattr == 1
                    before = set(found)
                    fields(f"{prefix}/{name}", member.uri)
                    if only:
                        for key in set(found) - before:
                            found[f"{prefix}/{name}"] = found.pop(key)
    visit("", path)
    return found


def seen(path):
    reader = {"h5": seen_hdf5, "nc": seen_netcdf, "nc3": seen_netcdf, "zarr2": seen_zarr, "zarr3": seen_zarr,
              "npz": seen_npz, "tiledb": seen_tiledb}[path.rsplit(".", 1)[1]]
    return reader(path)


def plain(values, missing=None):
    """Values as nested lists, with None for missing ones."""
    values = np.asarray(values) if not isinstance(values, np.ma.MaskedArray) else values
    if isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
        values = np.ma.getdata(values)
    if values.dtype.kind in "mM":
        values = values.view("i8")
    if values.dtype.names:
        flat = [tuple(cell(item[name]) for name in values.dtype.names) for item in values.ravel()]
    else:
        flat = [cell(item) for item in values.ravel().tolist()]
    if missing is not None:
        flat = [None if gone else item for item, gone in zip(flat, np.asarray(missing).astype(bool).ravel())]
    return list(values.shape), flat


def cell(item):
    item = item.item() if hasattr(item, "item") else item
    if isinstance(item, bytes):
        item = item.rstrip(b"\0").decode()
    if isinstance(item, float) and item != item:
        return "NaN"
    if isinstance(item, tuple) and len(item) == 2:
        return complex(*item)
    return item


def meant(found):
    """The content with forms restored: path -> (shape, values, names)."""
    result, inside = {}, []
    masks = {path.rsplit("/", 1)[0] + "/" + attrs["hyperslab_mask"] for path, (attrs, *_) in found.items()
             if "hyperslab_mask" in attrs}
    for path, (attrs, values, names) in sorted(found.items()):
        if path in masks or any(path.startswith(prefix) for prefix in inside):
            continue
        kind = attrs.get("hyperslab_type")
        if values is None:
            if kind:
                inside.append(path + "/")
                members = json.loads(kind)["struct"]
                columns = [plain(found[f"{path}/{name}"][1])[1] for name, _ in members]
                shape = plain(found[f"{path}/{members[0][0]}"][1])[0]
                result[path] = (shape, list(zip(*columns)), None)
            continue
        mask = None
        if "hyperslab_mask" in attrs:
            mask = found[path.rsplit("/", 1)[0] + "/" + attrs["hyperslab_mask"]][1]
        values = np.asarray(values) if not isinstance(values, np.ma.MaskedArray) else values
        if kind in ("complex64", "complex128") and values.dtype.kind == "f":
            values = values[..., 0] + 1j * values[..., 1]
        elif kind == "bool":
            values = values.astype(bool)
        elif kind and kind.startswith("{"):
            document = json.loads(kind)
            if "enum" in document:
                names = dict(document["members"])
        result[path] = (*plain(values, mask), names)
    return result


def rows(found):
    """The rows of the store's table, as a set of lines."""
    if "rows" in found.get("/", ({},))[0]:
        found = found["/"][0]["rows"]
        columns = [plain(found[name])[1] for name in ("x", "day", "v", "n", "t")]
        return sorted(str(list(row)) for row in zip(*columns))
    assert found["/"][0].get("hyperslab_kind") == "table", found["/"][0]
    columns = meant(found)
    order = sorted((path for path in columns), key=lambda path: int(found[path][0]["hyperslab_column"]))
    assert order == ["/x", "/day", "/v", "/n", "/t"], order
    assert [int(found[path][0].get("hyperslab_dimension", 0)) for path in order] == [1, 1, 0, 0, 0]
    return sorted(str(list(row)) for row in zip(*(columns[path][1] for path in order)))


def compare(source, target):
    one, other = seen(source), seen(target)
    if "table" in source:
        if not target.endswith(".npz") and rows(one) != rows(other):
            yield f"rows {rows(one)} ≠ {rows(other)}"
        return
    one, other = meant(one), meant(other)
    for path, (shape, values, names) in one.items():
        if path not in other:
            yield f"{path} is missing"
            continue
        own_shape, own_values, own_names = other[path]
        if list(own_shape) != list(shape) and not (shape == [] and own_shape == [1]):
            yield f"{path}: shape {shape} ≠ {own_shape}"
        if own_values != values:
            yield f"{path}: {values} ≠ {own_values}"
        if names and own_names and names != own_names or names and not own_names and target.endswith((".h5", ".nc", ".nc3", "zarr2", "zarr3")):
            yield f"{path}: names {names} ≠ {own_names}"


if __name__ == "__main__":
    command, folder = sys.argv[1:]
    if command == "make":
        for name, build in SOURCES.items():
            build(f"{folder}/{name}")
        print(json.dumps(list(SOURCES)))
    else:
        for name in sorted(os.listdir(f"{folder}/x")):
            source, target = name.split("~")
            if target.endswith(".tet"):
                continue
            try:
                for line in compare(f"{folder}/{source}", f"{folder}/x/{name}"):
                    print(f"{name}: {line}")
            except Exception as why:
                import traceback
                print(f"{name}: {type(why).__name__}: {why} {traceback.format_exc()[-300:]}")
