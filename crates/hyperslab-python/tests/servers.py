"""Servers for tests, on the local machine only: a web server with byte ranges, and moto for S3."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class WebServer:
    """Serves the files of a folder. It runs in this process, so waiting for it with the GIL held is a deadlock."""

    def __init__(self, folder: Path, secret: str | None = None) -> None:
        self.folder = folder
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, secret))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(server: WebServer, secret: str | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _empty(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, body: bool) -> None:
            asked = urlsplit(self.path)
            server.requests.append(f"{self.command} {asked.path}")
            file = server.folder / unquote(asked.path).lstrip("/")
            if secret is not None and secret not in asked.query:
                return self._empty(403)
            if not file.is_file():
                return self._empty(404)
            content = file.read_bytes()
            start, end, status = 0, len(content), 200
            ranged = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            if ranged:
                first, last = ranged.groups()
                start = int(first) if first else max(0, len(content) - int(last))
                end = min(len(content), int(last) + 1) if first and last else len(content)
                if start >= len(content):
                    return self._empty(416)
                status = 206
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
            changed = file.stat().st_mtime_ns
            self.send_header("ETag", f'"{changed}-{len(content)}"')
            self.send_header("Content-Length", str(end - start))
            self.end_headers()
            if body:
                self.wfile.write(content[start:end])
            return None

    return Handler


#: Dummy keys, for a server that accepts any.
KEYS = {"key": "test-key", "secret": "test-secret-7d1f"}


@contextlib.contextmanager
def bucket_server() -> Iterator[str]:
    """moto with an empty bucket ``bucket``. Yields its endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _make_bucket(server, endpoint)
        yield endpoint
    finally:
        server.terminate()
        server.wait()


def _make_bucket(server: subprocess.Popen[bytes], endpoint: str) -> None:
    request = urllib.request.Request(f"{endpoint}/bucket", method="PUT")
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError(f"moto ended with {server.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=30):
            return
        time.sleep(0.1)
    raise RuntimeError("moto does not answer")
