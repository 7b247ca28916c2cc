"""Reads the Arrow and Parquet files of a folder and prints their types and values as JSON."""

import datetime
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet


def plain(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def describe(table):
    table.validate(full=True)
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        # Python's times cannot hold nanoseconds.
        values = column.cast(pa.int64()) if column.type == pa.timestamp("ns") else column
        columns[name] = {"type": str(column.type), "values": plain(values.to_pylist())}
    return columns


folder = Path(sys.argv[1])
answer = {}
for path in sorted(folder.iterdir()):
    if path.suffix == ".arrow":
        answer[path.name] = describe(pa.ipc.open_file(str(path)).read_all())
    elif path.suffix == ".parquet":
        answer[path.name] = describe(pa.parquet.read_table(path))
print(json.dumps(answer))
