"""Places in the queue: so many for each, counted where Gradio keeps them; what was refused leaves no upload."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dpicl_ui.server.places import MOST_OF_ONE, Places

JOIN, CALL, OTHER = "/gradio_api/queue/join", "/gradio_api/call/calibrate", "/gradio_api/run/tick"


class Served:
    """An app whose queue keeps whatever it is asked for, as Gradio's does, until a test ends it."""

    def __init__(self, by_address: bool = True, status: int = 200) -> None:
        self.line = SimpleNamespace(queue=list[Any]())
        self.queue = SimpleNamespace(event_queue_per_concurrency_id={"model": self.line}, active_jobs=[None])
        self.status = status
        routes = [Route(path, self.join, methods=["POST"]) for path in (JOIN, CALL, OTHER)]
        self.app: Any = Starlette(routes=routes, middleware=[Middleware(Places, by_address=by_address)])
        self.app.tokens, self.app.cookie_id = {"ada": "Ada", "ben": "Ben"}, "x"
        self.app.get_blocks = lambda: SimpleNamespace(_queue=self.queue)

    async def join(self, request: Request) -> JSONResponse:
        body = await request.json()
        await asyncio.sleep(0)  # others come in between
        if self.status == 200:
            person = self.app.tokens.get(request.cookies.get("access-token-x"))
            event = SimpleNamespace(username=person, request=request, data=SimpleNamespace(data=body["data"]))
            self.line.queue.append(event)
        return JSONResponse({}, self.status)

    async def ask(self, address: str = "10.0.0.1", cookie: str = "", path: str = JOIN, *data: Any) -> tuple[int, Any]:
        sent = list[Any]()
        parts = iter([json.dumps({"data": data}).encode()])

        async def receive() -> Any:
            body = next(parts, None)
            return {"type": "http.disconnect"} if body is None else {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"cookie", f"access-token-x={cookie}".encode())]
        scope: Scope = {
            "type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers,
            "client": (address, 1),
        }  # fmt: skip
        application: Callable[[Scope, Receive, Send], Any] = self.app
        await application(scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])


def statuses(served: Served, *askers: tuple[str, str]) -> list[int]:
    """All at once."""

    async def all_of_them() -> list[tuple[int, Any]]:
        return await asyncio.gather(*(served.ask(*asker) for asker in askers))

    return [status for status, _ in asyncio.run(all_of_them())]


def test_one_client_takes_its_places_and_the_others_have_theirs():
    served = Served()
    hers = statuses(served, *[("10.0.0.1", "")] * 60)
    assert (hers.count(200), hers.count(429)) == (MOST_OF_ONE, 60 - MOST_OF_ONE)
    assert statuses(served, ("10.0.0.2", ""), ("10.0.0.1", "")) == [200, 429]


def test_a_refusal_is_one_line_that_says_what_to_do():
    served = Served()
    statuses(served, *[("10.0.0.1", "")] * MOST_OF_ONE)
    _, said = asyncio.run(served.ask())
    assert list(said) == ["detail"]  # what Gradio's page shows
    assert said["detail"].startswith(f"You have {MOST_OF_ONE} requests waiting: let one of them end")
    assert len(said["detail"].splitlines()) == 1


def test_a_place_is_free_again_when_a_request_has_its_turn():
    served = Served()
    statuses(served, *[("10.0.0.1", "")] * MOST_OF_ONE)
    served.queue.active_jobs = [[served.line.queue.pop(0)]]
    assert [asyncio.run(served.ask())[0] for _ in range(2)] == [200, 429]


def test_whoever_signed_in_is_one_person_at_every_address_and_shares_none_with_others_there():
    served = Served()
    hers = statuses(served, *((f"10.0.0.{number}", "ada") for number in range(20)))
    assert hers.count(200) == MOST_OF_ONE
    assert statuses(served, ("10.0.0.1", "ben"), ("10.0.0.1", ""), ("10.9.9.9", "ada")) == [200, 200, 429]


def test_all_addresses_of_a_household_are_one():
    served = Served()
    of_one = [(f"2001:db8:0:1::{number:x}", "") for number in range(20)]
    assert statuses(served, *of_one).count(200) == MOST_OF_ONE
    assert statuses(served, ("2001:db8:0:2::1", "")) == [200]
    assert statuses(served, *[("::ffff:10.0.0.7", "")] * 20, ("10.0.0.7", "")).count(200) == MOST_OF_ONE


def test_where_all_come_through_one_proxy_an_address_is_nobody():
    served = Served(by_address=False)
    assert set(statuses(served, *[("10.0.0.1", "")] * 20)) == {200}
    assert statuses(served, *[("10.0.0.1", "ada")] * 20).count(429) == 20 - MOST_OF_ONE


def test_routes_that_wait_count_and_others_do_not():
    served = Served()

    async def some() -> list[int]:
        await asyncio.gather(*(served.ask("10.0.0.1", "", CALL) for _ in range(MOST_OF_ONE)))
        return [(await served.ask("10.0.0.1", "", path))[0] for path in (CALL, JOIN, OTHER)]

    assert asyncio.run(some()) == [429, 429, 200]


@pytest.fixture
def upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    path = tmp_path / "uploads" / "hash" / "x.csv"
    path.parent.mkdir(parents=True)
    path.write_text("a private cell")
    return path


def full() -> Served:
    served = Served()
    statuses(served, *[("10.0.0.1", "")] * MOST_OF_ONE)
    return served


def test_what_was_refused_leaves_no_upload(upload: Path):
    assert asyncio.run(full().ask("10.0.0.1", "", JOIN, 1, {"path": str(upload)}))[0] == 429
    assert not upload.parent.exists()


@pytest.mark.parametrize(("status", "stays"), [(200, True), (400, False), (422, False), (503, False), (401, True)])
def test_nor_does_what_gradio_refuses_but_for_whoever_has_not_signed_in(upload: Path, status: int, stays: bool):
    assert asyncio.run(Served(status=status).ask("10.0.0.1", "", JOIN, [{"path": str(upload)}]))[0] == status
    assert upload.exists() == stays


@pytest.mark.parametrize("at_work", [False, True])
def test_a_file_that_another_request_waits_with_stays(upload: Path, at_work: bool):
    served = full()
    assert asyncio.run(served.ask("10.0.0.2", "", JOIN, {"path": str(upload)}))[0] == 200
    if at_work:
        served.queue.active_jobs = [None, [served.line.queue.pop()]]
    assert asyncio.run(served.ask("10.0.0.1", "", JOIN, {"path": str(upload)}))[0] == 429
    assert upload.exists()


def test_no_other_file_is_removed(upload: Path, tmp_path: Path):
    other = tmp_path / "ledger.sqlite"
    other.write_text("x")
    (upload.parent / "link.csv").symlink_to(other)
    named = [str(other), str(upload.parent), str(upload.parent / "link.csv"), f"{upload.parent}/../../ledger.sqlite"]
    assert asyncio.run(full().ask("10.0.0.1", "", JOIN, *({"path": each} for each in named), {"path": "\0"}))[0] == 429
    assert other.exists()
    assert upload.exists()
