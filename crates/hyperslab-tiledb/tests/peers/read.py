"""Reads every array under a folder with the real library, tries its other operations, and reports the results."""

import json
import os
import sys

import numpy as np
import tiledb

from cases import context, nested, plain

NUMERIC = set("biuf")


def aggregates(array):
    """Results that the library takes from the fragment metadata if possible."""
    found = {}
    for index in range(array.schema.nattr):
        attr = array.schema.attr(index)
        if attr.isvar or attr.dtype.kind not in "iuf" or attr.isnullable:
            continue
        ask = {attr.name: ["min", "max", "sum"]}
        got = array.query().agg(ask)
        got = got[...] if array.schema.sparse else got[:]
        got = got.get(attr.name, got)
        found[attr.name] = {name: plain(value) for name, value in got.items()}
    return found


def read(uri, ctx):
    with tiledb.open(uri, ctx=ctx) as array:
        got = array[:]
        if not isinstance(got, dict):
            got = {array.schema.attr(0).name: got}
        found = {"values": {name: nested(values) for name, values in got.items()}}
        found["meta"] = {key: plain(value) for key, value in array.meta.items()}
        found["aggregates"] = aggregates(array)
        if array.schema.sparse:
            found["rows"] = len(next(iter(got.values())))
        return found


def main(root):
    for name in sorted(os.listdir(root)):
        uri = os.path.join(root, name, "array")
        ctx = context("0123456789abcdef0123456789ABCDEF") if "encrypted" in name else tiledb.Ctx()
        print(name, file=sys.stderr, flush=True)
        found = {}
        if tiledb.object_type(uri, ctx=ctx) == "group":
            with tiledb.Group(uri) as group:
                found["members"] = sorted(member.name for member in group)
                found["meta"] = {key: plain(value) for key, value in group.meta.items()}
        else:
            found = read(uri, ctx)
            # Errors that only the library would notice: it must be able to continue with the array.
            tiledb.consolidate(uri, ctx=ctx)
            tiledb.vacuum(uri, ctx=ctx)
            again = read(uri, ctx)
            found["same"] = again["values"] == found["values"] or found.get("rows") is not None
        with open(os.path.join(root, name, "found.json"), "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
