"""Opens every file of a folder, written by us, with h5py and netCDF4, and stores what they read.

`NAME.json` has what `expect.py` finds; `NAME.layout.json` what only a writer chooses: limits, fill values, filters,
indexes; `NAME.dimensions.json` what netCDF4 makes of files whose name starts with `netcdf`.
"""

import json
import pathlib
import sys

import h5py
import hdf5plugin  # noqa: F401  registers filters
import netCDF4
import numpy as np

import expect


def layout(path):
    """Limits, fill values and filters by dataset."""
    found = {}
    with h5py.File(path, "r") as file:

        def visit(name, item):
            if not isinstance(item, h5py.Dataset):
                return
            created = item.id.get_create_plist()
            filters = [created.get_filter(index) for index in range(created.get_nfilters())]
            fill = None
            if item.dtype.kind in "iuf" and item.dtype.itemsize <= 8:
                fill = float(item.fillvalue)
            found["/" + name] = {
                "max": [-1 if most is None else most for most in item.maxshape],
                "fill": fill,
                "filters": [entry[0] for entry in filters],
                "values": [list(entry[2]) for entry in filters],
                "layout": int(created.get_layout()),
                "size": item.id.get_storage_size(),
            }

        file.visititems(visit)
    return found


def dimensions(path):
    """The dimensions as netCDF4 reads them."""

    def group(node):
        return {
            "dimensions": {name: [len(own), own.isunlimited()] for name, own in node.dimensions.items()},
            "variables": {
                name: {"dimensions": list(own.dimensions), "values": np.asarray(own[...]).tolist()}
                for name, own in node.variables.items()
            },
            "groups": {name: group(own) for name, own in node.groups.items()},
        }

    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return group(file)


for path in sorted(pathlib.Path(sys.argv[1]).glob("*.h5")):
    path.with_suffix(".json").write_text(json.dumps(expect.expect(path)))
    path.with_suffix(".layout.json").write_text(json.dumps(layout(path)))
    if path.name.startswith("netcdf"):
        path.with_suffix(".dimensions.json").write_text(json.dumps(dimensions(path)))
