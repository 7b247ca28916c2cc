"""Creates stores whose conversion once lost content, and checks the copies with the libraries.

    formats.py make NAME FOLDER       sources
    formats.py check NAME FOLDER      the converted stores
"""

import json
import pathlib
import sys
import warnings

import h5py
import numcodecs
import numpy as np
import tiledb

warnings.simplefilter("ignore")
command, name, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
LISTS = [np.array(values, "<i4") for values in ([1, 2, 3], [4], [], [5, 6], [7])]


def objects(values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


def make_lists():
    codec = numcodecs.VLenArray("<i4")
    store = folder / "lists.zarr"
    store.mkdir()
    document = {"zarr_format": 2, "shape": [5], "chunks": [3], "dtype": "|O", "fill_value": 0, "order": "C"}
    document |= {"compressor": {"id": "zlib", "level": 1}, "filters": [codec.get_config()]}
    (store / ".zarray").write_text(json.dumps(document))
    padded = [*LISTS, np.array([], "<i4")]
    for chunk in range(2):
        encoded = codec.encode(objects(padded[3 * chunk : 3 * chunk + 3]))
        (store / str(chunk)).write_bytes(numcodecs.Zlib(1).encode(encoded))


def check_lists():
    with h5py.File(folder / "lists.h5") as file:
        (found,) = file.values()
        assert found.dtype.metadata["vlen"] == np.dtype("<i4"), found.dtype
        assert [list(row) for row in found[...]] == [list(row) for row in LISTS], found[...]
    (path,) = (folder / "back.zarr").rglob(".zarray")
    document = json.loads(path.read_text())
    codecs = [numcodecs.get_codec(config) for config in document["filters"]]
    if document["compressor"]:
        codecs.append(numcodecs.get_codec(document["compressor"]))
    rows = []
    for chunk in range(-(-5 // document["chunks"][0])):
        data = (path.parent / str(chunk)).read_bytes()
        for codec in reversed(codecs):
            data = codec.decode(data)
        rows += [list(row) for row in data]
    assert rows[:5] == [list(row) for row in LISTS], rows


def make_tiledb():
    zstd = [tiledb.ZstdFilter(7)]
    dims = [tiledb.Dim("r", domain=(-10, 9), tile=4, dtype="int32", filters=zstd), tiledb.Dim("c", domain=(5, 9), tile=2, dtype="int32")]
    enums = [
        tiledb.Enumeration("colors", True, ["red", "green", "blue"]),
        tiledb.Enumeration("sizes", True, np.array([10, 20, 40], "i8")),
        tiledb.Enumeration("weights", False, np.array([0.5, 1.5, 1e30], "f4")),
    ]
    attrs = [
        tiledb.Attr("a", dtype="f4", filters=[tiledb.ByteShuffleFilter(), *zstd], fill=-5),
        tiledb.Attr("k", dtype="i4", enum_label="colors"),
        tiledb.Attr("s", dtype="u1", enum_label="sizes"),
        tiledb.Attr("w", dtype="i2", enum_label="weights"),
        tiledb.Attr("t", dtype="ascii", var=True),
    ]
    cells = np.arange(100).reshape(20, 5)
    values = {"a": cells.astype("f4"), "k": (cells % 3).astype("i4"), "s": (cells % 3).astype("u1"), "w": (cells % 3).astype("i2")}
    values["t"] = np.array([str(cell) for cell in cells.ravel()], dtype="S").astype("O").reshape(cells.shape)
    for path, orders in {"dense": ("row-major", "col-major"), "columns": ("col-major", "row-major")}.items():
        schema = tiledb.ArraySchema(
            domain=tiledb.Domain(*dims), attrs=attrs, enums=enums, cell_order=orders[0], tile_order=orders[1], capacity=77
        )
        tiledb.Array.create(str(folder / path), schema)
        with tiledb.open(str(folder / path), "w") as array:
            array[:] = values
            array.meta["unit"], array.meta["raw"] = "K", b"\x00\x01"
    dims = [tiledb.Dim("id", dtype="ascii", filters=[tiledb.RleFilter()]), tiledb.Dim("x", domain=(-1.0, 1.0), tile=0.5, dtype="f8")]
    attrs = [
        tiledb.Attr("n", dtype="u1", enum_label="sizes"),
        tiledb.Attr("v", dtype="f4"),
        tiledb.Attr("g", dtype="f8", filters=[tiledb.GzipFilter(5)], fill=-1.0),
    ]
    schema = tiledb.ArraySchema(
        domain=tiledb.Domain(*dims), sparse=True, allows_duplicates=True, attrs=attrs, enums=enums[1:2], capacity=100,
        cell_order="row-major", tile_order="col-major", coords_filters=[tiledb.GzipFilter(4)], offsets_filters=[tiledb.Bzip2Filter(3)],
    )
    tiledb.Array.create(str(folder / "sparse"), schema)
    with tiledb.open(str(folder / "sparse"), "w") as array:
        array[["a", "bb", "a"], [0.5, -0.5, 0.0]] = {"n": np.array([0, 2, 1], "u1"), "v": np.arange(3, dtype="f4"), "g": np.arange(3.0)}


def about(path):
    """Everything that the package reports about an array."""
    with tiledb.open(str(path)) as array:
        schema = array.schema
        dims = [(d.name, str(d.dtype), str(d.domain), str(d.tile), str(d.filters)) for d in schema.domain]
        attrs = [(a.name, str(a.dtype), a.isnullable, a.isvar, str(a.filters), str(a.fill)) for a in schema]
        filters = (str(schema.coords_filters), str(schema.offsets_filters), str(schema.validity_filters))
        enums = {}
        for a in schema:
            if a.enum_label:
                enum = array.enum(a.enum_label)
                enums[a.name] = (a.enum_label, enum.ordered, str(enum.type), list(map(str, enum.values())))
        rows = {key: np.asarray(value).tolist() for key, value in array[:].items()}
        return dims, attrs, filters, enums, rows, (schema.cell_order, schema.tile_order, schema.capacity, schema.sparse and schema.allows_duplicates), dict(array.meta.items())


def check_tiledb():
    for path in ("dense", "columns", "sparse"):
        for ours, theirs in zip(about(folder / f"{path}.tiledb"), about(folder / path)):
            assert str(ours) == str(theirs), (path, ours, theirs)


def make_labels():
    dim = tiledb.Dim("d1", domain=(0, 4), tile=5, dtype="uint32")
    other = tiledb.Dim("d2", domain=(0, 2), tile=3, dtype="uint32")
    labels = {0: {"lat": dim.create_label_schema("increasing", "f8")}, 1: {"code": other.create_label_schema("decreasing", "i8")}}
    schema = tiledb.ArraySchema(domain=tiledb.Domain(dim, other), attrs=[tiledb.Attr("v", dtype="i4")], dim_labels=labels)
    tiledb.Array.create(str(folder / "labels"), schema)
    with tiledb.open(str(folder / "labels"), "w") as array:
        array[:] = {"v": np.arange(15, dtype="i4").reshape(5, 3), "lat": np.linspace(10, 50, 5), "code": np.array([9, 5, 1])}


def check_labels():
    import netCDF4

    with netCDF4.Dataset(folder / "labels.nc") as file:
        assert file["v"].dimensions == ("d1", "d2") and file["lat"].dimensions == ("d1",), file
        assert sorted(file["v"].coordinates.split()) == ["code", "lat"], file["v"]
        assert "coordinates" not in file["lat"].ncattrs(), file["lat"]
    for ending in ("nc", "h5", "zarr", "tet"):
        with tiledb.open(str(folder / f"{ending}.tiledb")) as array:
            schema = array.schema
            assert [(d.name, str(d.dtype), d.domain) for d in schema.domain] == [("d1", "uint32", (0, 4)), ("d2", "uint32", (0, 2))], (ending, schema)
            assert schema.has_dim_label("lat") and schema.has_dim_label("code"), (ending, schema)
            assert [schema.dim_label(name).order for name in ("lat", "code")] == ["increasing", "decreasing"], ending
            assert "coordinates" not in str(dict(array.meta.items())), (ending, dict(array.meta.items()))
            assert np.array_equal(array.label_index(["lat"])[20.0:40.0]["v"].ravel(), np.arange(3, 12)), ending


def make_variables():
    import netCDF4

    for number, start in (("first", 0), ("second", 4)):
        with netCDF4.Dataset(folder / f"{number}.nc", "w") as file:
            file.createDimension("time", None)
            file.createDimension("y", 3)
            time = file.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            file.createVariable("flag", "i4", ("y",))[:] = [1, 2, 3]
            temp = file.createVariable("temp", "f4", ("time", "y"))
            temp.units = "K"
            time[:] = np.arange(start, start + 4) + 0.5
            temp[:] = np.arange(12).reshape(4, 3) + start
    with netCDF4.Dataset(folder / "groups.nc", "w") as file:
        file.title = "root"
        file.createDimension("x", 2)
        file.createVariable("top", "i4", ("x",))[:] = [1, 2]
        group = file.createGroup("dims")
        group.about = "a group"
        group.createDimension("z", 3)
        group.createVariable("z", "f4", ("z",))[:] = [1, 2, 3]
        group.createVariable("v", "i2", ("z", "x"))[:] = np.arange(6).reshape(3, 2)


def check_variables():
    import netCDF4

    with tiledb.Group(str(folder / "g.tiledb")) as group:
        assert {member.name for member in group} >= {"flag", "temp"}, list(group)
    with netCDF4.Dataset(folder / "back.nc") as file:
        assert file["temp"].shape == (8, 3) and file["temp"].units == "K" and file["flag"].shape == (3,), file
        assert np.array_equal(file["temp"][:, 0], [0, 3, 6, 9, 4, 7, 10, 13]), file["temp"][:]
        assert np.array_equal(file["time"][:], np.arange(8) + 0.5), file["time"][:]
    with netCDF4.Dataset(folder / "dims.nc3") as file:
        assert set(file.variables) >= {"z", "v"} and file["v"].dimensions == ("z", "x") and file.about == "a group", file
    with netCDF4.Dataset(folder / "top.nc3") as file:
        assert set(file.variables) == {"top"} and file.title == "root", file


globals()[f"{command}_{name}"]()
