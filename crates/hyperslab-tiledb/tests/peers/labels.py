"""An array with labels along its dimension: labels.py write|read ARRAY. Reading checks that the labels are still there."""

import sys

import numpy as np
import tiledb

action, path = sys.argv[1:]
if action == "write":
    dim = tiledb.Dim("x", domain=(0, 99), tile=10, dtype=np.int64)
    domain = tiledb.Domain(dim)
    labels = {0: {"place": dim.create_label_schema("increasing", np.int64)}}
    schema = tiledb.ArraySchema(domain=domain, attrs=[tiledb.Attr("a", dtype=np.int32)], dim_labels=labels)
    context = tiledb.default_ctx()
    rectangle = tiledb.NDRectangle(context, domain)
    rectangle.set_range("x", 0, 19)
    current = tiledb.CurrentDomain(context)
    current.set_ndrectangle(rectangle)
    schema.set_current_domain(current)
    tiledb.Array.create(path, schema)
    with tiledb.open(path, "w") as array:
        array[0:20] = {"a": np.arange(20, dtype=np.int32), "place": np.arange(20) * 10}
else:
    with tiledb.open(path) as array:
        assert array.schema.has_dim_label("place"), "the label is gone"
        found = array.label_index(["place"])[30:60]
        assert found["a"].tolist() == [3, 4, 5, 6], found
        assert found["place"].tolist() == [30, 40, 50, 60], found
        assert array[20:30]["a"].tolist() == list(range(20, 30)), array[20:30]
