"""Middleware that refuses, before Gradio, requests that no page of this app sends, and that adds security headers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.formparsers import MultiPartException
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpicl_ui.frame.internals import ASKED, CHANGING, TOO_LARGE, UNUSED, UPLOAD
from mechanisms.data.table import MAX_BYTES

MOST_UPLOADED, MOST_ASKED = MAX_BYTES + 2**20, 2**18
"""The most bytes of an upload (its file and a megabyte), and of any other request, whose values are checked one by one
while all other requests wait."""
_HARMLESS = ("GET", "HEAD", "OPTIONS")


class Doorkeeper:
    """ASGI middleware: refuses unused routes, requests that are too large, and requests made by pages of other sites.

    Gradio by itself accepts requests that pages of any site send with a signed-in user's cookies. Behind this
    middleware, another site may link to the app and do nothing else.

    Every answer has headers that forbid other sites to frame the page (a click meant for their page would spend epsilon
    here) and to keep a handle on its window, and that forbid browsers to guess content types. `frame-ancestors` works
    only in a header, so the page's own policy (`frame/theme.py`) cannot contain it.

    Args:
        app: the application behind it.
        framed_by: sites that may frame the page, such as the host of Spaces.
    """

    def __init__(self, app: ASGIApp, framed_by: str = "'none'") -> None:
        self._app = app
        self._headers = {
            "content-security-policy": f"frame-ancestors {framed_by}",
            "cross-origin-opener-policy": "same-origin",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        if scope["type"] == "http":
            most = MOST_UPLOADED if scope["path"].startswith(UPLOAD) else MOST_ASKED
            headers = Headers(scope=scope)
            stated = headers.get("content-length", "")
            if scope["path"].startswith(UNUSED):
                app = PlainTextResponse("Not served here.", 404)
            elif _foreign(headers) and not _follows_a_link(scope, headers):
                app = PlainTextResponse("Refused: asked for by another site.", 403)
            elif stated.isdecimal() and int(stated) > most:
                app = PlainTextResponse(TOO_LARGE, 413)
            elif scope["method"] not in _HARMLESS:
                receive = _read_whole(receive, most)
        await app(scope, receive, send_with_headers)


def _read_whole(receive: Receive, most: int) -> Receive:
    """A `receive` that raises if the request is too large or breaks off.

    `MultiPartException` is the one exception after which Gradio deletes the part of an upload that has arrived.
    """
    arrived, complete = 0, False

    async def received() -> Message:
        nonlocal arrived, complete
        message = await receive()
        if message["type"] == "http.disconnect" and not complete:
            raise MultiPartException("The request broke off.")
        arrived += len(message.get("body", b""))
        if arrived > most:
            raise MultiPartException(TOO_LARGE)
        complete = complete or not message.get("more_body", False)
        return message

    return received


def _follows_a_link(scope: Scope, headers: Headers) -> bool:
    """Whether a browser opens a page, which changes nothing. For such requests, older browsers send no origin."""
    leads = headers.get("sec-fetch-mode", "") == "navigate"
    return leads and scope["method"] in _HARMLESS and not scope["path"].startswith(CHANGING)


def _foreign(headers: Headers) -> bool:
    """Whether a page of another site caused the request. Clients that are not browsers send no origin."""
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


# The bodies of requests that call a handler: JSON with values that every handler can take.
#
# Gradio does not check values. A number of four hundred digits, or half a surrogate pair, raises an exception in
# Gradio's own code, which puts a traceback into the log and in some cases closes the connection.

_LARGEST = 1e15
"""The largest number that is accepted. No value of the app is larger, and float64 skips whole numbers beyond 2**53."""
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DEEPEST = 40
_HALF = re.compile("[\ud800-\udfff]")


class BodyChecks:
    """ASGI middleware behind the doorkeeper: refuses malformed requests (400)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(ASKED):
            return await self._app(scope, receive, send)
        body, more = b"", True
        while more:
            try:
                message = await receive()
            except MultiPartException:  # raised by the doorkeeper: too large, or broken off
                return await _refusal("too large")(scope, receive, send)
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if problem := _problem_of(body):
            return await _refusal(problem)(scope, receive, send)
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        return await self._app(scope, again, send)


def _refusal(problem: str) -> JSONResponse:
    return JSONResponse({"error": f"Malformed request: {problem}."}, 400)


def _problem_of(body: bytes) -> str | None:
    """The reason to refuse a body, in a few words that quote nothing of it; None if there is none."""
    try:
        document = json.loads(body.decode())
    except (ValueError, RecursionError):  # also for whole numbers of thousands of digits
        return "no JSON"
    if not isinstance(document, dict):
        return "no JSON object"
    session = document.get("session_hash")
    if session is not None and not (isinstance(session, str) and _SESSION.fullmatch(session)):
        return "session_hash must be a short name"
    if "data" in document and not isinstance(document["data"], list | dict):
        return "data must be a list"
    return next(_problems(document, 0), None)


def _problems(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield "nested too deeply"
    elif isinstance(value, str):
        if _HALF.search(value):
            yield "text with half a character in it"
    elif isinstance(value, int | float):
        if not -_LARGEST <= value <= _LARGEST:  # NaN fails too
            yield "a number out of range"
    elif isinstance(value, list | dict):
        parts = value if isinstance(value, list) else (*value.keys(), *value.values())
        for each in parts:
            yield from _problems(each, depth + 1)
