"""Whom a server serves, whose ledger a request uses, and what is refused at the gate."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from dpicl_ui.frame.model_loader import Choosable
from dpicl_ui.frame.sessions import CuratorLedger, OwnerLedgers, Sessions, TabLedgers
from dpicl_ui.server.serving import Login, serving
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.accounts import Accounts
from mechanisms.errors import UsageError
from tests.ui.visit import ROOT

PASSWORD = "a long password"
CAP = Cap(2.0, 1e-6)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOST", "PORT", "SPACE_ID", "DPICL_LOCK_MODEL"):
        monkeypatch.delenv(name, raising=False)


def request(user: str | None, tab: str = "tab") -> Any:
    return SimpleNamespace(username=user, session_hash=tab)


def people(*names: str) -> Accounts:
    accounts = Accounts()
    for name in names:
        accounts.add(name, PASSWORD)
    return accounts


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.8.8.8", "[::1]"])
def test_without_accounts_a_loopback_address_serves_the_installations_ledger(monkeypatch, host):
    monkeypatch.setenv("HOST", host)
    PrivacyLedger().set_cap("letters", "record", CAP)
    served = serving()
    assert served.arguments["server_name"] == host
    assert "auth" not in served.arguments
    assert served.ledgers.of(request(None)).snapshot("letters", "record").cap == CAP


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "[::]", "studio.example", "127.0.0.1.example", ""])
def test_without_accounts_no_other_address_is_served(monkeypatch, host):
    monkeypatch.setenv("HOST", host)
    with pytest.raises(UsageError, match="users add"):
        serving()


@contextmanager
def taken(host: str = "127.0.0.1") -> Iterator[int]:
    """A port where somebody else listens."""
    with socket.socket() as other:
        other.bind((host, 0))
        other.listen()
        yield int(other.getsockname()[1])


def test_a_port_that_was_asked_for_and_is_taken_is_refused_in_one_line(monkeypatch):
    with taken() as port:
        with pytest.raises(UsageError, match=f"^Port {port} is taken: .*$"):
            serving(port=port)
        monkeypatch.setenv("PORT", str(port))
        with pytest.raises(UsageError, match=f"^Port {port} is taken: .*$"):
            serving()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.8.8.8"])
def test_where_none_was_asked_for_the_next_free_one_is_taken_and_told(monkeypatch, capsys, host):
    with taken() as port:
        monkeypatch.setattr("dpicl_ui.server.serving._PORT", port)
        chosen = serving(host).arguments["server_port"]
    assert port < chosen < port + 100
    assert capsys.readouterr().err == f"app: port {port} is taken, so this one serves on {chosen}.\n"


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_what_is_no_port_is_refused(port):
    with pytest.raises(UsageError, match="from 1 to 65535"):
        serving(port=port)


def test_an_address_of_another_machine_is_refused_in_one_line():
    people("Ada")
    with pytest.raises(UsageError, match=r"^This machine cannot listen on 192\.0\.2\.1, port \d+: .*$"):
        serving("192.0.2.1")


@pytest.mark.slow
def test_a_refused_start_is_one_line_and_exit_code_2(monkeypatch):
    monkeypatch.setenv("HOST", "0.0.0.0")
    ended = subprocess.run([sys.executable, "app.py"], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert "HOST=0.0.0.0" in ended.stderr


def test_with_accounts_any_address_is_served_and_asks_who_is_there(monkeypatch):
    monkeypatch.setenv("HOST", "0.0.0.0")
    monkeypatch.setenv("SPACE_ID", "someone/studio")
    people("Ada")
    served = serving()
    assert isinstance(served.ledgers, OwnerLedgers)
    assert asyncio.run(served.arguments["auth"]("Ada", PASSWORD))
    assert asyncio.iscoroutinefunction(served.arguments["auth"])  # Gradio would not wait for it otherwise


def test_nothing_in_the_environment_opens_a_tunnel(monkeypatch):
    arguments = serving().arguments
    assert (arguments["share"], arguments["mcp_server"]) == (False, False)


def test_a_space_without_accounts_gives_every_tab_a_ledger_that_goes_with_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SPACE_ID", "someone/studio")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    served = serving()
    ledgers, (one, other) = served.ledgers, (request(None, "one"), request(None, "other"))
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


def test_people_share_nothing_a_ledger_knows():
    ledgers = OwnerLedgers(people("Ada", "Ben"))
    ada, ben = ledgers.of(request("Ada")), ledgers.of(request("Ben"))
    ada.set_cap("letters", "record", CAP)
    assert ben.names() == []
    assert ledgers.of(request("Ada", "another tab")) is ada
    assert PrivacyLedger().names() == []


def test_one_person_is_one_however_the_name_is_typed():
    ledgers = OwnerLedgers(people("Zoë"))
    assert ledgers.of(request("Zoe\u0308 ")) is ledgers.of(request("Zoë"))


@pytest.mark.parametrize("user", [None, "", "Eve"])
def test_nobody_else_gets_a_ledger(user, data_folder):
    accounts = people("Ada", "Eve")
    accounts.remove("Eve")
    with pytest.raises(UsageError):
        OwnerLedgers(accounts).of(request(user))
    assert not (data_folder / "owners").exists()


def test_a_tab_opens_for_the_one_who_opened_it_alone():
    sessions = Sessions()
    ada = sessions.of(request("Ada"))
    assert sessions.of(request("Ada")) is ada
    assert sessions.of(request("Ben")) is not ada
    sessions.drop(request(None))
    assert sessions.of(request("Ada")) is ada


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("name", ["Ada", "nobody"])
def test_whoever_guesses_waits_longer_and_longer_and_not_for_ever(name):
    asked = []

    def admits(_name: str, password: str) -> bool:
        asked.append(password)
        return password == PASSWORD and name == "Ada"

    clock = Clock()
    check = Login(SimpleNamespace(admits=admits), clock).admits  # type: ignore[arg-type]

    async def wait_and_guess() -> float:
        before, count = clock.now, len(asked)
        while not await check(name, "wrong") and len(asked) == count:
            clock.now += 0.5
        return clock.now - before

    async def guess() -> None:
        waits = [await wait_and_guess() for _ in range(20)]
        assert waits[:5] == [0.0] * 5
        assert waits == sorted(waits)
        assert waits[-1] == 60
        assert not await check(name, PASSWORD)
        assert len(asked) == 20
        await check("Ben", "wrong")
        assert len(asked) == 21
        clock.now += 60
        assert await check(name, PASSWORD) == (name == "Ada")

    asyncio.run(guess())


def test_the_right_password_clears_the_count():
    check = Login(people("Ada")).admits

    async def visits() -> bool:
        for _ in range(3):
            for _ in range(4):
                assert not await check("Ada", "wrong")
            assert await check("Ada", PASSWORD)
        return True

    assert asyncio.run(visits())


def client(**headers: str) -> TestClient:
    middleware = serving().arguments["app_kwargs"]["middleware"]
    paths = ("/", "/logout", "/gradio_api/file={path:path}", "/gradio_api/queue/join")
    routes = [Route(path, lambda _: PlainTextResponse("served"), methods=["GET", "POST"]) for path in paths]
    app: Any = Starlette(routes=routes, middleware=middleware)
    app.tokens, app.cookie_id = {}, "x"
    app.get_blocks = lambda: SimpleNamespace(_queue=SimpleNamespace(event_queue_per_concurrency_id={}, active_jobs=[]))
    made = TestClient(app, base_url="http://127.0.0.1:7860")
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


def test_no_file_is_served():
    assert client().get("/gradio_api/file=/tmp/gradio/upload.csv").status_code == 404


def test_the_page_says_whose_ledger_it_is(tmp_path: Path):
    said = {each.footing for each in (CuratorLedger(PrivacyLedger(tmp_path)), OwnerLedgers(Accounts()), TabLedgers())}
    assert len(said) == 3


@pytest.mark.parametrize(("lock", "locked"), [(None, False), ("", False), ("0", False), ("1", True), ("yes", True)])
def test_the_curator_chooses_any_model_people_a_listed_one_and_strangers_none(monkeypatch, lock, locked):
    if lock is not None:
        monkeypatch.setenv("DPICL_LOCK_MODEL", lock)
    assert serving().choosable is (Choosable.NONE if locked else Choosable.ANY)
    monkeypatch.setenv("SPACE_ID", "someone/studio")
    assert serving().choosable is Choosable.NONE
    people("Ada")
    assert serving().choosable is (Choosable.NONE if locked else Choosable.LISTED)
