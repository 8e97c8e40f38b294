"""The app behind a password: what somebody without it gets, and what a path or another site gets of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from mechanisms.accounting import Cap, PrivacyLedger
from tests.ui.visit import serving

pytestmark = pytest.mark.slow
NAME, PASSWORD = "Ada", "a long password"
SECRET = "Mr Quillfeather of 12 Orchard Lane"
OPEN = {
    "/", "/login", "/login/", "/logout", "/theme.css", "/gradio_api/theme.css", "/gradio_api/robots.txt", "/robots.txt",
    "/manifest.json", "/favicon.ico", "/pwa_icon", "/pwa_icon/{size}", "/gradio_api/app_id", "/gradio_api/app_id/",
    "/gradio_api/user", "/gradio_api/user/", "/gradio_api/startup-events", "/gradio_api/reset", "/gradio_api/reset/",
    "/gradio_api/heartbeat/{session_hash}",
}  # fmt: skip
"""The form for signing in, what it looks like, words that depend on nobody, and the connection that an open page keeps,
which never ends (SECURITY.md)."""
PATIENCE = 300.0
"""Seconds for an answer, on a machine that others use too."""


@dataclass
class Served:
    """The app's address and folder, and somebody who signed in and uploaded a file that nothing has taken yet."""

    folder: Path
    port: int
    ada: httpx.Client
    upload: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("strangers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPICL_HOME", str(folder / "home"))
        PrivacyLedger().set_cap(SECRET, "record", Cap(2.0, 1e-6))
    with (
        serving(folder, DPICL_MODEL="no-such-model", DPICL_PASSWORD=PASSWORD) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as ada,
    ):
        assert ada.post("/login", data={"username": NAME, "password": PASSWORD}).status_code == 200
        sent = ada.post("/gradio_api/upload", files={"files": ("x.csv", SECRET.encode())})
        yield Served(folder, port, ada, Path(sent.json()[0]))


def raw(served: Served, path: str, cookie: str) -> bytes:
    """An answer to a path exactly as it stands: clients tidy what has dots in it."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as line:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        line.sendall(head.encode())
        return b"".join(iter(lambda: line.recv(2**16), b""))


def targets(served: Served) -> list[Path]:
    found = [path for path in (served.folder / "home").rglob("*") if path.is_file()]
    assert any(path.name == "ledger.sqlite" for path in found)
    return [path for path in (*found, served.upload, Path("/etc/passwd"), Path(__file__)) if path.stat().st_size]


ROUTES = (
    "/gradio_api/file=", "/gradio_api/file/", "/file=", "/file/", "//gradio_api/file=", "/gradio_api//file=",
    "/gradio_api/%66ile=", "/gradio_api/./file=", "/x/../gradio_api/file=", "/gradio_api/proxy=file://",
    "/gradio_api/proxy=http://127.0.0.1/", "/gradio_api/stream/", "/static/", "/assets/", "/svelte/", "/pwa_icon/",
    "/gradio_api/custom_component/HTML/client/component/", "/gradio_api/run-history/records/x/x/assets/",
)  # fmt: skip
UP = ("", "/", "../" * 12, "..%2f" * 12, "%2e%2e/" * 12, "%252e%252e%252f" * 12, "....//" * 12, "..\\" * 12, "%00/../")


@pytest.mark.parametrize("route", ROUTES)
def test_no_path_leads_to_a_file_of_the_machine_even_for_whoever_signed_in(served: Served, route: str):
    cookie = "; ".join(f"{name}={value}" for name, value in served.ada.cookies.items())
    assert served.ada.get("/gradio_api/user").json() == NAME
    for target in targets(served):
        start = target.read_bytes()[:40]
        for up in UP:
            for named in (str(target), str(target).lstrip("/").replace("/", "%2f")):
                answer = raw(served, f"{route}{up}{named}", cookie)
                status = answer.split()[1]
                assert status in (b"400", b"403", b"404", b"405", b"422"), (route, up, named, status)
                assert start not in answer


def test_without_the_password_every_route_there_is_refuses(served: Served):
    with httpx.Client(base_url=served.url, timeout=PATIENCE) as stranger:
        routes = stranger.get("/openapi.json").json()["paths"]
        assert len(routes) > 40
        answered = {
            f"{method} {path}": stranger.request(method, path.replace("{", "").replace("}", ""), json={}).status_code
            for path, methods in routes.items()
            for method in methods
            if path not in OPEN
        }
    assert {asked: status for asked, status in answered.items() if not 400 <= status < 500} == {}


def test_without_the_password_nothing_is_uploaded_and_no_session_is_told(served: Served):
    before = {path for path in (served.folder / "temp").rglob("*") if path.is_file()}
    with httpx.Client(base_url=served.url, timeout=PATIENCE) as stranger:
        assert stranger.post("/gradio_api/upload", files={"files": ("x.csv", b"x")}).status_code == 401
        for cookies in ({}, {"access-token": "x"}, dict.fromkeys(served.ada.cookies, "guessed")):
            stranger.cookies = httpx.Cookies(cookies)
            assert stranger.get("/config").status_code == 401
            assert stranger.get("/gradio_api/user").json() is None
            page = stranger.get("/").text
            assert "auth_required" in page
            assert NAME not in page
    assert {path for path in (served.folder / "temp").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("host", ["studio.example", "127.0.0.1"])
@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:9", "http://localhost:9", "null"])
def test_another_site_neither_reads_nor_asks_with_the_cookies_of_whoever_signed_in(
    served: Served, host: str, origin: str
):
    asked = [("GET", "/"), ("GET", "/config"), ("GET", "/gradio_api/token"), ("GET", "/gradio_api/user")]
    asked += [("GET", "/gradio_api/queue/data?session_hash=x"), ("GET", "/logout")]
    asked += [("POST", f"/gradio_api/{each}") for each in ("queue/join", "upload", "cancel", "run/predict")]
    headers = {"origin": origin, "host": host}
    for method, path in asked:
        answer = served.ada.request(method, path, headers=headers, content=b"{}" if method == "POST" else None)
        assert answer.status_code in (403, 404), path
        assert answer.text in ("Refused: asked for by another site.", "Not served here."), path
    assert served.ada.get("/gradio_api/user").json() == NAME


def test_nobody_is_given_the_key_of_whoever_signed_in(served: Served):
    assert served.ada.get("/gradio_api/token").status_code == 404
    tokens = set(served.ada.cookies.values())
    for path in ("/", "/config", "/gradio_api/info", "/gradio_api/user"):
        assert not any(token in served.ada.get(path).text for token in tokens), path


def test_the_log_holds_nothing_of_what_was_sent(served: Served):
    log = (served.folder / "log").read_text()
    assert SECRET not in log
    assert PASSWORD not in log
