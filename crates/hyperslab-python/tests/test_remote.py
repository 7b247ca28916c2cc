"""Stores behind a web server and in a bucket."""

from __future__ import annotations

import os
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fields import WRITERS
from servers import KEYS, WebServer, bucket_server

import hyperslab
from hyperslab import _storage
from hyperslab._store import _opened
from hyperslab.xarray import HyperslabDataStore, _options

xr = pytest.importorskip("xarray")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    server = WebServer(tmp_path)
    yield server
    server.close()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with bucket_server() as endpoint:
        yield endpoint


@pytest.fixture
def options(endpoint: str) -> dict[str, Any]:
    """The options for the bucket, in the notation of s3fs."""
    return {**KEYS, "client_kwargs": {"endpoint_url": endpoint, "region_name": "us-east-1"}}


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Prevents tests from finding real credentials or looking for them."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))


def field(folder: Path, name: str = "field.h5") -> np.ndarray:
    values = np.arange(24 * 20, dtype="float32").reshape(24, 20)
    with hyperslab.create(folder / name, overwrite=True) as new:
        new.create_array("/t", values, chunks=(4, 5), filters=["zstd"], dims=("y", "x"), attrs={"units": "K"})
    return values


@pytest.mark.parametrize("write", WRITERS, ids=[write.__name__.removeprefix("write_") for write in WRITERS])
def test_a_web_server_matches_the_disk(server: WebServer, tmp_path: Path, write: Any) -> None:
    path, node = write(tmp_path)
    url = server.url(path.relative_to(tmp_path).as_posix())
    if hyperslab.open(path).format == "tiledb":
        with pytest.raises(hyperslab.UnsupportedError, match="listing"):
            hyperslab.open(url)
        return
    here, there = hyperslab.open(path)[node], hyperslab.open(url)[node]
    assert there.file == url
    for key in (np.s_[...], np.s_[1], np.s_[..., ::-2]):
        assert np.array_equal(there[key], here[key])
    assert there.mean() == here.mean()
    assert server.requests


@pytest.mark.parametrize("write", WRITERS, ids=[write.__name__.removeprefix("write_") for write in WRITERS])
def test_a_bucket_holds_every_format(options: dict[str, Any], tmp_path: Path, write: Any) -> None:
    path, node = write(tmp_path)
    format = hyperslab.open(path).format
    url = f"s3://bucket/{write.__name__}/{path.name}"
    hyperslab.convert(path, url, format=format, storage_options=options)
    with hyperslab.open(url, storage_options=options) as store:
        assert (store.format, store.file) == (format, url)
        assert hyperslab.diff(path, store, attributes=False)["same"]
        assert np.array_equal(store[node][...], hyperslab.open(path)[node][...])
        assert hyperslab.verify(url, deep=True, storage_options=options)["ok"]
    with pytest.raises(hyperslab.HyperslabError, match="exists"):
        hyperslab.convert(path, url, format=format, storage_options=options)
    hyperslab.convert(path, url, format=format, storage_options=options, overwrite=True)
    back = tmp_path / "back.zarr"
    hyperslab.convert(url, back, storage_options=options)
    assert np.array_equal(hyperslab.open(back)[node][...], hyperslab.open(path)[node][...])


def test_xarray_opens_urls(options: dict[str, Any], server: WebServer, tmp_path: Path) -> None:
    dataset = xr.Dataset(
        {"t": (("time", "x"), np.arange(40.0).reshape(8, 5))}, {"time": np.arange(8), "x": np.arange(5) * 0.5}
    )
    dataset.to_netcdf(tmp_path / "x.nc", encoding={"t": {"chunksizes": (2, 5)}}, engine="h5netcdf")
    hyperslab.convert(tmp_path / "x.nc", "s3://bucket/xarray/x.nc", storage_options=options)
    there = [
        xr.open_dataset("s3://bucket/xarray/x.nc", engine="hyperslab", storage_options=options, chunks={}),
        xr.open_dataset(server.url("x.nc"), engine="hyperslab", chunks={}),
    ]
    for found in there:
        assert found.t.chunks == ((2, 2, 2, 2), (5,))
        with environment(KEYS):
            xr.testing.assert_equal(found.load(scheduler="processes"), dataset)
        found = pickle.loads(pickle.dumps(found))
        xr.testing.assert_equal(found.compute(), dataset)
    tree = xr.open_datatree("s3://bucket/xarray/x.nc", engine="hyperslab", storage_options=options)
    xr.testing.assert_equal(tree.to_dataset(), dataset)


def test_obstore_stores_are_accepted(options: dict[str, Any], server: WebServer, tmp_path: Path) -> None:
    from obstore.store import HTTPStore, LocalStore, MemoryStore, S3Store

    path, node = WRITERS[0](tmp_path)
    expected = hyperslab.open(path)[node][...]
    hyperslab.convert(path, f"s3://bucket/obstore/{path.name}", storage_options=options)
    bucket = S3Store(
        "bucket",
        prefix="obstore",
        endpoint=options["client_kwargs"]["endpoint_url"],
        access_key_id=options["key"],
        secret_access_key=options["secret"],
        region="us-east-1",
        client_options={"allow_http": True},
    )
    web = HTTPStore(server.url(""), client_options={"allow_http": True})
    for store in (bucket, web, LocalStore(str(tmp_path))):
        array = hyperslab.open(path.name, storage_options=store)[node]
        assert np.array_equal(array[...], expected)
        assert np.array_equal(pickle.loads(pickle.dumps(array))[...], expected)
    with pytest.raises(hyperslab.InvalidError, match="MemoryStore"):
        hyperslab.open(path.name, storage_options=MemoryStore())


def test_a_cache_on_disk_is_used_again(options: dict[str, Any], tmp_path: Path) -> None:
    field(tmp_path)
    hyperslab.convert(tmp_path / "field.h5", "s3://bucket/cached/field.h5", storage_options=options)
    cache = tmp_path / "cache"
    for _ in range(2):
        with hyperslab.open("s3://bucket/cached/field.h5", storage_options={**options, "cache": str(cache)}) as store:
            assert "t" in list(store)
        del store
        assert any(path.is_file() for path in cache.rglob("*"))


def test_xarray_guesses_urls_by_extension() -> None:
    engine = xr.backends.list_engines()["hyperslab"]
    for url in ("s3://b/x.nc", "https://h/x.tet?sig=1", "s3://b/x.tiledb/", "s3://b/X.H5", "https://h/x.zarr"):
        assert engine.guess_can_open(url), url
    for url in ("s3://b/x", "https://h/x.html", "https://h/dap/x.dods"):
        assert not engine.guess_can_open(url), url


@contextmanager
def environment(keys: dict[str, str]) -> Iterator[None]:
    """Gives new processes the keys as ambient credentials."""
    names = {"AWS_ACCESS_KEY_ID": keys["key"], "AWS_SECRET_ACCESS_KEY": keys["secret"]}
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]


def strings(pickled: bytes) -> str:
    return "".join(str(argument) for _, argument, _ in pickletools.genops(pickled))


def test_pickles_contain_no_secrets(
    options: dict[str, Any], endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = field(tmp_path)
    url = "s3://bucket/pickles/field.h5"
    hyperslab.convert(tmp_path / "field.h5", url, storage_options=options)
    said = hyperslab.open(url, storage_options=options)
    dataset = xr.open_dataset(url, engine="hyperslab", storage_options=options, chunks={})
    data_store = HyperslabDataStore(url, None, _options(url, storage_options=options))
    for thing in (said, said["/"], said["/t"], said["/t"].decoded, dataset, data_store):
        pickled = pickle.dumps(thing)
        for secret in KEYS.values():
            assert secret.encode() not in pickled
            assert secret not in strings(pickled)
    for thing in (said, said["/"], said["/t"]):
        assert KEYS["secret"] not in repr(thing)
        assert KEYS["secret"] not in str(thing)
        again = pickle.loads(pickle.dumps(thing))
        array = again if isinstance(again, hyperslab.Array) else again["/t"]
        assert np.array_equal(array[...], values)
    decoded = pickle.loads(pickle.dumps(said["/t"].decoded))
    assert np.array_equal(decoded[3], values[3])

    pickled = pickle.dumps(said["/t"])
    # In another process, the secrets are unknown.
    _storage._given.clear()
    _opened.cache_clear()
    with pytest.raises(hyperslab.InvalidError, match=r"no credentials.*key, secret.*provide_credentials"):
        pickle.loads(pickled)
    for url_of_others in ("s3://buck", "s3://bucket/pickles/field"):
        monkeypatch.setitem(_storage._provided, url_of_others, [("key", "none"), ("secret", "none")])
    with pytest.raises(hyperslab.InvalidError, match="no credentials"):
        pickle.loads(pickled)
    monkeypatch.setitem(_storage._provided, "s3://bucket", [("key", "none"), ("secret", "none")])
    hyperslab.provide_credentials("s3://bucket/pickles", options)
    again = pickle.loads(pickled)
    assert np.array_equal(again[...], values)
    assert KEYS["secret"] not in strings(pickle.dumps(again))
    _storage._provided.clear()
    _opened.cache_clear()
    for name in KEYS:
        monkeypatch.setenv({"key": "AWS_ACCESS_KEY_ID", "secret": "AWS_SECRET_ACCESS_KEY"}[name], KEYS[name])
    assert np.array_equal(pickle.loads(pickled)[...], values), "the environment has them"

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ambient-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ambient-secret-55aa")
    ambient = pickle.dumps(hyperslab.open(url, storage_options={"endpoint_url": endpoint})["/t"])
    assert "ambient" not in strings(ambient)
    assert np.array_equal(pickle.loads(ambient)[...], values), "the environment has them"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    _opened.cache_clear()
    with pytest.raises(hyperslab.InvalidError, match="no credentials"):
        pickle.loads(ambient)
    with pytest.raises(hyperslab.IoError, match="access denied"):
        hyperslab.open(url, storage_options={"endpoint_url": endpoint}, anonymous=True)


def test_pickles_carry_options(server: WebServer, tmp_path: Path) -> None:
    field(tmp_path)
    given = {"anonymous": True, "external": "none", "storage_options": (("timeout", "7s"),)}
    store = hyperslab.open(server.url("field.h5"), **given)
    again = pickle.loads(pickle.dumps(store))
    for each in (store, again):
        assert given.items() <= each._native.options.items()


def test_signatures_of_urls_stay_secret(tmp_path: Path) -> None:
    values = field(tmp_path)
    server = WebServer(tmp_path, secret="sig=c0ffee")
    try:
        with pytest.raises(hyperslab.IoError):
            hyperslab.open(server.url("field.h5"))
        signed = server.url("field.h5?sig=c0ffee")
        store = hyperslab.open(signed)
        assert np.array_equal(pickle.loads(pickle.dumps(store["/t"]))[...], values)
        dataset = xr.open_dataset(signed, engine="hyperslab")
        shown = f"{store!r} {store['/t']!r} {store['/']!r} {store.file} {store['/t'].file} {dataset.t.encoding}"
        assert "c0ffee" not in shown
        with pytest.raises(hyperslab.HyperslabError) as error:
            store["/none"]
        assert "c0ffee" not in str(error.value)
    finally:
        server.close()


def test_a_replaced_object_is_reopened(server: WebServer, tmp_path: Path) -> None:
    # Larger than the data read ahead on opening.
    noise = np.random.default_rng(1).random((64, 4096))
    with hyperslab.create(tmp_path / "noise.h5") as new:
        new.create_array("/t", noise, chunks=(1, 4096))
    url = server.url("noise.h5")
    old = hyperslab.open(url)["/t"]
    assert np.array_equal(pickle.loads(pickle.dumps(old))[0], noise[0]), "cached in this process from here on"
    with hyperslab.create(tmp_path / "noise.h5", overwrite=True) as new:
        new.create_array("/t", np.full((64, 4096), 7.0), chunks=(1, 4096))
    with pytest.raises(hyperslab.IoError, match="changed"):
        old[40]
    new_array = hyperslab.open(url)["/t"]
    assert (pickle.loads(pickle.dumps(new_array))[...] == 7).all()
    assert new_array.__dask_tokenize__() != old.__dask_tokenize__()
    assert (xr.open_dataset(url, engine="hyperslab").t == 7).all()


def test_error_messages(options: dict[str, Any], server: WebServer, tmp_path: Path) -> None:
    field(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none\.h5"):
        hyperslab.open(server.url("none.h5"))
    with pytest.raises(FileNotFoundError, match=r"s3://bucket/none\.zarr"):
        hyperslab.open("s3://bucket/none.zarr", storage_options=options)
    with pytest.raises(hyperslab.InvalidError, match=r'"default_cache_type".*known: .*endpoint_url'):
        hyperslab.open("s3://bucket/x.h5", storage_options={**options, "default_cache_type": "none"})
    with pytest.raises(hyperslab.InvalidError, match="'key' must be a string") as error:
        hyperslab.open("s3://bucket/x.h5", storage_options={"key": ["hush"]})
    assert "hush" not in str(error.value)
    with pytest.raises(hyperslab.InvalidError, match="no credentials"):
        hyperslab.open("s3://bucket/x.h5")
    with pytest.raises(hyperslab.InvalidError, match="only apply to URLs"):
        hyperslab.open(tmp_path / "field.h5", storage_options=options)
    with pytest.raises(hyperslab.InvalidError, match="only apply to URLs"):
        hyperslab.convert(tmp_path / "field.h5", tmp_path / "x.zarr", anonymous=True)
    with pytest.raises(hyperslab.UnsupportedError, match="remote storage"):
        hyperslab.create("s3://bucket/new.zarr")
    with pytest.raises(hyperslab.UnsupportedError, match="web server"):
        hyperslab.convert(tmp_path / "field.h5", server.url("x.zarr"))
    with pytest.raises(hyperslab.InvalidError, match="none, beside or any"):
        hyperslab.open(server.url("field.h5"), external="everywhere")


def test_one_array_of_a_url(server: WebServer, tmp_path: Path) -> None:
    values = field(tmp_path, "one.tet")
    assert np.array_equal(hyperslab.open_array(server.url("one.tet"))[...], values)
    assert hyperslab.verify(server.url("one.tet"), deep=True)["ok"]


def test_file_urls_are_paths(tmp_path: Path) -> None:
    values = field(tmp_path)
    store = hyperslab.open(f"file://{tmp_path}/field.h5")
    assert store.file == str(tmp_path / "field.h5")
    assert np.array_equal(pickle.loads(pickle.dumps(store["/t"]))[...], values)


INTERRUPTED = """
import os, signal, socket, threading, hyperslab
server = socket.create_server(("127.0.0.1", 0))
asked = threading.Event()

def stall():
    held = []
    while True:
        held.append(server.accept())
        asked.set()

def interrupt():
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=stall, daemon=True).start()
threading.Thread(target=interrupt, daemon=True).start()
try:
    hyperslab.open(f"http://127.0.0.1:{server.getsockname()[1]}/x.h5")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_a_read_from_a_server() -> None:
    """The server never responds."""
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "interrupted\n", ran.stderr
