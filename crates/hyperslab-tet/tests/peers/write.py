"""Creates files with tet-py, for our reader. Elements are those of `sample` in peers.rs.

    write.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np
import tet

assert tet.__version__ == "0.8.3", tet.__version__

TYPES = ["float32", "float64", "int32", "int64", "uint8", "uint16", "int16", "uint32", "float16", "uint64"]
SHAPE, CHUNKS = (5, 7, 3), (2, 3, 3)


def sample(dtype, shape):
    item = np.dtype(dtype).itemsize
    cells = np.arange(np.prod(shape), dtype="<u8") * 7 + 1
    return np.frombuffer(cells.tobytes(), np.uint8).reshape(-1, 8)[:, :item].copy().view(dtype).reshape(shape)


folder = Path(sys.argv[1])
writer = tet.TetWriter.create(folder / "types.tet")
writer.push_history_event("convert", "npy")
for name in TYPES:
    writer.write_dataset(
        f"group/{name}",
        sample(name, SHAPE),
        chunk_shape=CHUNKS,
        attrs={"units": "K", "_FillValue": "8"},
        dim_names=["t", "y", "x"],
        coords={"t": [f"t{i}" for i in range(5)], "2": ["a", "b", "c"]},
    )
writer.commit()

writer = tet.TetWriter.create(folder / "many.tet")
for number in range(300):
    writer.write_dataset(f"d{number}", sample("uint16", (number % 7 + 1,)), chunk_shape=(2,))
writer.commit()

# Enough metadata for a spill.
writer = tet.TetWriter.create(folder / "spill.tet")
for number in range(40):
    attrs = {f"key{i}": "v" * 1000 for i in range(3)}
    writer.write_dataset(f"d{number}", sample("int32", (4, 3)), chunk_shape=(3, 2), attrs=attrs)
writer.commit()

package = tet.create(folder / "p.tet.d")
tet.ingest(package, folder / "types.tet", part_id="types", session_id="s0")
tet.ingest(package, folder / "many.tet", part_id="many", session_id="s1")
tet.publish(package, ["types", "many"])
