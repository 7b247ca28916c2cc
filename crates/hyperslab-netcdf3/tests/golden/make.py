"""Creates NetCDF classic files with the NetCDF library (netCDF4-python) and scipy, and describes what each reads from its own.

    make.py FOLDER        writes NAME.nc and NAME.json for every case

Run with `golden` as the folder to make the committed files anew.
"""
import json, struct, sys

import netCDF4
import numpy as np
from scipy.io import netcdf_file

KINDS = {"classic": "NETCDF3_CLASSIC", "offset64": "NETCDF3_64BIT_OFFSET", "data64": "NETCDF3_64BIT_DATA"}


def plain(value):
    """A value as JSON: characters as text, numbers unchanged."""
    value = np.asarray(value)
    if value.dtype.kind == "S":
        return [item.decode() for item in value.ravel().tolist()]
    return value.ravel().tolist()


def attributes(owner):
    found = {}
    for name in owner.ncattrs():
        value = owner.getncattr(name)
        found[name] = value if isinstance(value, str) else plain(value)
    return found


def described(path):
    """The contents as the NetCDF library reads them."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        variables = {}
        for name, own in file.variables.items():
            variables[name] = {
                "dtype": own.dtype.str[1:] if own.dtype != str else "str",
                "dimensions": list(own.dimensions),
                "shape": list(own.shape),
                "unlimited": [file.dimensions[d].isunlimited() for d in own.dimensions],
                "attributes": attributes(own),
                "values": plain(own[...]),
            }
        return {"model": file.data_model, "attributes": attributes(file), "variables": variables,
                "dimensions": {name: len(own) for name, own in file.dimensions.items()}}


def common(file, extended):
    """Fixed and record variables of every type."""
    file.createDimension("time", None)
    for name, length in (("x", 3), ("y", 5), ("unused", 7), ("string6", 6)):
        file.createDimension(name, length)
    types = ["i1", "i2", "i4", "f4", "f8"] + (["u1", "u2", "u4", "i8", "u8"] if extended else [])
    for number, kind in enumerate(types):
        fixed = file.createVariable(f"fixed_{kind}", kind, ("y", "x"))
        fixed[:] = np.arange(15).reshape(5, 3) * (number + 1)
        record = file.createVariable(f"record_{kind}", kind, ("time", "x"))
        record[:] = (np.arange(21).reshape(7, 3) - (0 if kind[0] == "u" else 10)) * (number + 1)
        fixed.setncattr("range", np.array([1, 2, 3], kind))
        fixed.setncattr("one", np.array(9, kind))
    time = file.createVariable("time", "f8", ("time",))
    time.units = "days since 2000-01-01"
    time[:] = np.arange(7) * 1.5
    x = file.createVariable("x", "f4", ("x",))
    x[:] = [0.5, 1.5, 2.5]
    scalar = file.createVariable("scalar", "i4", ())
    scalar[...] = 42
    filled = file.createVariable("filled", "i2", ("time", "x"), fill_value=-7)
    filled[:] = -7
    unwritten = file.createVariable("unwritten", "f8", ("x",))
    text = file.createVariable("text", "S1", ("x", "string6"))
    text[:] = netCDF4.stringtochar(np.array([b"abc", b"", b"sixsix"], "S6"))
    file.title = "héllo"
    file.empty = ""
    file.setncattr("none", np.array([], "f4"))
    file.setncattr("numbers", np.array([1.5, -2.5]))


def make(folder):
    names = []

    def keep(name):
        with open(f"{folder}/{name}.json", "w") as out:
            json.dump(described(f"{folder}/{name}.nc"), out, indent=0)
        names.append(name)

    for name, kind in KINDS.items():
        with netCDF4.Dataset(f"{folder}/{name}.nc", "w", format=kind) as file:
            common(file, name == "data64")
        keep(name)
    # A single record variable is not padded, whatever its type; several are.
    for name, own in (("single_short", "i2"), ("single_byte", "i1"), ("single_char", "S1"), ("single_double", "f8")):
        with netCDF4.Dataset(f"{folder}/{name}.nc", "w", format="NETCDF3_CLASSIC") as file:
            file.createDimension("time", None)
            file.createDimension("x", 3)
            fixed = file.createVariable("fixed", "i1", ("x",))
            fixed[:] = [1, 2, 3]
            values = np.arange(15).reshape(5, 3)
            record = file.createVariable("record", own, ("time", "x"))
            record[:] = np.array([b"a", b"b", b"c"] * 5).reshape(5, 3) if own == "S1" else values
        keep(name)
    with netCDF4.Dataset(f"{folder}/no_records.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("record", "f4", ("time", "x"))
        file.createVariable("other", "i2", ("time",))
    keep("no_records")
    with netCDF4.Dataset(f"{folder}/nothing.nc", "w", format="NETCDF3_64BIT_OFFSET"):
        pass
    keep("nothing")
    for version in (1, 2):
        for records in (1, 2):
            name = f"scipy_{version}_{records}"
            file = netcdf_file(f"{folder}/{name}.nc", "w", version=version)
            file.createDimension("time", None)
            file.createDimension("x", 3)
            file.history = "written by scipy"
            for number in range(records):
                own = file.createVariable(f"v{number}", "h", ("time", "x"))
                own[:] = np.arange(12).reshape(4, 3) + number
            fixed = file.createVariable("fixed", "d", ("x",))
            fixed[:] = [1, 2, 3]
            fixed.units = "m"
            file.close()
            keep(name)
    # A stream: the number of records is undefined. No library reads it, so the description is that of the same file
    # with the number set.
    for name, source in (("stream", "classic"), ("stream_single", "single_short"), ("stream_wide", "data64")):
        with open(f"{folder}/{source}.nc", "rb") as file:
            content = bytearray(file.read())
        width = 8 if content[3] == 5 else 4
        content[4:4 + width] = b"\xff" * width
        with open(f"{folder}/{name}.nc", "wb") as out:
            out.write(content)
        with open(f"{folder}/{source}.json") as file, open(f"{folder}/{name}.json", "w") as out:
            out.write(file.read())
        names.append(name)
    return names


if __name__ == "__main__":
    print(*make(sys.argv[1]))
