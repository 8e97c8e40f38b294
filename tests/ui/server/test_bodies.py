"""What may come in: values that every handler can take. All else is one short line that quotes nothing of it."""

from __future__ import annotations

import json
import logging

import gradio.route_utils
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from dpicl_ui.frame.internals import TidyParser, replace_in_gradio
from dpicl_ui.server.doorkeeper import MOST_ASKED, Bodies, Doorkeeper

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
def client() -> TestClient:
    routes = [Route(JOIN, echo, methods=["POST"]), Route("/gradio_api/upload", echo, methods=["POST"])]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(Doorkeeper), Middleware(Bodies)]))


def test_what_a_page_sends_comes_through_as_it_is(client):
    assert client.post(JOIN, json=FINE).json() == FINE


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:24]))
def test_what_no_handler_can_take_is_refused_in_one_line(client, body):
    answer = client.post(JOIN, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("Malformed request: ")
    assert len(answer.text) < 100


def test_a_body_that_is_too_large_is_refused_unread_and_without_a_stated_length_too(client):
    whole = b'{"data": ["' + b"x" * MOST_ASKED + b'"]}'
    assert client.post(JOIN, content=whole).status_code == 413
    assert client.post(JOIN, content=iter([whole])).json() == {"error": "Malformed request: too large."}


def test_other_routes_are_not_read(client):
    assert client.post("/gradio_api/upload", content=b"[1e3]").json() == [1e3]


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
