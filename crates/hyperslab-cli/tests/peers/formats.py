"""Rarely used features of the formats, written and read by the real libraries: formats.py ACTION ARGUMENTS."""

import json
import sys

import numpy as np


def tiledb_labels_write(path):
    """Writes a dense array with numbers, texts and decreasing numbers as labels, and one whose domain starts at 10."""
    import tiledb

    for name, start in [("plain", 0), ("shifted", 10)]:
        x = tiledb.Dim("x", domain=(start, start + 19), tile=10, dtype=np.int64)
        y = tiledb.Dim("y", domain=(start, start + 3), tile=2, dtype=np.int64)
        labels = {
            0: {
                "place": x.create_label_schema("increasing", np.float64),
                "depth": x.create_label_schema("decreasing", np.int64),
            },
            1: {"name": y.create_label_schema("increasing", "ascii")},
        }
        schema = tiledb.ArraySchema(
            domain=tiledb.Domain(x, y), attrs=[tiledb.Attr("a", dtype=np.int32)], dim_labels=labels
        )
        tiledb.Array.create(f"{path}/{name}", schema)
        with tiledb.open(f"{path}/{name}", "w") as array:
            array[:] = {
                "a": np.arange(80, dtype=np.int32).reshape(20, 4),
                "place": np.arange(20) / 2,
                "depth": 100 - np.arange(20),
                "name": np.array(["ash", "birch", "oak", "pine"], dtype="S"),
            }


def tiledb_labels_check(path, start):
    import tiledb

    with tiledb.open(path) as array:
        assert array.schema.has_dim_label("place") and array.schema.has_dim_label("name"), array.schema
        found = array.label_index(["place"])[1.0:2.5]
        assert found["place"].tolist() == [1.0, 1.5, 2.0, 2.5], found
        assert found["a"].tolist() == np.arange(80).reshape(20, 4)[2:6].tolist(), found
        with tiledb.open(path) as whole:
            assert whole[int(start) : int(start) + 20]["a"].shape == (20, 4)


def tiledb_evolve_write(path):
    import tiledb

    domain = tiledb.Domain(tiledb.Dim("x", domain=(0, 9), tile=5, dtype=np.int64))
    attrs = [tiledb.Attr("a", dtype=np.int32), tiledb.Attr("b", dtype=np.float64)]
    tiledb.Array.create(f"{path}/dense", tiledb.ArraySchema(domain=domain, attrs=attrs))
    tiledb.Array.create(f"{path}/sparse", tiledb.ArraySchema(domain=domain, attrs=attrs, sparse=True))
    data = {"a": np.arange(10, dtype=np.int32), "b": np.arange(10) / 4}
    with tiledb.open(f"{path}/dense", "w") as array:
        array[:] = data
    with tiledb.open(f"{path}/sparse", "w") as array:
        array[np.arange(10)] = data


def tiledb_evolve_check(path):
    """After `tet evolve --add c:int16=-7 --add note:string? --drop b`: checks that the library reads the array and writes to it."""
    import tiledb

    for name in ["dense", "sparse"]:
        with tiledb.open(f"{path}/{name}") as array:
            names = sorted(array.attr(i).name for i in range(array.nattr))
            assert names == ["a", "c", "note"], names
            found = array[:]
            assert found["a"].tolist() == list(range(10)), found
            assert found["c"].tolist() == [-7] * 10, found
            assert np.ma.getmaskarray(found["note"]).all() if name == "dense" else True
    with tiledb.open(f"{path}/sparse", "w") as array:
        array[[3]] = {"a": np.array([33], np.int32), "c": np.array([5], np.int16), "note": np.array(["new"], dtype="O")}


def tiledb_evolve_by_library(path):
    """Evolves the schema with the library. Old fragments read as fill values."""
    import tiledb

    for name in ["dense", "sparse"]:
        evolution = tiledb.ArraySchemaEvolution(tiledb.default_ctx())
        evolution.add_attribute(tiledb.Attr("late", dtype=np.float32, fill=np.float32(2.5)))
        evolution.drop_attribute("a")
        evolution.array_evolve(f"{path}/{name}")


def tiledb_group_write(path):
    import tiledb

    tiledb.group_create(path)
    data = np.arange(6, dtype=np.int32).reshape(2, 3)
    tiledb.from_numpy(f"{path}/first", data)
    with tiledb.Group(path, "w") as group:
        group.add("first", name="first", relative=True)


def tiledb_group_check(path):
    import tiledb

    with tiledb.Group(path) as group:
        names = sorted(member.name for member in group)
    assert names == ["first", "more", "t"], names
    with tiledb.open(f"{path}/first") as array:
        assert array[:].tolist() == [[0, 1, 2], [3, 4, 5]]
    with tiledb.open(f"{path}/t") as array:
        assert array[:]["t"].tolist() == np.arange(12).reshape(3, 4).tolist()
    with tiledb.Group(f"{path}/more") as group:
        names = sorted(member.name for member in group)
    assert names == ["u", "v"], names


def hdf5_for_group(path):
    import h5py

    with h5py.File(path, "w") as file:
        file["t"] = np.arange(12).reshape(3, 4)
        file["more/u"] = np.arange(5.0)
        file["more/v"] = np.arange(3, dtype="u1")


def tiledb_webp_write(path):
    import tiledb

    rng = np.random.default_rng(1)
    for name, depth, order in [("rgb", 3, 1), ("bgra", 4, 4)]:
        image = rng.integers(0, 255, (20, 14 * depth), dtype=np.uint8)
        if depth == 4:
            image.reshape(20, 14, 4)[..., 3] = 255 - image.reshape(20, 14, 4)[..., 3] // 2
        filters = tiledb.FilterList([tiledb.WebpFilter(order, 100.0, True)])
        dims = [tiledb.Dim("y", domain=(0, 19), tile=8, dtype=np.uint32), tiledb.Dim("x", domain=(0, 14 * depth - 1), tile=7 * depth, dtype=np.uint32)]
        schema = tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=[tiledb.Attr("", dtype=np.uint8, filters=filters)])
        tiledb.Array.create(f"{path}/{name}", schema)
        with tiledb.open(f"{path}/{name}", "w") as array:
            array[:] = image
        with tiledb.open(f"{path}/{name}") as array:
            np.save(f"{path}/{name}.npy", array[:])


def same_values(path, npy):
    import tiledb

    with tiledb.open(path) as array:
        found = array[:]
        found = found if isinstance(found, np.ndarray) else next(iter(found.values()))
        assert np.array_equal(found, np.load(npy)), (path, npy)


def categories_write(folder):
    """Writes two Parquet files with dictionaries. The second has names that the first lacks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, x, kinds in [("one", [1, 2, 3], ["NK", "B", "NK"]), ("two", [4, 5, 6], ["T", "B", "mast"])]:
        column = pa.array(kinds).dictionary_encode()
        table = pa.table({"x": pa.array(x, pa.int64()), "kind": column})
        pq.write_table(table, f"{folder}/{name}.parquet")


def categories_check(path):
    import tiledb

    with tiledb.open(path) as array:
        assert array.attr("kind").enum_label is not None, array.schema
        names = list(array.enum(array.attr("kind").enum_label).values())
        assert names == ["NK", "B", "T", "mast"], names
        found = [str(kind) for kind in array[:]["kind"]]
        assert found == ["NK", "B", "NK", "T", "B", "mast"], found


def empty_check(path):
    import tiledb

    with tiledb.open(path) as array:
        assert array.nonempty_domain() is None, array.nonempty_domain()


def grown_check(path):
    import tiledb

    expected = np.full((7, 9), -1, dtype=np.int64)
    with tiledb.open(path) as array:
        found = array[:7, :9]
        found = found["a"] if isinstance(found, dict) else found
        assert found.tolist() == np.add.outer(np.arange(7) * 100, np.arange(9)).tolist(), found
        assert expected.shape == found.shape


def references_source(folder):
    import h5py

    rng = np.random.default_rng(2)
    with h5py.File(f"{folder}/data.h5", "w") as file:
        file.create_dataset("t", data=rng.random((50, 40)), chunks=(7, 9), compression="gzip", shuffle=True)
        file.create_dataset("g/n", data=np.arange(30, dtype=">i2"), chunks=(4,))
        file["g/text"] = np.array(["a", "Gießen"], dtype=h5py.string_dtype())
        file["scalar"] = 3.5


def references_parquet_by_fsspec(folder, document):
    """Writes Parquet references from a JSON document with kerchunk's own writer."""
    from fsspec.implementations.reference import LazyReferenceMapper
    import fsspec

    with open(document) as file:
        refs = json.load(file)["refs"]
    fs = fsspec.filesystem("file")
    out = LazyReferenceMapper.create(root=f"{folder}/theirs.parq", fs=fs, record_size=16, engine="pyarrow")
    for key, value in refs.items():
        out[key] = value
    out.flush()


def references_parquet_check(folder, name):
    """Checks that fsspec and zarr read the same through references as h5py reads in the file."""
    import fsspec
    import h5py
    import zarr

    fs = fsspec.filesystem(
        "reference", fo=f"{folder}/{name}", remote_protocol="file", asynchronous=True, lazy=True,
        engine="pyarrow",
    )
    store = zarr.storage.FsspecStore(fs, read_only=True)
    group = zarr.open_group(store, mode="r", zarr_format=2)
    with h5py.File(f"{folder}/data.h5") as file:
        assert np.array_equal(group["t"][...], file["t"][...])
        assert np.array_equal(group["g/n"][...], file["g/n"][...])
        assert group["g/text"][...].tolist() == ["a", "Gießen"]
        assert group["scalar"][...] == 3.5


def hdf5_split_write(folder):
    """Writes the same content to one file, and to two: metadata and raw data."""
    import h5py

    rng = np.random.default_rng(3)
    values, text = rng.random((30, 20)), np.array(["a", "Gießen"], dtype=h5py.string_dtype())
    for options in [{}, {"driver": "split", "meta_ext": b"-m.h5", "raw_ext": b"-r.h5"}]:
        with h5py.File(f"{folder}/{'split' if options else 'one.h5'}", "w", **options) as file:
            file.create_dataset("chunked", data=values, chunks=(7, 20), compression="gzip")
            file["plain"] = np.arange(50)
            file["group/text"] = text
            file.attrs["title"] = "two files"


def hdf5_multi_write(folder):
    """Writes the same content to one file, and with the multi driver: a file for each kind of bytes, by both superblocks."""
    import ctypes
    import pathlib

    import h5py

    library = ctypes.CDLL(str(next((pathlib.Path(h5py.__file__).parent.parent / "h5py.libs").glob("libhdf5-*"))))
    library.H5Pset_fapl_multi.argtypes = [ctypes.c_int64] + [ctypes.c_void_p] * 4 + [ctypes.c_bool]
    values = np.random.default_rng(3).random((30, 20))
    for name, bounds in ("one", None), ("old", h5py.h5f.LIBVER_EARLIEST), ("new", h5py.h5f.LIBVER_LATEST):
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        if bounds is None:
            name += ".h5"
        else:
            access.set_libver_bounds(bounds, h5py.h5f.LIBVER_LATEST)
            assert library.H5Pset_fapl_multi(access.id, None, None, None, None, True) >= 0
        with h5py.File(h5py.h5f.create(f"{folder}/{name}".encode(), h5py.h5f.ACC_TRUNC, fapl=access)) as file:
            file.create_dataset("chunked", data=values, chunks=(7, 20), compression="gzip")
            file["plain"] = np.arange(50)
            file["group/text"] = np.array(["a", "Gießen"], dtype=h5py.string_dtype())
            file.attrs["title"] = "six files"


def image_source(folder):
    import h5py

    rng = np.random.default_rng(4)
    with h5py.File(f"{folder}/image.h5", "w") as file:
        file.create_dataset("cells", data=rng.integers(0, 1000, (2, 13, 50, 41), dtype="u2"), chunks=(1, 5, 20, 20))
        file.create_dataset("labels", data=rng.integers(0, 4, (30, 31), dtype="i4"))


def image_check(folder, name, source, method):
    """Checks an image against the rules of OME-NGFF 0.5, and each level against NumPy."""
    import h5py
    import zarr

    group = zarr.open_group(f"{folder}/{name}", mode="r")
    assert group.metadata.zarr_format == 3
    ome = group.attrs["ome"]
    assert ome["version"] == "0.5", ome
    (image,) = ome["multiscales"]
    kinds = [axis["type"] for axis in image["axes"]]
    assert kinds == sorted(kinds, key=["time", "channel", "space"].index) and 2 <= kinds.count("space") <= 3, kinds
    with h5py.File(f"{folder}/image.h5") as file:
        finest = file[source][...]
    for level, dataset in enumerate(image["datasets"]):
        array = group[dataset["path"]]
        assert list(array.metadata.dimension_names) == [axis["name"] for axis in image["axes"]]
        scale = dataset["coordinateTransformations"][0]
        assert scale["type"] == "scale" and len(scale["scale"]) == finest.ndim, dataset
        factors = [int(factor) for factor in scale["scale"]]
        assert factors == [2**level if kind == "space" else 1 for kind in kinds], factors
        if method == "nearest":
            expected = finest[tuple(slice(None, None, factor) for factor in factors)]
            assert len(dataset["coordinateTransformations"]) == 1
        else:
            expected = np.empty([-(-extent // factor) for extent, factor in zip(finest.shape, factors)], finest.dtype)
            for at in np.ndindex(*expected.shape):
                block = finest[tuple(slice(i * factor, (i + 1) * factor) for i, factor in zip(at, factors))].ravel()
                if method == "mean":
                    expected[at] = int(np.floor(block.astype("f8").mean() + 0.5))
                else:
                    values, counts = np.unique(block, return_counts=True)
                    expected[at] = values[counts.argmax()]
        assert np.array_equal(array[...], expected), (level, method)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
