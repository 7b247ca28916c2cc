"""Reads a file with tet-py: `read.py FILE FOLDER` writes each dataset's elements to FOLDER/N.bin."""

import json
import sys
from pathlib import Path

import tet

assert tet.__version__ == "0.8.3", tet.__version__

file, folder = tet.open(sys.argv[1]), Path(sys.argv[2])
found = []
for number in range(len(file.dataset_names)):
    dataset = file.dataset(number)
    values = dataset.to_numpy(file)
    (folder / f"{number}.bin").write_bytes(values.astype(values.dtype.newbyteorder("<")).tobytes())
    found.append({"name": dataset.name, "shape": dataset.shape, "dim_names": dataset.dim_names})
print(json.dumps(found))
