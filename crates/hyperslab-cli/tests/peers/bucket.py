"""The S3 server for `peers_bucket.rs`, stores that the peers write to a bucket, and checks of ours.

    bucket.py serve PORT               runs moto's S3 server, which denies some requests under `refused/`
    bucket.py make ENDPOINT FOLDER     creates a bucket, and the same stores in it and in the folder; prints their names
    bucket.py check ENDPOINT FOLDER    prints differences between `source.nc` and its conversions in the bucket
    bucket.py put ENDPOINT KEY         puts an object that is not a store
    bucket.py keys ENDPOINT            prints all keys with sizes and tags, and the keys of unfinished uploads
    bucket.py same ENDPOINT KEY FILE   checks that the object equals the file
    bucket.py enforce ENDPOINT         makes the server reject all credentials from here on
"""

import io
import json
import pathlib
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
BUCKET, KEY, SECRET = "bucket", "test-key", "test-secret-7d1f"


def serve(port):
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    moto = DomainDispatcherApplication(create_backend_app)
    refusal = b"<Error><Code>AccessDenied</Code><Message>not here</Message></Error>"

    def application(environ, start_response):
        path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        if environ["REQUEST_METHOD"] == "PUT" and "/refused/" in path:
            if "partNumber=3" in query or path.endswith("/c/2/0/0"):
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                start_response("403 Forbidden", [("Content-Length", str(len(refusal)))])
                return [refusal]
        return moto(environ, start_response)

    run_simple("127.0.0.1", int(port), application, threaded=True)


def store(endpoint, prefix=None):
    from obstore.store import S3Store

    return S3Store(
        BUCKET,
        prefix=prefix,
        endpoint=endpoint,
        access_key_id=KEY,
        secret_access_key=SECRET,
        region="us-east-1",
        client_options={"allow_http": True},
    )


def boto(endpoint):
    import boto3

    options = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    return boto3.client("s3", endpoint_url=endpoint, **options)


def tiledb_context(endpoint):
    import tiledb

    return tiledb.Ctx(
        {
            "vfs.s3.endpoint_override": endpoint.removeprefix("http://"),
            "vfs.s3.scheme": "http",
            "vfs.s3.use_virtual_addressing": "false",
            "vfs.s3.aws_access_key_id": KEY,
            "vfs.s3.aws_secret_access_key": SECRET,
            "vfs.s3.region": "us-east-1",
        }
    )


def field():
    return np.random.default_rng(3).normal(280, 10, (6, 40, 30)).astype("float32")


def write_zarr(target, version, shards=None):
    import zarr

    group = zarr.open_group(target, mode="w", zarr_format=version, attributes={"title": "peers"})
    t = group.create_array(
        "t", shape=(6, 40, 30), dtype="float32", chunks=(2, 20, 15), shards=shards, attributes={"units": "K"}
    )
    t[:] = field()
    n = group.create_array("g/n", shape=(100,), dtype="int64", chunks=(30,), fill_value=-1)
    n[:70] = np.arange(70)  # the last chunk is never written


def write_tiledb(uri, context):
    import tiledb

    extents = zip("zyx", (6, 40, 30), (2, 20, 15), strict=True)
    axes = [tiledb.Dim(n, (0, e - 1), tile=c, dtype="uint64", ctx=context) for n, e, c in extents]
    attribute = tiledb.Attr("t", dtype="float32", filters=[tiledb.ZstdFilter()], ctx=context)
    schema = tiledb.ArraySchema(tiledb.Domain(*axes, ctx=context), [attribute], ctx=context)
    tiledb.Array.create(uri, schema, ctx=context)
    with tiledb.open(uri, "w", ctx=context) as array:
        array[:] = field()
    with tiledb.open(uri, "w", ctx=context) as array:
        array[1:3, 5:25, :] = np.full((2, 20, 30), 7, "float32")
        array.meta["units"] = "K"


def write_rows(uri, context):
    import tiledb

    day = tiledb.Dim("day", (0, 9999), tile=100, dtype="int64", ctx=context)
    attributes = [tiledb.Attr("price", dtype="float64", ctx=context), tiledb.Attr("name", dtype="U0", var=True, ctx=context)]
    schema = tiledb.ArraySchema(tiledb.Domain(day, ctx=context), attributes, sparse=True, capacity=50, ctx=context)
    tiledb.Array.create(uri, schema, ctx=context)
    days = np.random.default_rng(4).permutation(9999)[:300]
    with tiledb.open(uri, "w", ctx=context) as array:
        array[days] = {"price": days * 0.25, "name": np.array([f"n{d % 17}" for d in days], dtype="U")}


def dataset():
    import xarray as xr

    t = (("time", "y", "x"), field(), {"units": "K"})
    n = (("time",), np.arange(6, dtype="int32") * 10)
    coordinates = {"time": np.arange(6, dtype="float64"), "y": np.arange(40) * 0.5, "x": np.arange(30, dtype="int32")}
    return xr.Dataset({"t": t, "n": n}, coordinates, {"title": "peers"})


def make(endpoint, folder):
    import h5py
    import obstore
    import tiledb
    from zarr.storage import ObjectStore
    from zarr_vectors.types.points import write_points

    boto(endpoint).create_bucket(Bucket=BUCKET)
    folder = pathlib.Path(folder)
    for name, version, shards in [("v2.zarr", 2, None), ("v3.zarr", 3, None), ("sharded.zarr", 3, (6, 40, 30))]:
        write_zarr(ObjectStore(store(endpoint, name)), version, shards)
        write_zarr(str(folder / name), version, shards)
    for name, write in [("dense.tiledb", write_tiledb), ("rows.tiledb", write_rows)]:
        write(f"s3://{BUCKET}/{name}", tiledb_context(endpoint))
        write(str(folder / name), tiledb.default_ctx())
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("g/t", data=field(), chunks=(2, 20, 15), compression="gzip", shuffle=True)
        file["g/alias"] = h5py.SoftLink("/g/t")
        file["names"] = ["a", "bb", "ß"]
    chunks = {"t": {"chunksizes": (2, 20, 15), "zlib": True}}
    dataset().to_netcdf(folder / "source.nc", engine="netcdf4", format="NETCDF4", encoding=chunks)
    dataset().to_netcdf(folder / "classic.nc", engine="scipy")
    np.savez(folder / "x.npz", t=field(), n=np.arange(5))
    np.save(folder / "large.npy", np.random.default_rng(5).random((9, 1 << 20)))  # 72 MiB
    points = np.random.default_rng(6).uniform(0, 100, (500, 3)).astype("float32")
    np.save(folder / "points.npy", points)
    write_points(str(folder / "points.zv"), points, chunk_shape=(50.0, 50.0, 50.0))
    files = ["x.h5", "source.nc", "classic.nc", "x.npz"]
    for name in files:
        obstore.put(store(endpoint), name, (folder / name).read_bytes())
    names = ["v2.zarr", "v3.zarr", "sharded.zarr", "dense.tiledb", "rows.tiledb", *files]
    print(json.dumps(names))


def objects(endpoint, prefix=None):
    import obstore

    found = obstore.list(store(endpoint), prefix=prefix).collect()
    return [{"key": each["path"], "size": each["size"], "tag": each["e_tag"]} for each in found]


def content(endpoint, key):
    import obstore

    return io.BytesIO(bytes(obstore.get(store(endpoint), key).bytes()))


def through_xarray(endpoint, name):
    import xarray as xr
    from zarr.storage import ObjectStore

    if name.endswith(".zarr"):
        return xr.open_zarr(ObjectStore(store(endpoint, name), read_only=True), consolidated=None).load()
    engine = "scipy" if name == "to3.nc" else "h5netcdf"
    return xr.open_dataset(content(endpoint, name), engine=engine).load()


def tiledb_arrays(endpoint, name):
    import tiledb

    context = tiledb_context(endpoint)
    with tiledb.Group(f"s3://{BUCKET}/{name}", ctx=context) as group:
        for member in group:
            with tiledb.open(member.uri, ctx=context) as array:
                values = array[:]
                first = values if isinstance(values, np.ndarray) else next(iter(values.values()))
                yield member.uri.rstrip("/").rsplit("/", 1)[-1], first


def tet_arrays(endpoint, folder):
    import tet

    (folder / "downloaded.tet").write_bytes(content(endpoint, "to.tet").read())
    file = tet.open(str(folder / "downloaded.tet"))
    for number in range(len(file.dataset_names)):
        dataset = file.dataset(number)
        yield dataset.name.strip("/"), dataset.to_numpy(file)


def check(endpoint, folder):
    import xarray as xr

    folder = pathlib.Path(folder)
    wanted = xr.open_dataset(folder / "source.nc", engine="netcdf4").load()
    for name in ["to2.zarr", "to3.zarr", "sharded-to.zarr", "to.h5", "to.nc", "to3.nc"]:
        found = through_xarray(endpoint, name)
        try:
            xr.testing.assert_equal(found, wanted)
            assert found.attrs["title"] == "peers" and found.t.attrs["units"] == "K"
        except AssertionError as difference:
            print(name, difference)
    arrays = dict(tiledb_arrays(endpoint, "to.tiledb"))
    loaded = np.load(content(endpoint, "to.npz"))
    archive = {name: loaded[name] for name in loaded.files}
    for kind, found in [("tiledb", arrays), ("npz", archive), ("tet", dict(tet_arrays(endpoint, folder)))]:
        if set(found) != set(wanted.variables):
            print(kind, sorted(found), sorted(wanted.variables))
        for name, values in found.items():
            if not np.array_equal(values, wanted[name].values):
                print(kind, name)
    check_points(endpoint, folder)


def check_points(endpoint, folder):
    from zarr_vectors.types.points import read_points

    for each in objects(endpoint, "to.zv"):
        target = folder / "downloaded" / each["key"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content(endpoint, each["key"]).read())
    found = np.asarray(read_points(str(folder / "downloaded/to.zv"))["positions"])
    wanted = np.load(folder / "points.npy")

    def order(rows):
        return rows[np.lexsort(rows.T)]

    if not np.array_equal(order(found), order(wanted)):
        print("to.zv: other points")


def put(endpoint, key):
    import obstore

    obstore.put(store(endpoint), key, b"a note that is no store")


def keys(endpoint):
    unfinished = boto(endpoint).list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    print(json.dumps({"objects": objects(endpoint), "unfinished": [each["Key"] for each in unfinished]}))


def enforce(endpoint):
    import urllib.request

    url, plain = f"{endpoint}/moto-api/reset-auth", {"Content-Type": "text/plain"}
    urllib.request.urlopen(urllib.request.Request(url, b"0", plain, method="POST")).close()


def same(endpoint, key, file):
    print(json.dumps(content(endpoint, key).read() == pathlib.Path(file).read_bytes()))


if __name__ == "__main__":
    {each.__name__: each for each in (serve, make, check, put, keys, same, enforce)}[sys.argv[1]](*sys.argv[2:])
