"""The versions of the peers that are installed, one a line."""

import importlib.metadata
import platform

print("python", platform.python_version())
for name in ["numpy", "h5py", "hdf5plugin", "netCDF4", "tiledb", "zarr", "numcodecs", "tensorstore", "zarr-vectors", "tet-py", "xarray", "dask", "scipy", "pandas"]:
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        pass
