"""Compares the server with h5grove under FastAPI and a plain file server, on loopback. Prints figures; asserts nothing.

    target/peers/bin/python peers/serve_speed.py TET [--mib 1024] [--seconds 60]

Needs `wrk`. nginx is included if it is installed.
"""

import argparse
import http.client
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

GROVE = """
import sys, fastapi, uvicorn
from h5grove.fastapi_utils import router, settings
settings.base_dir = sys.argv[1]
app = fastapi.FastAPI()
app.include_router(router)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="critical")
"""


def get(port: int, path: str) -> tuple[float, int]:
    begun = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, (path, answer.status, body[:200])
    return time.perf_counter() - begun, len(body)


def wait(port: int) -> None:
    for _ in range(400):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
            connection.request("GET", "/")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing answers on port {port}")


def make(folder: pathlib.Path, mib: int) -> None:
    """Writes a noisy field with chunks of 1 MiB, gzip and shuffle, one with raw chunks, and a tree of 100,000 nodes."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:1024, 0:1024]
    plane = (np.sin(x / 90) * np.cos(y / 70) * 50).astype("f4")
    with h5py.File(folder / "field.h5", "w") as file:
        count = max(1, mib // 4)
        data = file.create_dataset("field", (count, 1024, 1024), "f4", chunks=(1, 512, 512), compression="gzip", compression_opts=4, shuffle=True)
        for i in range(count):
            data[i] = plane + np.round(rng.standard_normal((1024, 1024)).astype("f4"), 1) + i
    (folder / "files").mkdir()
    raw = rng.integers(0, 255, (64, 1 << 20), dtype="u1")
    with h5py.File(folder / "raw.h5", "w") as file:
        file.create_dataset("raw", data=raw, chunks=(1, 1 << 20))
    raw[0].tofile(folder / "files" / "chunk")
    with h5py.File(folder / "tree.h5", "w", libver="latest") as file:
        for i in range(100):
            group = file.create_group(f"group{i:03}")
            for k in range(999):
                group.create_group(f"node{k:03}")


def memory(pid: int) -> int:
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) // 1024


def wrk(port: int, path: str, seconds: int, connections: int, script: str | None = None) -> str:
    words = ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--latency", f"http://127.0.0.1:{port}{path}"]
    if script:
        words[1:1] = ["-s", script]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    kept = [line.strip() for line in out.splitlines() if re.search(r"Requests/sec|Transfer/sec|99%|Socket errors|Non-2xx|requests in", line)]
    return "; ".join(kept)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tet")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    running = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder, options.mib)
        try:
            tet = subprocess.Popen([options.tet, "serve", folder, "--port", "18642", "--memory", "512"], stdout=subprocess.DEVNULL)
            grove = subprocess.Popen([sys.executable, "-c", GROVE, name, "18643"])
            files = subprocess.Popen([sys.executable, "-m", "http.server", "18644", "--bind", "127.0.0.1", "-d", folder / "files"], stderr=subprocess.DEVNULL)
            running = [tet, grove, files]
            for port in (18642, 18643, 18644):
                wait(port)
            slices = [i * 7 % max(1, options.mib // 4) for i in range(12)]
            for kind, path in [("first paint: a plane of 4 MiB of gzip and shuffle", "/data?file=field.h5&path=/field&format=bin&dtype=safe&selection={},:,:")]:
                ours = [get(18642, path.format(i))[0] for i in slices]
                theirs = [get(18643, path.format(i))[0] for i in slices]
                print(f"{kind}: ours {statistics.median(ours) * 1e3:.1f} ms, h5grove {statistics.median(theirs) * 1e3:.1f} ms, {statistics.median(theirs) / statistics.median(ours):.1f} times")
            for kind, path in [("root of 100,000 nodes, h5grove's API", "/meta?file=tree.h5&path=/"), ("a group of 999 nodes", "/meta?file=tree.h5&path=/group050")]:
                print(f"{kind}: ours {get(18642, path)[0] * 1e3:.1f} ms, h5grove {get(18643, path)[0] * 1e3:.1f} ms")
            print(f"root of 100,000 nodes, our page: {get(18642, '/api/children?file=tree.h5&path=/')[0] * 1e3:.1f} ms")
            print("stored chunks of 1 MiB, ours:", wrk(18642, "/zarr/raw.h5/raw/c/0/0", 10, 16))
            print("python -m http.server:", wrk(18644, "/chunk", 10, 16))
            if shutil.which("nginx"):
                conf = folder / "nginx.conf"
                conf.write_text(f"pid {name}/nginx.pid; daemon off; error_log stderr crit; events {{}} http {{ access_log off; sendfile on; server {{ listen 127.0.0.1:18645; root {name}/files; }} }}")
                (folder / "files").chmod(0o755)
                folder.chmod(0o755)
                running.append(subprocess.Popen(["nginx", "-c", conf, "-g", "user root;"], stderr=subprocess.DEVNULL))
                time.sleep(1)
                print("nginx:", wrk(18645, "/chunk", 10, 16))
            script = folder / "mix.lua"
            script.write_text("local n = 0\nrequest = function() n = n + 1; local i = n % %d\n if n %% 3 == 0 then return wrk.format('GET', '/meta?file=tree.h5&path=/group0' .. (10 + n %% 80)) end\n return wrk.format('GET', '/data?file=field.h5&path=/field&format=bin&dtype=safe&selection=' .. i .. ',:,0:64') end\n".replace("%d", str(max(1, options.mib // 4))).replace("%%", "%"))
            print(f"200 connections for {options.seconds} s, ours:", wrk(18642, "/", options.seconds, 200, str(script)), f"; peak memory {memory(tet.pid)} MiB of --memory 512")
            print("200 connections for 10 s, h5grove:", wrk(18643, "/", 10, 200, str(script)))
        finally:
            for one in running:
                one.terminate()
                one.wait(10)


if __name__ == "__main__":
    main()
