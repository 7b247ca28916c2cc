"""Describes NetCDF classic files as the NetCDF library and scipy read them.

    read.py FILE...       prints a list of descriptions; they must agree
"""
import json, os, sys

import numpy as np
from scipy.io import netcdf_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "golden"))
from make import described, plain


def by_scipy(path):
    with netcdf_file(path, "r", mmap=False) as file:
        return {name: {"shape": list(own.shape), "values": plain(own[...] if own.shape else own.getValue())}
                for name, own in file.variables.items()}


found = []
for path in sys.argv[1:]:
    one = described(path)
    if one["model"] != "NETCDF3_64BIT_DATA":  # scipy does not know CDF-5
        for name, other in by_scipy(path).items():
            own = one["variables"][name]
            assert own["shape"] == other["shape"], (path, name, own["shape"], other["shape"])
            assert own["values"] == other["values"] or np.array_equal(own["values"], other["values"], equal_nan=True), (path, name)
    found.append(one)
print(json.dumps(found))
