"""The peers' side of the remote benchmarks: `remote_peer.py CASE ENDPOINT BUCKET FILE` prints the median seconds of a case."""

import os
import shutil
import sys

import numpy as np
from peers import median

# Keep clients from searching for credentials elsewhere.
os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
SHAPE, CHUNK, SHARD = (100, 512, 512), (1, 128, 128), (10, 512, 512)
SELECTIONS = {"plane": np.s_[50], "series": np.s_[:, 100, 200], "all": np.s_[...]}


def make(folder):
    """Writes the field in every format, and a NetCDF-4 file with twenty variables in three groups."""
    import h5py
    import netCDF4
    import tiledb
    import zarr
    from zarr.codecs import ZstdCodec

    rows, columns = np.mgrid[: SHAPE[1], : SHAPE[2]]
    noise = np.random.default_rng(1)
    field = np.stack(
        [
            np.sin(plane * 0.1) * 40 + np.cos(rows * 0.017) * 25 + columns * 0.01 + noise.normal(0, 0.2, rows.shape)
            for plane in range(SHAPE[0])
        ]
    ).astype("f4")
    # Half of each chunk is land, so that the field takes 47 MB with Zstandard, as in the measurements behind the targets.
    field[:, columns % CHUNK[2] >= CHUNK[2] // 2] = 0
    with h5py.File(f"{folder}/field.h5", "w") as file:
        file.create_dataset("t", data=field, chunks=CHUNK, compression="gzip", compression_opts=4, shuffle=True)
    for name, shards in [("field.zarr", None), ("shards.zarr", SHARD)]:
        array = zarr.create_array(
            f"{folder}/{name}", overwrite=True, shape=SHAPE, chunks=CHUNK, shards=shards, dtype="f4", compressors=ZstdCodec(level=3)
        )
        array[...] = field
    domain = tiledb.Domain(
        *[tiledb.Dim(n, domain=(0, s - 1), tile=c, dtype="int64") for n, s, c in zip("zyx", SHAPE, CHUNK, strict=True)]
    )
    value = tiledb.Attr("t", dtype="f4", filters=tiledb.FilterList([tiledb.ZstdFilter(level=3)]))
    shutil.rmtree(f"{folder}/field.tiledb", ignore_errors=True)
    tiledb.Array.create(f"{folder}/field.tiledb", tiledb.ArraySchema(domain=domain, attrs=[value]))
    with tiledb.open(f"{folder}/field.tiledb", "w") as array:
        array[:] = field
    with netCDF4.Dataset(f"{folder}/many.nc", "w") as file:
        for group in ["surface", "ocean", "ice"]:
            own = file.createGroup(group)
            for name, size in [("time", 100), ("lat", 180), ("lon", 360)]:
                own.createDimension(name, size)
            for number in range(20 if group == "surface" else 4):
                variable = own.createVariable(
                    f"v{number}", "f4", ("time", "lat", "lon"), zlib=True, complevel=1, chunksizes=(10, 90, 180)
                )
                variable.units = "K"
                if number < 4:
                    variable[:] = noise.normal(size=(100, 180, 360)).astype("f4").round(1)


def blocks(endpoint, bucket, file):
    import fsspec

    return fsspec.filesystem("http").open(f"{endpoint}/{bucket}/{file}", block_size=8 << 20, cache_type="blockcache")


def h5py(case):
    import h5py

    def run(endpoint, bucket, file):
        with h5py.File(blocks(endpoint, bucket, file)) as opened:
            opened["t"][SELECTIONS[case]]

    return run


def xarray_list(endpoint, bucket, file):
    import xarray

    xarray.open_datatree(blocks(endpoint, bucket, file), engine="h5netcdf").close()


def zarr(case):
    import zarr
    from obstore.store import S3Store
    from zarr.storage import ObjectStore

    zarr.config.set({"async.concurrency": 64})

    def run(endpoint, bucket, file):
        options = {"allow_http": True}
        store = S3Store(
            bucket, prefix=file, endpoint=endpoint, skip_signature=True, region="us-east-1", client_options=options
        )
        if case == "list":
            list(zarr.open_consolidated(ObjectStore(store, read_only=True)).members(max_depth=None))
        else:
            zarr.open_array(ObjectStore(store, read_only=True), mode="r")[SELECTIONS[case]]

    return run


def tensorstore(case):
    import tensorstore

    def run(endpoint, bucket, file):
        place = {"driver": "http", "base_url": endpoint, "path": f"/{bucket}/{file}/"}
        context = tensorstore.Context({"cache_pool": {"total_bytes_limit": 0}})
        array = tensorstore.open({"driver": "zarr3", "kvstore": place}, context=context, read=True).result()
        array[SELECTIONS[case]].read().result()

    return run


def tiledb(case):
    import tiledb

    def run(endpoint, bucket, file):
        context = tiledb.Ctx(
            {
                "vfs.s3.endpoint_override": endpoint.removeprefix("http://"),
                "vfs.s3.scheme": "http",
                "vfs.s3.region": "us-east-1",
                "vfs.s3.use_virtual_addressing": "false",
            }
        )
        with tiledb.open(f"s3://{bucket}/{file}", ctx=context) as array:
            array[SELECTIONS[case]]

    return run


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    if name == "make":
        make(*arguments)
    else:
        library, _, what = name.partition("_")
        run = xarray_list if name == "xarray_list" else globals()[library](what)
        median(lambda: run(*arguments))
