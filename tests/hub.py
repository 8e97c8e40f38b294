"""A Hugging Face hub of one's own on this machine: the two routes that reading a data set takes, and who asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants

from tests.http_server import Handler, at_work

CONVERSION = "refs/convert/parquet"
ELSEWHERE = "localhost"
"""Another host's name, whose server has no business with a token."""


@dataclass
class Repository:
    """A data set: its files by name, for each revision.

    Attributes:
        token: who may see it; anybody, unless one is given.
        gated: it is shown, and its files are not.
        elsewhere: its files lie on another host, and the hub says where.
        sizes: what is said of sizes, where that is not true.
    """

    main: dict[str, bytes] = field(default_factory=dict)
    conversion: dict[str, bytes] = field(default_factory=dict)
    token: str | None = None
    gated: bool = False
    elsewhere: bool = False
    sizes: dict[str, int] = field(default_factory=dict)

    def at(self, revision: str) -> dict[str, bytes]:
        """The files of a revision, by its name or by its commit."""
        named = {"main": self.main, CONVERSION: self.conversion}
        files = named | {commit_of(name): files for name, files in named.items()}
        return files.get(revision, {})


@dataclass
class Asked:
    """One request: of which host, and with which token."""

    path: str
    token: str | None
    host: str


@dataclass
class Hub:
    url: str
    asked: list[Asked]


def commit_of(revision: str) -> str:
    """Forty digits that stand for a revision."""
    return hashlib.sha1(revision.encode()).hexdigest()


@contextmanager
def serving(repositories: dict[str, Repository]) -> Iterator[Hub]:
    """Serve data sets until the block ends."""
    asked: list[Asked] = []

    class Asking(Handler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            token = (self.headers.get("authorization") or "").removeprefix("Bearer ") or None
            host, _, port = self.headers["host"].partition(":")
            asked.append(Asked(path, token, host))
            status, error, body = _answer(repositories, path, token, host)
            there = {"Location": f"http://{ELSEWHERE}:{port}{self.path}"} if status == 302 else {}
            self.answer(status, {"X-Error-Code": error} | there, body)

    with at_work(Asking) as port:
        yield Hub(f"http://127.0.0.1:{port}", asked)


def lead_to(url: str, patch: pytest.MonkeyPatch) -> None:
    """What HF_ENDPOINT would do; the library reads it when it is imported, and nobody's own token is sent."""
    patch.setattr(constants, "ENDPOINT", url)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    patch.setattr(constants, "HF_TOKEN_PATH", "/nonexistent")
    patch.delenv("HF_TOKEN", raising=False)


def _answer(repositories: dict[str, Repository], path: str, token: str | None, host: str) -> tuple[int, str, bytes]:
    described = path.startswith("/api/datasets/")
    owner, name, *rest = path.removeprefix("/api").removeprefix("/datasets/").split("/")
    repository = repositories.get(f"{owner}/{name}")
    if repository is None or (repository.token not in (None, token) and host != ELSEWHERE):
        return 401, "RepoNotFound", b""
    if described:
        return _described(repository, f"{owner}/{name}", "/".join(rest[1:]) or "main")
    if repository.gated:
        return 403, "GatedRepo", b""
    if repository.elsewhere and host != ELSEWHERE:
        return 302, "", b""
    revision, file = rest[1], "/".join(rest[2:])
    found = repository.at(revision).get(file)
    return (404, "EntryNotFound", b"") if found is None else (200, "", found)


def _described(repository: Repository, name: str, revision: str) -> tuple[int, str, bytes]:
    files = repository.at(revision)
    if not files and revision != "main":
        return 404, "RevisionNotFound", b""
    siblings = [{"rfilename": file, "size": repository.sizes.get(file, len(raw))} for file, raw in files.items()]
    return 200, "", json.dumps({"id": name, "sha": commit_of(revision), "siblings": siblings}).encode()
