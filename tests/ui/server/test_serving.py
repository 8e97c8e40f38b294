"""Whom a server serves, whose ledger a request uses, and what is refused at the gate."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from dpicl_ui.frame.services import Sessions, TabLedgers
from dpicl_ui.server.serving import WAIT, admits, serving
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.errors import UsageError
from tests.ui.visit import ROOT

PASSWORD = "a long password"
CAP = Cap(2.0, 1e-6)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOST", "PORT", "SPACE_ID", "DPICL_LOCK_MODEL", "DPICL_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def request(tab: str = "tab") -> Any:
    return SimpleNamespace(username=None, session_hash=tab)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.8.8.8", "[::1]"])
def test_without_a_password_a_loopback_address_serves_the_installations_ledger(monkeypatch, host):
    monkeypatch.setenv("HOST", host)
    PrivacyLedger().set_cap("letters", "record", CAP)
    served = serving()
    assert served.arguments["server_name"] == host
    assert "auth" not in served.arguments
    assert served.ledgers.of(request()).snapshot("letters", "record").cap == CAP


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "[::]", "studio.example", "127.0.0.1.example", ""])
def test_without_a_password_no_other_address_is_served(monkeypatch, host):
    monkeypatch.setenv("HOST", host)
    with pytest.raises(UsageError, match="set DPICL_PASSWORD"):
        serving()


@pytest.mark.slow
@pytest.mark.parametrize(("host", "code", "words"), [("0.0.0.0", 2, "HOST=0.0.0.0"), ("127.0.0.1", 1, "--port")])
def test_a_refused_start_is_one_line(monkeypatch, tmp_path, host, code, words):
    monkeypatch.setenv("HOST", host)
    monkeypatch.setenv("DPICL_MODEL", str(tmp_path))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setenv("PORT", str(other.getsockname()[1]))
        ended = subprocess.run([sys.executable, "app.py"], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == code
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert words in ended.stderr


@pytest.mark.parametrize("space", [False, True])
def test_with_a_password_any_address_is_served_and_there_is_one_ledger(monkeypatch, space):
    monkeypatch.setenv("HOST", "0.0.0.0")
    monkeypatch.setenv("DPICL_PASSWORD", PASSWORD)
    if space:
        monkeypatch.setenv("SPACE_ID", "someone/studio")
    served = serving()
    assert served.ledgers.signed_in
    assert served.ledgers.of(request("one")) is served.ledgers.of(request("other"))
    assert asyncio.iscoroutinefunction(served.arguments["auth"])  # Gradio would not wait for it otherwise


@pytest.mark.parametrize("name", ["Ada", "", "nobody"])
def test_the_password_opens_whatever_the_name_and_nothing_else_does(monkeypatch, name):
    monkeypatch.setattr("dpicl_ui.server.serving.WAIT", 0.0)
    admit = admits(PASSWORD)
    assert asyncio.run(admit(name, PASSWORD))
    for wrong in ("", PASSWORD[:-1], PASSWORD + "x", PASSWORD.upper(), "\ud800"):
        assert not asyncio.run(admit(name, wrong))


def test_whoever_guesses_waits_and_guesses_take_turns(monkeypatch):
    waited = list[float]()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("dpicl_ui.server.serving.asyncio.sleep", sleep)
    admit = admits(PASSWORD)

    async def guesses() -> None:
        assert not any([await admit("Ada", str(number)) for number in range(5)])
        assert await admit("Ada", PASSWORD)

    asyncio.run(guesses())
    assert waited == [WAIT] * 5


def test_a_short_password_is_refused(monkeypatch):
    monkeypatch.setenv("DPICL_PASSWORD", "short")
    with pytest.raises(UsageError, match="at least 8"):
        serving()


def test_nothing_in_the_environment_opens_a_tunnel():
    arguments = serving().arguments
    assert (arguments["share"], arguments["mcp_server"]) == (False, False)


def test_a_space_without_a_password_gives_every_tab_a_ledger_that_goes_with_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SPACE_ID", "someone/studio")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    served = serving()
    ledgers, (one, other) = served.ledgers, (request("one"), request("other"))
    assert isinstance(ledgers, TabLedgers)
    assert served.arguments["server_name"] == "0.0.0.0"
    assert "no place for private data" in ledgers.warning
    ledgers.of(one).set_cap("letters", "record", CAP)
    assert ledgers.of(one).snapshot("letters", "record").cap == CAP
    assert ledgers.of(other).names() == []
    assert len(list(tmp_path.rglob("ledger.sqlite"))) == 2
    ledgers.drop(one)
    assert len(list(tmp_path.rglob("ledger.sqlite"))) == 1
    assert ledgers.of(one).names() == []
    for tab in (one, other):
        ledgers.drop(tab)
    assert list(tmp_path.glob("dpicl-*")) == []


def test_every_tab_has_a_session_of_its_own():
    sessions = Sessions()
    one = sessions.of(request("one"))
    assert sessions.of(request("one")) is one
    assert sessions.of(request("other")) is not one
    sessions.drop(request("other"))
    assert sessions.of(request("one")) is one
    sessions.drop(request("one"))
    assert sessions.of(request("one")) is not one


def client(**headers: str) -> TestClient:
    middleware = serving().arguments["app_kwargs"]["middleware"]
    paths = ("/", "/logout", "/gradio_api/file={path:path}", "/gradio_api/queue/join")
    routes = [Route(path, lambda _: PlainTextResponse("served"), methods=["GET", "POST"]) for path in paths]
    made = TestClient(Starlette(routes=routes, middleware=middleware), base_url="http://127.0.0.1:7860")
    made.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    return made


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec_fetch_site": "same-origin", "origin": "http://127.0.0.1:7860"}, 200),
        ({"origin": "http://127.0.0.1:7860"}, 200),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_no_page_of_another_site_changes_or_reads_anything(headers, status):
    assert client(**headers).post("/gradio_api/queue/join", json={}).status_code == status
    for path in ("/logout", "/", "/gradio_api/queue/join"):  # Gradio would let any site read, cookies and all
        assert client(**headers).get(path).status_code == status
    link = {name: value for name, value in headers.items() if name != "origin"} | {"sec_fetch_mode": "navigate"}
    assert client(**link).get("/").status_code == 200


@pytest.mark.parametrize(("host", "status"), [("localhost:7860", 200), ("evil.example:7860", 400)])
def test_a_curators_server_answers_to_no_borrowed_name(host, status):
    assert client(host=host).get("/").status_code == status


@pytest.mark.parametrize("path", ["/", "/nowhere", "/gradio_api/file=/tmp/gradio/upload.csv"])
def test_no_other_site_shows_the_page_in_a_frame(monkeypatch, path):
    answer = client().get(path)
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    monkeypatch.setenv("SPACE_ID", "someone/studio")
    assert client().get(path).headers["content-security-policy"] == "frame-ancestors https://huggingface.co"


@pytest.mark.parametrize(("lock", "locked"), [(None, False), ("", False), ("0", False), ("1", True), ("yes", True)])
def test_the_owner_chooses_any_model_unless_it_is_locked_and_strangers_none(monkeypatch, lock, locked):
    if lock is not None:
        monkeypatch.setenv("DPICL_LOCK_MODEL", lock)
    assert serving().locked is locked
    monkeypatch.setenv("SPACE_ID", "someone/studio")
    assert serving().locked
    monkeypatch.setenv("DPICL_PASSWORD", PASSWORD)
    assert serving().locked is locked
