"""Creates the golden files with tet-py and the tetration crate, both 0.8.3.

    make.py PEERS_TETRATION      the program of peers/tetration

Elements are those of `sample`: element i has the first bytes of i * 7 + 1.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tet

assert tet.__version__ == "0.8.3", tet.__version__

TYPES = ["float32", "float64", "int32", "int64", "uint8", "uint16", "int16", "uint32", "float16", "uint64"]
SHAPE, CHUNKS = (3, 4, 2), (2, 3, 2)
HERE = Path(__file__).parent


def sample(dtype, shape):
    item = np.dtype(dtype).itemsize
    cells = np.arange(np.prod(shape), dtype="<u8") * 7 + 1
    return np.frombuffer(cells.tobytes(), np.uint8).reshape(-1, 8)[:, :item].copy().view(dtype).reshape(shape)


def crate(verb, path, datasets, session=True):
    with tempfile.TemporaryDirectory() as folder:
        for number, dataset in enumerate(datasets):
            data = Path(folder, str(number))
            data.write_bytes(sample(TYPES[dataset["dtype"] - 1], dataset["shape"]).tobytes())
            dataset["data"] = str(data)
        spec = Path(folder, "spec.json")
        spec.write_text(json.dumps({"path": str(path), "session": session, "datasets": datasets}))
        subprocess.run([sys.argv[1], verb, spec], check=True)


writer = tet.TetWriter.create(HERE / "types.tet")
writer.push_history_event("convert", "npy")
for name in TYPES:
    writer.write_dataset(
        f"group/{name}",
        sample(name, SHAPE),
        chunk_shape=CHUNKS,
        attrs={"units": "K"},
        dim_names=["t", "y", "x"],
        coords={"t": ["0", "1", "2"], "x": ["a", "b"]},
    )
writer.commit()

writer = tet.TetWriter.create(HERE / "spill.tet")
for number in range(23):
    attrs = {f"key{i}": "v" * 1000 for i in range(3)}
    writer.write_dataset(f"d{number}", sample("int32", (3,)), chunk_shape=(2,), attrs=attrs)
writer.commit()

datasets = [
    {"name": f"d{code}", "dtype": code, "shape": (40, 9), "chunk_shape": (16, 9), "codec": 1} for code in (2, 3, 10)
]
crate("write", HERE / "zstd.tet", datasets)
crate("write", HERE / "plain.tet", [{"name": "x", "dtype": 1, "shape": (2, 3), "chunk_shape": (2, 2)}], session=False)
crate("write", HERE / "version1.tet", [{"name": "x", "dtype": 1, "shape": (2, 3), "chunk_shape": (2, 2)}])
subprocess.run([sys.argv[1], "attr", HERE / "version1.tet", "x", "units", "K"], check=True)
