"""Writes arrays along time in every calendar of CF, and prints what xarray selects by date as JSON."""
import json, sys, warnings

import netCDF4
import numpy as np
import xarray as xr

warnings.simplefilter("ignore")
folder = sys.argv[1]
COUNT = 1300
CASES = [
    ("standard", "hours since 1999-12-20 06:00:00"), ("proleptic_gregorian", "days since 2000-01-01"),
    ("noleap", "days since 2000-01-01"), ("all_leap", "days since 2000-01-01"), ("360_day", "days since 2000-01-01"),
    ("julian", "days since 2000-01-01"), ("standard", "days since 1582-09-20"),
    ("standard", "minutes since 2000-01-01 00:00:00 +02:00"),
]
answers = []


def ends(values):
    """The first and last value, and the number of values."""
    values = values.tolist()
    assert values == list(range(values[0], values[-1] + 1)) if values else True
    return [values[0], values[-1], len(values)] if values else []


for number, (calendar, units) in enumerate(CASES):
    file = f"{number}.nc"
    step = {"h": 6, "d": 0.25, "m": 360}[units[0]]
    with netCDF4.Dataset(f"{folder}/{file}", "w") as ds:
        ds.createDimension("time", None)
        t = ds.createVariable("time", "f8", ("time",))
        t.units, t.calendar = units, calendar
        t[:] = np.arange(COUNT) * step
        ds.createVariable("v", "i4", ("time",))[:] = np.arange(COUNT)
    v = xr.open_dataset(f"{folder}/{file}", engine="netcdf4", use_cftime=True).v.load()
    year = 1582 if "1582" in units else 2000
    for first, last in [
        (f"{year}", f"{year}"), (f"{year}-02", f"{year}-02"), (f"{year}-10-01", f"{year}-10-20"), (f"{year}-01-05", f"{year}-02"),
        (None, f"{year}-01-03"), (f"{year}-12-30", None), (f"{year}-10-04T12", f"{year}-10-15T06:00"),
        ("1700-01-01", "1700-02"),
    ]:
        values = ends(v.sel(time=slice(first, last)).values)
        answers.append({"file": file, "selection": f"time={first or ''}..{last or ''}", "values": values})
    # An existing day, and a missing one.
    day = f"{year}-10-02"
    answers.append({"file": file, "selection": f"time={day}", "values": ends(v.sel(time=day).values)})
    answers.append({"file": file, "selection": "time=1700-01-01", "values": None})
    moment = v.time.values[17]
    label = f"{moment.year:04}-{moment.month:02}-{moment.day:02}T{moment.hour:02}:{moment.minute:02}"
    answers.append({"file": file, "selection": f"time~{label}", "values": [17, 17, 1]})
print(json.dumps(answers))
