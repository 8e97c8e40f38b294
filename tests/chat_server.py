"""A server with the shape of OpenAI's API on this machine, which remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.http_server import Handler, at_work


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


@contextmanager
def serving(rule: Rule) -> Iterator[Server]:
    """Answer by a rule until the block ends."""
    asked: list[Asked] = []

    class Chat(Handler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append(request := Asked(self.path, dict(self.headers), body))
            reply = rule(request)
            self.answer(reply.status, reply.headers, reply.sent)

    with at_work(Chat) as port:
        yield Server(f"http://127.0.0.1:{port}/v1", asked)


def query_of(asked: Asked) -> str:
    """The text that a prompt ends with, before the cue."""
    return asked.prompt.splitlines()[-2].partition(": ")[2]
