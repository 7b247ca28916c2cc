"""Data types and codecs beyond the standard ones, as numcodecs, zarr-python and tensorstore write them.

Writes one store a case into a folder, and `cases.json` as `cases.py` does. Narrow numbers are given as the wider ones that we read.
"""

import json
import lzma
import pathlib
import sys
import warnings

import ml_dtypes
import numcodecs
import numcodecs.zarr3 as zarr3
import numpy as np
import tensorstore as ts
import zarr
from numcodecs.pcodec import PCodec
from numcodecs.zfpy import ZFPY

warnings.simplefilter("ignore")
folder = pathlib.Path(sys.argv[1])
cases = []
rng = np.random.default_rng(3)


def add(name, values, node=""):
    case = {"store": name, "node": "/" + node, "shape": list(np.shape(values))}
    if values.dtype.kind == "O":
        case["texts"] = [str(text) for text in values.reshape(-1)]
    else:
        case["values"] = f"{name}.bin"
        (folder / case["values"]).write_bytes(np.ascontiguousarray(values).tobytes())
    cases.append(case)


def smooth(dtype, shape=(10, 13)):
    return (np.cumsum(rng.standard_normal(shape), axis=-1) * 50).astype(dtype)


# numcodecs' compressors and filters in v2.
raw = [{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 1}]
compressors = {
    "lzma": numcodecs.LZMA(), "lzma9": numcodecs.LZMA(preset=9), "alone": numcodecs.LZMA(format=lzma.FORMAT_ALONE),
    "raw": numcodecs.LZMA(format=lzma.FORMAT_RAW, filters=raw), "pcodec": PCodec(), "base64": numcodecs.Base64(),
}
for label, compressor in compressors.items():
    for dtype in ("<i4", "<f8", "<u2"):
        data = smooth(dtype)
        name = f"v2-{label}-{dtype[1:]}"
        array = zarr.create_array(folder / name, shape=data.shape, chunks=(4, 6), dtype=dtype, zarr_format=2, compressors=compressor)
        array[...] = data
        add(name, array[...])
zfp_modes = {"most": {"mode": 2, "rate": 100}, "rate": {"mode": 2, "rate": 9}, "precision": {"mode": 3, "precision": 17}, "tolerance": {"mode": 4, "tolerance": 0.01}}
for label, options in zfp_modes.items():
    for dtype in ("<f4", "<f8", "<i4", "<i8"):
        if label == "tolerance" and "i" in dtype:
            continue
        for shape, chunks in (((10, 13), (4, 6)), ((30,), (7,)), ((5, 6, 7), (5, 4, 7)), ((3, 4, 5, 6), (2, 4, 5, 3))):
            data = smooth(dtype, shape)
            name = f"v2-zfp-{label}-{dtype[1:]}-{len(shape)}"
            array = zarr.create_array(folder / name, shape=shape, chunks=chunks, dtype=dtype, zarr_format=2, compressors=ZFPY(**options))
            array[...] = data
            add(name, array[...])
objects = np.array(["red", "green", "", "blue", "green", "red", "blue"], dtype=object)
for label, codec in {"categorize": numcodecs.Categorize(["red", "green", "blue"], dtype="O"), "json2": numcodecs.JSON()}.items():
    name = f"v2-{label}"
    group = folder / name
    group.mkdir()
    document = {"zarr_format": 2, "shape": [7], "chunks": [4], "dtype": "|O", "fill_value": "", "order": "C", "compressor": None, "filters": [codec.get_config()]}
    (group / ".zarray").write_text(json.dumps(document))
    padded = np.concatenate([objects, np.array([""], dtype=object)])
    for chunk in range(2):
        (group / str(chunk)).write_bytes(bytes(memoryview(codec.encode(padded[4 * chunk : 4 * chunk + 4])).cast("B")))
    add(name, objects)

# numcodecs' codecs in v3.
for dtype in ("int32", "float64", "uint16"):
    data = smooth(dtype)
    for label, options in {
        "lzma": {"compressors": [zarr3.LZMA()]},
        "pcodec": {"serializer": zarr3.PCodec(), "compressors": None},
        "zfpy": {"serializer": zarr3.ZFPY(mode=2, rate=12), "compressors": None},
        "pcodec-shards": {"serializer": zarr3.PCodec(), "compressors": None, "shards": (8, 12)},
    }.items():
        if label == "zfpy" and dtype == "uint16":
            continue
        name = f"v3-{label}-{dtype}"
        array = zarr.create_array(folder / name, shape=data.shape, chunks=(4, 6), dtype=dtype, zarr_format=3, **options)
        array[...] = data
        add(name, array[...])

# tensorstore's narrow types, in both of its drivers.
written = set()
names = [
    "bfloat16", "float8_e3m4", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "int2", "int4", "uint4",
]
for kind in names:
    for driver in ("zarr", "zarr3"):
        for endian in ("little", "big"):
            dtype = np.dtype(getattr(ml_dtypes, kind))
            wide = "int8" if kind.startswith("int") else "uint8" if kind.startswith("uint") else "float32"
            data = rng.integers(-2, 2, (10, 13)) if kind.startswith("int") else rng.standard_normal((10, 13)) * 4
            data = np.abs(data).astype(dtype) if kind.startswith("uint") else data.astype(dtype)
            name = f"ts-{driver}-{kind}-{endian}"
            chunks = {"chunks": [4, 6]}
            if driver == "zarr3":
                codecs = [{"name": "bytes", "configuration": {"endian": endian}}, {"name": "gzip", "configuration": {"level": 3}}]
                chunks = {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}}, "codecs": codecs}
            elif endian == "big":
                continue
            spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(folder / name) + "/"}, "metadata": {"shape": [10, 13], **chunks}}
            try:
                store = ts.open(spec, dtype=kind, create=True).result()
                store.write(data).result()
            except ValueError:
                continue
            written.add((driver, kind))
            add(name, store.read().result().astype(wide))
assert len(written) >= 8, written
(folder / "cases.json").write_text(json.dumps(cases))
