"""Whom a server serves, whose ledger a request uses, and what is refused at the gate and leaves nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import gradio as gr
import gradio.route_utils
import pytest
from gradio.routes import App
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from dpicl_ui.frame.internals import TidyParser, replace_in_gradio
from dpicl_ui.frame.services import Sessions, TabLedgers
from dpicl_ui.server import doorkeeper
from dpicl_ui.server.doorkeeper import MOST_ASKED, BodyChecks, Doorkeeper
from dpicl_ui.server.serving import WAIT, admits, serving, sweep
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.errors import UsageError
from tests.ui.visit import ROOT, free_port, serve

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
    assert "do not use private data" in ledgers.warning
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


def test_nothing_is_kept_for_a_handler_that_comes_behind_the_end_of_its_tab(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sessions, ledgers, now = Sessions(), TabLedgers(), [0.0]
    monkeypatch.setattr("dpicl_ui.frame.services.time.monotonic", lambda: now[0])
    for each in (sessions, ledgers):
        each.of(request("one"))
        each.drop(request("one"))
    late, ledger = sessions.of(request("one")), ledgers.of(request("one"))
    assert sessions._open == {}
    ledger.set_cap("letters", "record", CAP)
    assert ledgers.of(request("one")).names() == []
    del ledger
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    now[0] = 60.0
    assert sessions.of(request("one")) is not late
    assert sessions.of(request("one")) is sessions.of(request("one")), "a connection that broke is there again"


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


# What may come in: values that every handler can take. All else is one short line that quotes nothing of it.

JOIN = "/gradio_api/queue/join"
FINE = {"data": [1, 2.5, None, "x", [True], {"a": "ü😀"}], "session_hash": "abc123", "fn_index": 3}
MALFORMED = [
    b"",
    b"[1]",
    b"{",
    b'{"data": [1' + b"0" * 400 + b"]}",
    b'{"data": [1' + b"0" * 5000 + b"]}",
    b'{"data": [1e999]}',
    b'{"data": [NaN]}',
    b'{"data": ["\\ud800"]}',
    b'{"data": {"\\udfff": 1}}',
    b'{"data": 3}',
    b'{"data": [], "session_hash": ["x"]}',
    b'{"data": [], "session_hash": "../x"}',
    b'{"data": [], "session_hash": "' + b"x" * 100 + b'"}',
    b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"data": ' + b"[" * 60 + b"]" * 60 + b"}",
    json.dumps(FINE).encode("utf-16"),
]


async def echo(request: Request) -> JSONResponse:
    return JSONResponse(await request.json())


@pytest.fixture
def inner() -> TestClient:
    routes = [Route(JOIN, echo, methods=["POST"]), Route("/gradio_api/upload", echo, methods=["POST"])]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(Doorkeeper), Middleware(BodyChecks)]))


def test_what_a_page_sends_comes_through_as_it_is(inner):
    assert inner.post(JOIN, json=FINE).json() == FINE


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:24]))
def test_what_no_handler_can_take_is_refused_in_one_line(inner, body):
    answer = inner.post(JOIN, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("Malformed request: ")
    assert len(answer.text) < 100


def test_a_body_that_is_too_large_is_refused_unread_and_without_a_stated_length_too(inner):
    whole = b'{"data": ["' + b"x" * MOST_ASKED + b'"]}'
    assert inner.post(JOIN, content=whole).status_code == 413
    assert inner.post(JOIN, content=iter([whole])).json() == {"error": "Malformed request: too large."}


def test_other_routes_are_not_read(inner):
    assert inner.post("/gradio_api/upload", content=b"[1e3]").json() == [1e3]


def test_a_defect_is_one_line_without_its_message(caplog):
    replace_in_gradio()
    assert gradio.route_utils.GradioMultiPartParser is TidyParser

    async def broken(request: Request) -> PlainTextResponse:
        raise ValueError("a private cell")

    client = TestClient(Starlette(routes=[Route("/", broken)]), raise_server_exceptions=False)
    assert client.get("/").status_code == 500
    with caplog.at_level(logging.ERROR):
        try:
            raise ValueError("a private cell")
        except ValueError:
            logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    [record] = caplog.records
    assert "ValueError at" in record.getMessage()
    assert "private cell" not in caplog.text
    assert json.dumps(record.exc_text) == "null"


# What the door does to uploads on Gradio's own route: too large or broken off, they leave nothing on the disk.

SECRET = b"Mr Quillfeather of 12 Orchard Lane"
HEAD = b'--b\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n\r\n'
END = b"\r\n--b--\r\n"
LARGEST = 4000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Gradio behind the door, with small limits and a folder of its own for uploads."""
    folder = tmp_path_factory.mktemp("served") / "uploads"

    async def made() -> App:  # in a loop: Gradio asks for one, and leaves open the one that it makes for itself
        page = gr.Blocks(analytics_enabled=False)
        page.max_file_size = LARGEST
        return App.create_app(page, app_kwargs={"middleware": [Middleware(Doorkeeper)]})

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(folder))
        patch.setattr("gradio.route_utils.GradioMultiPartParser", TidyParser)
        patch.setattr(doorkeeper, "MOST_UPLOADED", LARGEST + 1000)
        patch.setattr(doorkeeper, "MOST_ASKED", LARGEST)
        yield asyncio.run(made())


@pytest.fixture
def app(served: App) -> App:
    shutil.rmtree(served.uploaded_file_dir, ignore_errors=True)
    return served


def ask(
    app: App, parts: list[bytes], path: str = "/gradio_api/upload", ends: int = 0, **headers: str
) -> tuple[int, str]:
    """The answer to a request that comes in parts, the last of which is END, or number `ends`; else it breaks off."""
    sent: list[Any] = []
    coming = enumerate(parts, 1)
    given = {"host": "127.0.0.1", "content-type": "multipart/form-data; boundary=b", **headers}

    async def receive() -> dict[str, Any]:
        number, part = next(coming, (0, None))
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": number != ends and not part.endswith(END)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1), "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent).decode()


def left(app: App) -> list[Path]:
    return [path for path in Path(app.uploaded_file_dir).parent.rglob("*") if path.is_file()]


def test_an_upload_that_is_whole_arrives(app: App):
    status, _ = ask(app, [HEAD % b"x.csv" + SECRET, END])
    assert status == 200
    assert [path.read_bytes() for path in left(app)] == [SECRET]


@pytest.mark.parametrize("name", [b"../../../x.csv", b"/etc/x.csv", b"..\\..\\x.csv", b"..", b"a/../../x", b"\xff\x00"])
def test_no_name_leads_an_upload_out_of_its_folder(app: App, name: bytes):
    ask(app, [HEAD % name + SECRET, END])
    assert all(path.is_relative_to(app.uploaded_file_dir) for path in left(app))
    assert not Path("/etc/x.csv").exists()


@pytest.mark.parametrize("parts", [[], [SECRET], [SECRET, SECRET]])
def test_an_upload_that_breaks_off_leaves_nothing(app: App, parts: list[bytes]):
    assert ask(app, [HEAD % b"x.csv" + SECRET, *parts])[0] == 400
    assert left(app) == []


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD % b"x.csv" + bytes(LARGEST + 1), END],
        [HEAD % b"x.csv", *[bytes(100)] * 1000],
        [HEAD % b"x.csv" + bytes(LARGEST) + b"\r\n" + HEAD % b"y.csv" + bytes(LARGEST), END],
        [b'--b\r\nContent-Disposition: form-data; name="field"\r\n\r\n', *[bytes(100)] * 1000],
    ],
    ids=["one file", "without an end", "together", "a field, which is kept in memory"],
)
def test_an_upload_that_is_too_large_is_refused_in_one_line_and_leaves_nothing(app: App, parts):
    status, said = ask(app, parts)
    assert status == 413
    assert len(said.splitlines()) == 1
    assert left(app) == []


OTHER = HEAD.replace(b"files", b"other") % b"x.csv" + SECRET
TEXT = b'--b\r\nContent-Disposition: form-data; name="files"\r\n\r\n' + SECRET


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([OTHER, END], 200),
        ([HEAD % b"x.csv" + SECRET], 200),
        ([HEAD % b".." + SECRET, END], 400),
        ([TEXT, END], 400),
        ([HEAD % b"x.csv" + SECRET + b"\r\n" + TEXT, END], 400),
        ([HEAD % b"x.csv" + SECRET + b"\r\n--b\r\n\r\n" + SECRET, END], 400),
    ],
    ids=["another field", "no end of the form", "no name", "a text", "a text beside a file", "a part without a field"],
)
def test_what_is_no_upload_is_not_kept(app: App, parts: list[bytes], status: int):
    assert ask(app, parts, ends=len(parts))[0] == status
    assert left(app) == []


def test_a_request_that_says_how_large_it_is_is_not_read_at_all(app: App):
    assert ask(app, [], **{"content-length": str(LARGEST * 2)})[0] == 413
    assert left(app) == []


@pytest.mark.parametrize("path", ["/gradio_api/queue/join", "/gradio_api/run/x", "/login"])
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_other_requests_have_a_size_too_whoever_asks(app: App, path: str, kind: str):
    taken: list[int] = []

    def endless() -> Iterator[bytes]:
        for _ in range(1000):
            taken.append(100)
            yield bytes(100)

    status, _ = ask(app, endless(), path, **{"content-type": f"{kind}; boundary=b"})  # type: ignore[arg-type]
    assert 400 <= status < 500
    assert sum(taken) <= LARGEST + 200


# The temporary folder of a process: nobody else's goes, and nothing of its own stays.

LIVING = """
import sys, tempfile, time
from pathlib import Path
from dpicl_ui.server.serving import TemporaryFolder
folder = TemporaryFolder(Path(sys.argv[1]))
folder.use()
tempfile.NamedTemporaryFile(delete=False).write(b"a private cell")
print(folder.path, flush=True)
time.sleep(600)
"""


def living(base: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", LIVING, str(base)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process.stdout as said:
        return process, Path(said.readline().strip())


def test_whoever_is_told_to_end_leaves_nothing(tmp_path):
    process, folder = living(tmp_path)
    assert any(folder.iterdir())
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    assert not any(tmp_path.iterdir())


def test_whoever_was_killed_is_cleaned_up_by_the_next_and_whoever_lives_is_not(tmp_path):
    process, killed = living(tmp_path)
    other, alive = living(tmp_path)
    process.kill()
    process.wait(60)
    assert killed.exists()
    sweep(tmp_path)
    assert not killed.exists()
    assert len(list(alive.iterdir())) > 1
    other.terminate()
    other.wait(60)


@pytest.mark.slow
@pytest.mark.usefixtures("any_text_passes")
def test_behind_a_prefix_both_spellings_work(tmp_path):
    """A proxy may strip the prefix before it passes a request on, or leave it there."""
    port = free_port()
    server = serve(tmp_path, port, GRADIO_ROOT_PATH="/studio")
    try:
        for spelled in ("", "/studio"):
            seen = [urlopen(f"http://127.0.0.1:{port}{spelled}/{path}").read() for path in ("theme.css", "", "config")]
            assert json.loads(seen[-1])["root"].endswith("/studio")
    finally:
        server.kill()
        server.wait()
