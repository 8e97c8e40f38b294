"""A hub on this machine with one model, whose connection breaks off once in the middle of a file of weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlparse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """What the server holds and has seen.

    Attributes:
        ranges: the ranges of weights that were asked for; empty strings for whole files.
        asked: the files whose content was asked for, in their order.
    """

    def __init__(self, name: str, folder: Path, stated: Mapping[str, str] | None = None) -> None:
        self.name, self.folder, self._stated = name, folder, stated or {}
        self.address, self.breaks = "", 1
        self.ranges: list[str] = []
        self.asked: list[str] = []

    def digest(self, file: str) -> str:
        return self._stated.get(file) or hashlib.sha256((self.folder / file).read_bytes()).hexdigest()

    def listing(self) -> bytes:
        files = []
        for path in sorted(self.folder.iterdir()):
            size, entry = path.stat().st_size, {"rfilename": path.name, "blobId": "0" * 40}
            lfs = {"sha256": self.digest(path.name), "size": size, "pointerSize": 100}
            files.append(entry | {"size": size} | ({"lfs": lfs} if _weights(path.name) else {}))
        return json.dumps({"id": self.name, "modelId": self.name, "sha": COMMIT, "siblings": files}).encode()

    @contextmanager
    def open(self) -> Iterator[str]:
        hub = self

        class Handler(_Handler):
            served = hub

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self.address
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _weights(file: str) -> bool:
    return file.endswith((".safetensors", ".gguf"))


class _Handler(BaseHTTPRequestHandler):
    served: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        hub, path = self.served, urlparse(self.path).path
        if path.startswith(f"/api/models/{hub.name}"):
            self._send(200, hub.listing(), {"Content-Type": "application/json"}, body)
            return
        file = path.removeprefix(f"/{hub.name}/resolve/").partition("/")[2]
        if not path.startswith(f"/{hub.name}/") or not (hub.folder / file).is_file():
            code = "EntryNotFound" if path.startswith(f"/{hub.name}/") else "RepoNotFound"
            self._send(404, b"", {"X-Error-Code": code}, body)
            return
        content, digest = (hub.folder / file).read_bytes(), hub.digest(file)
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{digest}"', "X-Linked-Etag": f'"{digest}"'}
        headers["X-Linked-Size"] = str(len(content))
        if not body:
            self._send(200, content, headers, body)
            return
        hub.asked.append(file)
        asked = self.headers.get("Range", "")
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        if _weights(file):
            hub.ranges.append(asked)
        if asked:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._send(206 if asked else 200, content[start:], headers, body, breaks=_weights(file) and not asked)

    def _send(self, status: int, content: bytes, headers: Mapping[str, str], body: bool, breaks: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not body:
            return
        if breaks and self.served.breaks:
            self.served.breaks -= 1
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.close()
            return
        self.wfile.write(content)
