"""Stores that tensorstore writes, with their values, in the form of `cases.py`."""

import json
import pathlib
import sys

import numpy as np
import tensorstore as ts

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(1)
cases = []


def write(name, data, spec):
    spec = spec | {"kvstore": {"driver": "file", "path": f"{folder}/{name}/"}}
    store = ts.open(spec, create=True, dtype=data.dtype.name, shape=list(data.shape)).result()
    half = tuple(slice(0, max(1, n * 2 // 3)) for n in data.shape)
    store[half].write(data[half]).result()
    values = np.ascontiguousarray(store.read().result())
    (folder / f"{name}.bin").write_bytes(values.tobytes())
    cases.append({"store": name, "node": "/", "shape": list(data.shape), "values": f"{name}.bin"})


def v3(chunks, codecs, **more):
    grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
    return {"driver": "zarr3", "metadata": {"chunk_grid": grid, "codecs": codecs} | more}


little, big = ({"name": "bytes", "configuration": {"endian": order}} for order in ("little", "big"))
zstd = {"name": "zstd", "configuration": {"level": 3}}
gzip = {"name": "gzip", "configuration": {"level": 3}}
crc = {"name": "crc32c"}
index = [little, crc]
flip = {"name": "transpose", "configuration": {"order": [2, 0, 1]}}


def shard(chunks, codecs, location="end"):
    return {"name": "sharding_indexed", "configuration": {"chunk_shape": chunks, "codecs": codecs, "index_codecs": index, "index_location": location}}


for dtype in ("bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128"):
    data = rng.integers(0, 100, (7, 9, 5)).astype(dtype)
    write(f"ts3_{dtype}", data, v3([3, 4, 2], [little, zstd]))
    write(f"ts2_{dtype}", data, {"driver": "zarr", "metadata": {"chunks": [3, 4, 2], "compressor": {"id": "zlib", "level": 3}}})
data = rng.integers(0, 10**6, (14, 15, 13)).astype("int32")
blosc = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}
for name, codecs in {
    "raw": [little], "big": [big], "gzip": [little, gzip], "crc": [little, crc], "zstdcrc": [little, zstd, crc], "blosc": [little, blosc],
    "flip": [flip, little], "flipzstd": [flip, big, zstd],
}.items():
    write(f"ts3_{name}", data, v3([4, 5, 6], codecs))
    write(f"ts3_shard_{name}", data, v3([8, 10, 12], [shard([4, 5, 6], codecs)], fill_value=3, data_type="int32"))
write("ts3_shard_start", data, v3([8, 10, 12], [shard([4, 5, 6], [little, zstd], "start")]))
write("ts3_shard_nested", data, v3([16, 20, 24], [shard([8, 10, 12], [shard([4, 5, 6], [little, zstd])])]))
write("ts3_flip_shard", data, v3([8, 10, 12], [flip, shard([6, 4, 5], [flip, little])]))
write("ts3_dots", data, v3([4, 5, 6], [little], chunk_key_encoding={"name": "default", "configuration": {"separator": "."}}))
write("ts3_v2keys", data, v3([4, 5, 6], [little], chunk_key_encoding={"name": "v2"}))
for order in "CF":
    for name, compressor in {"raw": None, "blosc": {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2}, "bz2": {"id": "bz2", "level": 5}, "zstd": {"id": "zstd", "level": 3}}.items():
        write(f"ts2_{name}_{order}", data, {"driver": "zarr", "metadata": {"chunks": [4, 5, 6], "compressor": compressor, "order": order, "dimension_separator": "/"}})
(folder / "cases.json").write_text(json.dumps(cases))
