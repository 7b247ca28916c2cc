"""What the peers read and write through their own clients of a bucket, for `peers_servers.rs`.

    servers.py source FOLDER                 `x.h5`, `expected.npy` and `points.npz`
    servers.py container ENDPOINT            the container `bucket` of an Azure server
    servers.py write KIND ENDPOINT FOLDER    the array by every peer that writes to this kind; prints URLs and nodes
    servers.py read KIND ENDPOINT FOLDER     what the peers find in the stores `to.*` and is wrong

KIND is `s3` or `az`.
"""

import json
import os
import pathlib
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
# No client may look for credentials elsewhere.
os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "GCE_METADATA_HOST": "127.0.0.1:9"}
BUCKET, CHUNKS = "bucket", (2, 20, 15)
KEY, SECRET = os.environ["TEST_KEY"], os.environ["TEST_SECRET"]


def source(folder):
    import h5py

    folder = pathlib.Path(folder)
    field = np.random.default_rng(3).normal(280, 10, (6, 40, 30)).astype("float32")
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("t", data=field, chunks=CHUNKS, compression="gzip", shuffle=True)
        file["t"].attrs["units"] = "K"
    np.save(folder / "expected.npy", field)
    # More objects than one page of a listing has.
    with h5py.File(folder / "many.h5", "w") as file:
        file.create_dataset("m", data=np.arange(1200, dtype="i2"), chunks=(1,))
    points = np.random.default_rng(6).uniform(0, 100, (500, 3)).astype("float32")
    # Lines from one cell into another, whose objects have a plus sign in their names.
    links = np.stack([np.arange(499), np.arange(1, 500)], axis=1)
    np.savez(folder / "points.npz", vertices=points, links=links)


def tiledb_context(kind, endpoint):
    import tiledb

    if kind == "az":
        settings = {"storage_account_name": KEY, "storage_account_key": SECRET, "blob_endpoint": endpoint}
        return tiledb.Ctx({f"vfs.azure.{name}": value for name, value in settings.items()})
    settings = {
        "endpoint_override": endpoint.removeprefix("http://"),
        "scheme": "http",
        "use_virtual_addressing": "false",
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "region": "us-east-1",
    }
    return tiledb.Ctx({f"vfs.s3.{name}": value for name, value in settings.items()})


def tiledb_url(kind, name):
    return f"{'azure' if kind == 'az' else 's3'}://{BUCKET}/{name}"


def container(endpoint):
    import tiledb

    tiledb.VFS(ctx=tiledb_context("az", endpoint)).create_bucket(f"azure://{BUCKET}")


def filesystem(endpoint):
    import s3fs

    return s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=endpoint, client_kwargs={"region_name": "us-east-1"})


def azure(endpoint, prefix=None):
    from obstore.store import AzureStore

    config = {"account_name": KEY, "account_key": SECRET, "endpoint": endpoint}
    return AzureStore(BUCKET, prefix=prefix, config=config, client_options={"allow_http": True})


def zarr_store(kind, endpoint, name, read_only=False):
    """zarr-python's own store: s3fs for S3, obstore for Azure."""
    from zarr.storage import FsspecStore, ObjectStore

    if kind == "az":
        return ObjectStore(azure(endpoint, name), read_only=read_only)
    import s3fs

    own = s3fs.S3FileSystem(
        key=KEY, secret=SECRET, endpoint_url=endpoint, client_kwargs={"region_name": "us-east-1"}, asynchronous=True
    )
    return FsspecStore(own, path=f"{BUCKET}/{name}", read_only=read_only)


def opened(kind, endpoint, name):
    """An object as a file: through fsspec for S3, through obstore for Azure."""
    if kind == "az":
        import io

        import obstore

        return io.BytesIO(bytes(obstore.get(azure(endpoint), name).bytes()))
    return filesystem(endpoint).open(f"{BUCKET}/{name}", "rb")


def tensorstore_spec(endpoint, path):
    return {
        "driver": "zarr3",
        "kvstore": {
            "driver": "s3",
            "bucket": BUCKET,
            "path": path,
            "endpoint": endpoint,
            "aws_region": "us-east-1",
            "aws_credentials": {"type": "environment"},
        },
    }


def write(kind, endpoint, folder):
    import tiledb
    import zarr

    field = np.load(pathlib.Path(folder) / "expected.npy")
    written = {}
    group = zarr.open_group(zarr_store(kind, endpoint, "peer.zarr"), mode="w", zarr_format=3)
    group.create_array("t", data=field, chunks=CHUNKS, shards=(6, 40, 30))
    written["peer.zarr"] = "/t"
    context = tiledb_context(kind, endpoint)
    axes = [
        tiledb.Dim(n, (0, e - 1), tile=c, dtype="uint64", ctx=context)
        for n, e, c in zip("zyx", field.shape, CHUNKS, strict=True)
    ]
    value = tiledb.Attr("t", dtype="float32", filters=[tiledb.ZstdFilter()], ctx=context)
    schema = tiledb.ArraySchema(tiledb.Domain(*axes, ctx=context), [value], ctx=context)
    tiledb.Array.create(tiledb_url(kind, "peer.tiledb"), schema, ctx=context)
    with tiledb.open(tiledb_url(kind, "peer.tiledb"), "w", ctx=context) as array:
        array[:] = field
    written["peer.tiledb"] = "/t"
    if kind == "s3":
        import h5py
        import tensorstore

        # A file that is written through fsspec cannot seek, so the file is put as a whole.
        local = pathlib.Path(folder) / "peer.h5"
        with h5py.File(local, "w") as hdf5:
            hdf5.create_dataset("t", data=field, chunks=CHUNKS, compression="gzip")
        filesystem(endpoint).put(str(local), f"{BUCKET}/peer.h5")
        written["peer.h5"] = "/t"
        os.environ |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        grid = {"name": "regular", "configuration": {"chunk_shape": list(CHUNKS)}}
        spec = tensorstore_spec(endpoint, "tensorstore.zarr/") | {"metadata": {"chunk_grid": grid}}
        array = tensorstore.open(spec, create=True, dtype="float32", shape=field.shape).result()
        array.write(field).result()
        written["tensorstore.zarr"] = "/"
    print(json.dumps(written))


def read(kind, endpoint, folder):
    import h5py
    import tiledb
    import xarray
    import zarr

    expected = np.load(pathlib.Path(folder) / "expected.npy")

    def check(what, found):
        if not np.array_equal(found, expected):
            print(f"{what}: other values")

    for name in ["to.zarr", "to2.zarr", "sharded-to.zarr"]:
        group = zarr.open_group(zarr_store(kind, endpoint, name, read_only=True), mode="r")
        check(f"zarr-python {name}", group["t"][...])
    with tiledb.open(tiledb_url(kind, "to.tiledb"), ctx=tiledb_context(kind, endpoint)) as array:
        found = array[:]
        check("tiledb-py", found["t"] if isinstance(found, dict) else found)
    with opened(kind, endpoint, "to.h5") as file, h5py.File(file) as hdf5:
        check("h5py", hdf5["t"][...])
    with opened(kind, endpoint, "to.nc") as file, xarray.open_dataset(file, engine="h5netcdf") as data:
        check("xarray, h5netcdf", data.t.values)
    if kind == "s3":
        import tensorstore

        os.environ |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        for name in ["to.zarr", "sharded-to.zarr"]:
            array = tensorstore.open(tensorstore_spec(endpoint, f"{name}/t/"), read=True).result()
            check(f"tensorstore {name}", array.read().result())


if __name__ == "__main__":
    {each.__name__: each for each in (source, container, write, read)}[sys.argv[1]](*sys.argv[2:])
