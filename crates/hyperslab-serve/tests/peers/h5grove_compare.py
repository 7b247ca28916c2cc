"""Creates HDF5 files of every type, and compares the server's responses with those of h5grove under FastAPI.

Intentional differences are listed in `src/grove.rs`; `normal` below removes them before bodies are compared.
"""

import http.client
import json
import math
import pathlib
import sys
import threading
import time
import urllib.parse

import h5py
import numpy as np


def make(folder: pathlib.Path) -> None:
    rng = np.random.default_rng(7)
    with h5py.File(folder / "types.h5", "w") as file:
        file.attrs["title"] = "every type"
        file.attrs["number"] = np.float32(0.1)
        file.attrs["wide"] = 2.5
        file.attrs["count"] = np.int64(-3)
        file.attrs["list"] = np.arange(3, dtype="<i2")
        file.attrs["fixed"] = np.bytes_(b"fixed")
        file.attrs["texts"] = np.array(["a", "bc"], dtype=h5py.string_dtype())
        file.attrs["truth"] = np.bool_(True)
        file.attrs["nothing"] = h5py.Empty("f4")
        file.attrs["not a number"] = np.array([1.0, np.nan, np.inf])
        file.attrs["complex"] = np.complex128(1 + 2j)
        numbers = file.create_group("numbers")
        for name in ["i1", "<i2", ">i2", "<i4", ">i4", "<i8", "u1", "<u2", "<u4", ">u8", "<f2", "<f4", ">f4", "<f8", ">f8"]:
            values = (rng.standard_normal((4, 5)) * 40).astype(name)
            if name.startswith((">u", "<u", "u")):
                values = np.abs((rng.standard_normal((4, 5)) * 40)).astype(name)
            numbers.create_dataset(name.strip("<>") + ("_big" if name[0] == ">" else ""), data=values)
        numbers["floats"] = np.array([0.1, np.nan, np.inf, -np.inf, 1e300, 5e-324, 1e-7, 123456789.125])
        numbers["singles"] = np.array([0.1, np.nan, 3.4e38, 1e-7, 16777217], dtype="f4")
        numbers["large"] = np.array([2**63 - 1, -(2**63)], dtype="i8")
        numbers["scalar"] = np.float64(2.5)
        numbers["long"] = np.array([1.1, 2.2], np.longdouble)
        numbers["single"] = np.float32(0.1)
        numbers["truth"] = np.array([[True, False], [False, True]])
        numbers["complex64"] = (rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))).astype("c8")
        numbers["complex128"] = rng.standard_normal(3) + 1j * rng.standard_normal(3)
        numbers["empty"] = h5py.Empty("f8")
        numbers["none"] = np.zeros((0, 3), "f4")
        colours = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype="i")
        numbers.create_dataset("colours", data=np.array([0, 1, 42, 1], "i"), dtype=colours)
        texts = file.create_group("texts")
        texts["scalar"] = "hällo"
        texts.create_dataset("ascii", data="plain", dtype=h5py.string_dtype("ascii"))
        texts.create_dataset("many", data=np.array(["a", "", "xyz ü"], dtype=object), dtype=h5py.string_dtype())
        texts["fixed"] = np.array([b"ab", b"abcd"], dtype="S4")
        texts.create_dataset("utf8", data=np.array(["ä".encode(), b"bc"], dtype=h5py.string_dtype("utf-8", 6)))
        others = file.create_group("others")
        row = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3"), ("d", "<f4", (2,))])
        rows = np.zeros(3, row)
        rows["a"], rows["b"], rows["c"], rows["d"] = [1, 2, 3], [0.5, 1.5, 2.5], [b"x", b"yy", b"zzz"], 0.1
        others["rows"] = rows
        others["row"] = rows[1]
        nested = np.dtype([("p", [("x", "<f4"), ("y", "<f4")]), ("n", "u1")])
        others["nested"] = np.zeros(2, nested)
        text_rows = np.dtype([("name", h5py.string_dtype()), ("n", "<i8")])
        filled = np.empty(2, text_rows)
        filled["name"], filled["n"] = ["one", "two"], [1, 2]
        others.create_dataset("text_rows", data=filled, dtype=text_rows)
        lists = others.create_dataset("lists", (3,), dtype=h5py.vlen_dtype("<i4"))
        lists[0], lists[1], lists[2] = [1, 2], [], [3]
        others.create_dataset("small", (2, 2), dtype=np.dtype(("f4", (3,))))[...] = np.arange(12, dtype="f4").reshape(2, 2, 3)
        others["opaque"] = np.array([b"abcd", b"efgh"], dtype="V4")
        file["named"] = np.dtype([("x", "<f4"), ("n", "<i2")])
        file["named"].attrs["what"] = "a type"
    with h5py.File(folder / "tree.h5", "w", track_order=False) as file:
        cube = rng.standard_normal((6, 30, 40)).astype("f4")
        file.create_dataset("z/deep/cube", data=cube, chunks=(2, 16, 16), compression="gzip", shuffle=True, fletcher32=True)
        file["z/deep/cube"].attrs["units"] = "K"
        file.create_dataset("a/grows", data=np.arange(10), maxshape=(None,), chunks=(4,))
        file.create_dataset("a/contiguous", data=np.arange(10.0))
        file["soft"] = h5py.SoftLink("/a/grows")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["hard"] = file["z"]
        file["z/loop"] = file["z"]
        file["outside"] = h5py.ExternalLink("missing.h5", "/x")
        file.create_group("none")
    with h5py.File(folder / "ordered.h5", "w", track_order=True) as file:
        for name in "zbya":
            file.create_group(name, track_order=True)["x"] = 1


def make_sources(folder: pathlib.Path) -> None:
    """A file with sources in other files, which the server does not follow, and in itself."""
    numbers = np.arange(12.0).reshape(3, 4)
    with h5py.File(folder / "source.h5", "w") as file:
        file.create_dataset("d", data=numbers, maxshape=(None, 4))
    numbers.tofile(folder / "raw.bin")
    with h5py.File(folder / "virtual.h5", "w") as file:
        file["own"] = numbers
        for name, source in [("elsewhere", ("source.h5", "d")), ("here", (".", "own"))]:
            layout = h5py.VirtualLayout((3, 4), "f8")
            layout[:] = h5py.VirtualSource(*source, shape=(3, 4))
            file.create_virtual_dataset(name, layout, fillvalue=-1)
        layout = h5py.VirtualLayout((3, 4), "f8", maxshape=(None, 4))
        layout[: h5py.h5s.UNLIMITED] = h5py.VirtualSource("source.h5", "d", shape=(3, 4), maxshape=(None, 4))[: h5py.h5s.UNLIMITED]
        file.create_virtual_dataset("grows", layout, fillvalue=-1)
        file.create_dataset("raw", (3, 4), "f8", external=[("raw.bin", 0, h5py.h5f.UNLIMITED)])


# Additional paths to request.
MORE = {"types.h5": ["/named"], "tree.h5": ["/soft", "/dangling", "/outside", "/z/loop/deep", "/a/", "/nope"]}


def requests(folder: pathlib.Path):
    """Every request that is sent to both servers."""
    for name in ["types.h5", "tree.h5", "ordered.h5"]:
        paths = ["/"]
        with h5py.File(folder / name) as file:
            file.visit(paths.append)
            sets = [path for path in paths if isinstance(file[path], h5py.Dataset)]
        paths = ["/" + path.lstrip("/") for path in paths]
        for path in paths + MORE.get(name, []):
            yield "meta", {"file": name, "path": path}
            if path not in ("/dangling", "/outside"):
                yield "attr", {"file": name, "path": path}
        yield "paths", {"file": name}
        yield "paths", {"file": name, "path": "/"}
        for path in ("/" + path for path in sets):
            yield "data", {"file": name, "path": path}
            yield "data", {"file": name, "path": path, "flatten": "true"}
            yield "data", {"file": name, "path": path, "format": "bin", "dtype": "safe"}
            yield "data", {"file": name, "path": path, "format": "npy"}
            yield "data", {"file": name, "path": path, "format": "csv"}
            yield "data", {"file": name, "path": path, "format": "bin"}
            # h5grove drops the imaginary part of complex numbers; Hyperslab rejects them.
            if "complex" not in path:
                yield "stats", {"file": name, "path": path}
    cube = {"file": "tree.h5", "path": "/z/deep/cube"}
    for selection in ["0,:,:", "1", "0,2:5,::7", ":,3,4", "5,29,39", "1:3", ":,:,39"]:
        for form in ["json", "bin", "npy", "tiff"]:
            yield "data", {**cube, "selection": selection, "format": form}
        yield "data", {**cube, "selection": selection, "format": "bin", "dtype": "safe"}
        yield "stats", {**cube, "selection": selection}
    yield "meta", {"file": "tree.h5", "path": "/", "resolve_links": "none"}
    yield "meta", {"file": "tree.h5", "path": "/soft", "resolve_links": "none"}
    yield "meta", {"file": "tree.h5", "path": "/", "resolve_links": "wrong"}
    yield "meta", {"file": "tree.h5", "path": "/dangling", "resolve_links": "all"}
    yield "attr", {"file": "types.h5", "path": "/", "attr_keys": "title"}
    yield "meta", {"file": "missing.h5"}
    yield "data", {**cube, "format": "wrong"}
    yield "data", {**cube, "dtype": "wrong"}
    yield "data", {"file": "types.h5", "path": "/texts/scalar", "format": "bin", "dtype": "safe"}


def fetch(host: str, endpoint: str, parameters: dict) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", f"/{endpoint}?{urllib.parse.urlencode(parameters)}")
    answer = connection.getresponse()
    body = answer.read()
    assert "chunked" in answer.headers.get("transfer-encoding", "") or int(answer.headers.get("content-length", -1)) == len(body)
    return answer.status, answer.headers.get("content-type", "").split(";")[0], body


def without_pad(document):
    """H5Web expects `strPad`, but h5grove sends only `strpad`."""
    if isinstance(document, dict):
        return {name: without_pad(value) for name, value in document.items() if name != "strPad"}
    if isinstance(document, list):
        return [without_pad(item) for item in document]
    return document


def normal(endpoint: str, parameters: dict, kind: str, body: bytes):
    if kind == "application/json":
        document = without_pad(json.loads(body))
        if endpoint == "stats" and "mean" in document:
            # Hyperslab sums in double precision, h5grove in the precision of the data.
            for name in ("mean", "std"):
                if isinstance(document[name], float):
                    document[name] = float(f"{document[name]:.4g}")
        if "message" in document if isinstance(document, dict) else False:
            words = document["message"]
            document["message"] = words.split(" ")[0:2] if words.startswith("Cannot resolve") else words
        return document
    if parameters.get("format") == "npy":
        import io

        values = np.load(io.BytesIO(body))
        return values.shape, values.dtype.newbyteorder("<").str, values.astype(values.dtype.newbyteorder("<")).tobytes()
    if parameters.get("format") == "tiff":
        import io

        import tifffile

        values = tifffile.imread(io.BytesIO(body))
        return np.squeeze(values).tolist()
    return body


def compare(folder: pathlib.Path, url: str) -> None:
    import fastapi
    import uvicorn
    from h5grove.fastapi_utils import router, settings

    settings.base_dir = str(folder)
    app = fastapi.FastAPI()
    app.include_router(router)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.02)
    theirs_host = "127.0.0.1:%d" % server.servers[0].sockets[0].getsockname()[1]
    ours_host = urllib.parse.urlparse(url).netloc
    count, refused, differences = 0, 0, []
    for endpoint, parameters in requests(folder):
        theirs, ours = fetch(theirs_host, endpoint, parameters), fetch(ours_host, endpoint, parameters)
        count += 1
        if theirs[0] == 500:
            # h5grove fails on this request. Hyperslab must answer or reject it without failing.
            refused += 1
            if ours[0] >= 500:
                differences.append(f"{endpoint} {parameters}: both fail, ours {ours[0]} {ours[2][:200]!r}")
            continue
        if is_object_bytes(endpoint, parameters, folder):
            continue
        same = theirs[:2] == ours[:2]
        if same:
            left, right = (normal(endpoint, parameters, answer[1], answer[2]) for answer in (theirs, ours))
            same = left == right or (isinstance(left, float) and math.isclose(left, right))
            if not same:
                theirs, ours = (theirs[0], left), (ours[0], right)
        if not same and (endpoint, parameters["path"], parameters.get("resolve_links")) in KNOWN:
            continue
        if not same:
            differences.append(f"{endpoint} {parameters}\n  h5grove {str(theirs)[:700]}\n  ours    {str(ours)[:700]}")
    print(f"{count} requests, {refused} on which h5grove fails")
    sys.stdout.write("\n".join(differences))


# Differences listed in `src/grove.rs`, by a request that shows them.
KNOWN = {
    ("data", "/numbers/f2", None),
    ("stats", "/numbers/f2", None),
    ("stats", "/numbers/large", None),
    ("stats", "/numbers/singles", None),
    ("data", "/others/row", None),
    ("data", "/others/rows", None),
    ("stats", "/others/small", None),
    ("meta", "/hard", None),
    ("meta", "/", "none"),
    ("meta", "/", "wrong"),
}


def is_object_bytes(endpoint: str, parameters: dict, folder: pathlib.Path) -> bool:
    """For variable-length bytes, h5grove sends the addresses of Python objects in its own memory."""
    if endpoint != "data" or parameters.get("format") != "bin":
        return False
    with h5py.File(folder / parameters["file"]) as file:
        found = file.get(parameters["path"])
        return isinstance(found, h5py.Dataset) and (found.dtype.hasobject or found.shape is None or found.dtype.kind == "S" and found.shape == ())


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]))
    elif sys.argv[1] == "sources":
        make_sources(pathlib.Path(sys.argv[2]))
    else:
        compare(pathlib.Path(sys.argv[2]), sys.argv[3])
