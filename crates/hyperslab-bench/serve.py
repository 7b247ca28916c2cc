"""The peers of the bench of `tet serve`.

    serve.py make FOLDER MIB       a field with gzip, one with raw chunks, a tree of 100,000 nodes, and a chunk as a file
    serve.py grove FOLDER PORT     h5grove under FastAPI
    serve.py files FOLDER PORT     Python's file server
"""

import pathlib
import sys


def make(folder: str, mib: str) -> None:
    import h5py
    import numpy as np

    where = pathlib.Path(folder)
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:1024, 0:1024]
    plane = (np.sin(x / 90) * np.cos(y / 70) * 50).astype("f4")
    with h5py.File(where / "field.h5", "w") as file:
        count = max(1, int(mib) // 4)
        data = file.create_dataset(
            "field", (count, 1024, 1024), "f4", chunks=(1, 512, 512), compression="gzip", compression_opts=4, shuffle=True
        )
        for i in range(count):
            data[i] = plane + np.round(rng.standard_normal((1024, 1024)).astype("f4"), 1) + i
    raw = rng.integers(0, 255, (64, 1 << 20), dtype="u1")
    with h5py.File(where / "raw.h5", "w") as file:
        file.create_dataset("raw", data=raw, chunks=(1, 1 << 20))
    (where / "files").mkdir(exist_ok=True)
    raw[0].tofile(where / "files" / "chunk")
    with h5py.File(where / "tree.h5", "w", libver="latest") as file:
        for i in range(100):
            group = file.create_group(f"group{i:03}")
            for k in range(999):
                group.create_group(f"node{k:03}")


def grove(folder: str, port: str) -> None:
    import fastapi
    import uvicorn
    from h5grove.fastapi_utils import router, settings

    settings.base_dir = folder
    app = fastapi.FastAPI()
    app.include_router(router)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="critical")


def files(folder: str, port: str) -> None:
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", int(port)), partial(Handler, directory=folder)).serve_forever()


if __name__ == "__main__":
    {"make": make, "grove": grove, "files": files}[sys.argv[1]](*sys.argv[2:])
