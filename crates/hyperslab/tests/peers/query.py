"""Writes fields as .npy and NumPy's results as expected.json: query.py FOLDER."""

import json
import sys
from pathlib import Path

import numpy as np

assert np.__version__ == "2.4.6", np.__version__
folder = Path(sys.argv[1])
random = np.random.default_rng(7)

REDUCTIONS = {
    "sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max, "var": np.var, "std": np.std, "product": np.prod,
    "norm_l1": lambda x, axis: np.abs(x).sum(axis), "norm_l2": lambda x, axis: np.sqrt(np.square(x).sum(axis)),
    "median": np.median, "argmin": np.argmin, "argmax": np.argmax,
}
SKIPPING = {
    "sum": np.nansum, "mean": np.nanmean, "min": np.nanmin, "max": np.nanmax, "var": np.nanvar, "std": np.nanstd,
    "median": np.nanmedian, "argmin": np.nanargmin,
}

fields = {
    "float32": random.normal(280, 9, (13, 21, 17)).astype("f4"),
    "float64": random.normal(0, 1, (9, 40)),
    "int16": random.integers(-3000, 3000, (31, 12)).astype("i2"),
    "uint8": random.integers(0, 256, (5, 6, 7)).astype("u1"),
    "int64": random.integers(-(2**52), 2**52, (17, 5)),
    "bool": random.integers(0, 2, (40, 3)).astype("?"),
}
fields["float32"][3, 4, 5] = np.nan
fields["float64"][2, 3] = np.inf


def plain(value):
    value = np.asarray(value)
    if value.dtype.kind == "f":
        flat = value.astype("f8").ravel()
        return ["NaN" if np.isnan(v) else "Infinity" if v == np.inf else "-Infinity" if v == -np.inf else v for v in flat.tolist()]
    return value.astype(object).ravel().tolist()


cases = []
with np.errstate(all="ignore"):
    for name, field in fields.items():
        np.save(folder / f"{name}.npy", field)
        wide = field.astype("f8") if field.dtype.kind == "f" else field.astype("i8") if field.dtype.kind != "b" else field.astype("i8")
        for axes in [None] + list(range(field.ndim)) + ([(0, 2)] if field.ndim > 2 else []):
            over = [] if axes is None else [axes] if isinstance(axes, int) else list(axes)
            for skip, table in ((False, REDUCTIONS), (True, SKIPPING)):
                for key, reduce in table.items():
                    if isinstance(axes, tuple) and key.startswith("arg"):
                        continue
                    if key in ("product", "norm_l2") and field.dtype.kind == "i":
                        continue  # NumPy wraps around; ours do not.
                    if key == "product" and field.dtype.kind in "u":
                        continue
                    cases.append({"file": name, "operation": key, "over": over, "skip_nan": skip, "values": plain(reduce(wide, axis=axes))})
(folder / "expected.json").write_text(json.dumps(cases))
