"""Creates stores, and reads them through Zarr over HTTP with zarr-python and tensorstore."""

import json
import pathlib
import sys

import numpy as np

EXPECTED = "expected.npz"


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        "cube": rng.standard_normal((7, 30, 41)).astype("f4"),
        "image": (rng.standard_normal((50, 33)) * 100).astype("i2"),
        "line": np.arange(101, dtype="f8"),
        "bytes": rng.integers(0, 255, (20, 20), dtype="u1"),
    }


def make(folder: pathlib.Path) -> None:
    import h5py
    import zarr

    data = arrays()
    np.savez(folder / EXPECTED, **data)
    chunks = {"cube": (2, 16, 16), "image": (20, 16), "line": (25,), "bytes": (10, 10)}
    with h5py.File(folder / "chunked.h5", "w") as file:
        for name, values in data.items():
            file.create_dataset(name, data=values, chunks=chunks[name])
    with h5py.File(folder / "gzip.h5", "w") as file:
        for name, values in data.items():
            file.create_dataset(f"group/{name}", data=values, chunks=chunks[name], compression="gzip", shuffle=name == "cube")
        file.create_dataset("group/big", data=data["cube"].astype(">f4"))
        file.create_dataset("group/flat", data=data["cube"])
        file["group"].attrs["title"] = "a group"
    group = zarr.open_group(folder / "zstd.zarr", mode="w", zarr_format=3)
    for name, values in data.items():
        group.create_array(name, data=values, chunks=chunks[name])
    old = zarr.open_group(folder / "old.zarr", mode="w", zarr_format=2)
    for name, values in data.items():
        old.create_array(name, data=values, chunks=chunks[name])


def gdal(stores: list[str], url: str, expected: dict[str, np.ndarray], check, differences: list[str]) -> None:
    """Reads Zarr v2 over HTTP with GDAL (from rasterio) and with zarr-python."""
    import rasterio
    import zarr

    for store in stores:
        root = zarr.open_group(f"{url}/zarr2/{store}", mode="r", zarr_format=2)
        arrays = [(path, node) for path, node in root.members(max_depth=None) if isinstance(node, zarr.Array)]
        for path, array in arrays:
            name = path.split("/")[-1]
            wanted = expected[{"big": "cube", "flat": "cube"}.get(name, name)]
            check(f"zarr-python v2 {store}/{path}", np.asarray(array[...]), wanted)
            try:
                with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"), rasterio.open(f'ZARR:"/vsicurl/{url}/zarr2/{store}/{path}"') as data:
                    check(f"GDAL {store}/{path}", data.read().reshape(wanted.shape), wanted)
            except rasterio.errors.RasterioError as error:
                differences.append(f"GDAL {store}/{path}: {error}")


def compare(folder: pathlib.Path, url: str) -> None:
    import tensorstore
    import zarr

    expected = dict(np.load(folder / EXPECTED))
    count, differences = 0, []

    def check(what: str, found: np.ndarray, wanted: np.ndarray) -> None:
        nonlocal count
        count += 1
        if found.shape != wanted.shape or not np.array_equal(found, wanted):
            differences.append(f"{what}: {found.dtype} {found.shape}, {np.sum(found != wanted) if found.shape == wanted.shape else 'another shape'} differ")

    stores = ["chunked.h5", "chunked.tet", "chunked.tiledb", "chunked.nc", "chunked.zarr", "gzip.h5", "zstd.zarr", "old.zarr"]
    for store in stores:
        for prefix in ("zarr", "zarr-numcodecs"):
            base = f"{url}/{prefix}/{store}"
            root = zarr.open_group(base, mode="r", zarr_format=3)
            known = dict(root.members(max_depth=None))
            found = {path: node for path, node in known.items() if isinstance(node, zarr.Array)}
            if len(found) < 4:
                differences.append(f"{base}: only {sorted(found)}")
            for path, array in found.items():
                name = path.split("/")[-1]
                name = {"big": "cube", "flat": "cube"}.get(name, name)
                if name not in expected:
                    differences.append(f"{base}: {path} is unexpected")
                    continue
                wanted = expected[name]
                check(f"zarr-python {base}/{path}", np.asarray(array[...]), wanted)
                if prefix == "zarr":
                    spec = {"driver": "zarr3", "kvstore": f"{base}/{path}/"}
                    opened = tensorstore.open(spec, read=True, open=True).result()
                    check(f"tensorstore {base}/{path}", np.asarray(opened.read().result()), wanted)
    gdal(stores, url, expected, check, differences)
    print(count)
    sys.stdout.write("\n".join(differences))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]))
    else:
        compare(pathlib.Path(sys.argv[2]), sys.argv[3])
