"""A server with the shape of OpenAI's API on this machine, which remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]
    body: str

    @property
    def chat(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.body)
        return read

    @property
    def prompt(self) -> str:
        [message] = self.chat["messages"]
        assert message["role"] == "user"
        return str(message["content"])


@dataclass
class Reply:
    """What the server sends back; `words` in the shape of a chat's answer unless there is a body."""

    words: str | None = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def sent(self) -> bytes:
        if self.body is not None:
            return self.body
        return json.dumps({"choices": [{"message": {"role": "assistant", "content": self.words}}]}).encode()


Rule = Callable[[Asked], Reply]


@dataclass
class Server:
    url: str
    asked: list[Asked]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Whoever asked sees that it broke off; printed, it would stand on the screen of a later test."""


@contextmanager
def serving(rule: Rule) -> Iterator[Server]:
    """Answer by a rule until the block ends."""
    asked: list[Asked] = []

    class Chat(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append(request := Asked(self.path, dict(self.headers), body))
            reply = rule(request)
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.sent)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(reply.sent)
            except OSError:  # who asked has heard enough
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Chat)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_port}/v1", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def query_of(asked: Asked) -> str:
    """The text that a prompt ends with, before the cue."""
    return asked.prompt.splitlines()[-2].partition(": ")[2]
