"""Creates seeds beyond the golden files: small HDF5 files with one kind of index, heap or layout each (needs h5py), and Zarr
stores in one file."""

import base64
import json
import pathlib
import zipfile

import h5py
import numpy as np

SEEDS = pathlib.Path(__file__).parent
HERE = SEEDS / "hdf5"
STORES = SEEDS.parent.parent / "crates/hyperslab-zarr/tests/golden/stores"


def create(name, **options):
    return h5py.File(HERE / f"{name}.h5", "w", **options)


def main():
    HERE.mkdir(exist_ok=True)
    latest, earliest = {"libver": "latest"}, {"libver": "earliest"}
    values = np.arange(24, dtype="<i2")
    with create("btree1", **earliest) as f:
        f.create_dataset("d", data=values, chunks=(4,), maxshape=(None,), compression="gzip", shuffle=True)
    with create("single", **latest) as f:
        f.create_dataset("d", data=values, chunks=(24,), compression="gzip", fletcher32=True)
    with create("implicit", **latest) as f:
        space = h5py.h5s.create_simple((24,))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4,))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        h5py.h5d.create(f.id, b"d", h5py.h5t.NATIVE_INT16, space, plist)
    with create("fixed", **latest) as f:
        f.create_dataset("d", data=values, chunks=(4,), compression="gzip")
    with create("fixed_pages", **latest) as f:
        f.create_dataset("d", data=np.arange(1100, dtype="u1"), chunks=(1,))
    with create("extensible", **latest) as f:
        f.create_dataset("d", data=np.arange(60, dtype="u1"), chunks=(1,), maxshape=(None,))
    with create("extensible_filtered", **latest) as f:
        f.create_dataset("d", data=np.arange(120, dtype="u1"), chunks=(4,), maxshape=(None,), compression="lzf")
    with create("btree2", **latest) as f:
        d = f.create_dataset("d", shape=(6, 6), dtype="i4", chunks=(2, 2), maxshape=(None, None))
        d[...] = 3
    with create("old_group", **earliest) as f:
        for number in range(12):
            f.create_group(f"g{number}")
        f["soft"] = h5py.SoftLink("/g1")
        f["outside"] = h5py.ExternalLink("other.h5", "/x")
    with create("dense_group", track_order=True, **latest) as f:
        for number in range(20):
            f.create_group(f"g{number}")
    with create("dense_attributes", **latest) as f:
        for number in range(12):
            f.attrs[f"a{number}"] = np.arange(number)
    with create("variable", **latest) as f:
        f.create_dataset("s", data=["a", "bc", ""], dtype=h5py.string_dtype())
        lists = f.create_dataset("l", (2,), dtype=h5py.vlen_dtype("i4"), chunks=(1,))
        lists[0] = [1, 2]
        f.create_dataset("r", data=[f.ref, f["s"].ref], dtype=h5py.ref_dtype)
        f.attrs["text"] = "é"
    with create("compound", **earliest) as f:
        kind = np.dtype([("x", "<f4"), ("n", "S3"), ("v", "<i2", (2,))])
        f.create_dataset("d", data=np.zeros(3, kind), chunks=(2,))
        f.create_dataset("e", data=np.array([0, 1]), dtype=h5py.enum_dtype({"A": 0, "B": 1}))
        f["t"] = np.dtype("<i8")
    with create("virtual", **latest) as f:
        f["s"] = values
        layout = h5py.VirtualLayout((2, 24), "<i2")
        layout[0] = h5py.VirtualSource(".", "s", (24,))
        f.create_virtual_dataset("d", layout, fillvalue=-1)
    with create("scales", **latest) as f:
        f["x"] = np.arange(4.0)
        f["d"] = np.zeros((4, 2))
        f["x"].make_scale("x")
        f["d"].dims[0].attach_scale(f["x"])


def hdf5_headers():
    """The messages of object headers: type, flags, length and body of each."""
    folder = SEEDS / "hdf5_header"
    folder.mkdir(exist_ok=True)
    found = {}
    for name in ["latest.h5", "netcdf.h5"]:
        data = (SEEDS.parent.parent / "crates/hyperslab-hdf5/tests/golden" / name).read_bytes()
        at = data.find(b"OHDR\x02")
        while at >= 0:
            flags = data[at + 5]
            start = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
            width = 1 << (flags & 3)
            end = start + width + int.from_bytes(data[start : start + width], "little")
            position, seed, kinds = start + width, b"", ()
            while position + 4 <= end:
                kind, length = data[position], int.from_bytes(data[position + 1 : position + 3], "little")
                body = position + 4 + (2 if flags & 4 else 0)
                if kind not in (0, 16):
                    kinds += (kind, length // 8)
                    seed += bytes([kind, data[position + 3]]) + length.to_bytes(2, "little") + data[body : body + length]
                position = body + length
            if len(seed) < 600:
                found[kinds] = seed
            at = data.find(b"OHDR\x02", at + 4)
    for number, seed in enumerate(sorted(found.values())):
        (folder / f"{number:02}").write_bytes(seed)


def zarr_files():
    folder = SEEDS / "zarr_file"
    folder.mkdir(exist_ok=True)
    for name, method in [("tree_v2", zipfile.ZIP_STORED), ("tree_v3", zipfile.ZIP_DEFLATED), ("shard", zipfile.ZIP_STORED)]:
        with zipfile.ZipFile(folder / f"{name}.zip", "w", method) as archive:
            for path in sorted((STORES / name).rglob("*")):
                if path.is_file():
                    key = path.relative_to(STORES / name).as_posix()
                    archive.writestr(zipfile.ZipInfo(key, (1980, 1, 1, 0, 0, 0)), path.read_bytes(), method)
    for name in ["tree_v2", "codec_zstdcrc"]:
        refs = {}
        for path in sorted((STORES / name).rglob("*")):
            if path.is_file():
                bytes_ = path.read_bytes()
                key = path.relative_to(STORES / name).as_posix()
                is_text = path.name.startswith(".z") or path.suffix == ".json"
                refs[key] = bytes_.decode() if is_text else "base64:" + base64.b64encode(bytes_).decode()
        refs["t/0.9"] = ["{{u}}", 4, 5]
        document = {"version": 1, "templates": {"u": "data/x.bin"}, "refs": refs}
        (folder / f"{name}.json").write_text(json.dumps(document))


if __name__ == "__main__":
    main()
    hdf5_headers()
    zarr_files()
