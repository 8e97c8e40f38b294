"""What a request may ask a handler with: JSON whose values every handler can take, or one line that refuses it.

Gradio hands values on as they came: a number of four hundred digits, or half of a character, broke in its own code,
where the answer is a stack of lines in the log and, for some, the end of the sender's connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ASKED = (
    "/gradio_api/queue/",
    "/gradio_api/run/",
    "/gradio_api/api/",
    "/gradio_api/call/",
    "/gradio_api/cancel",
    "/gradio_api/reset",
)
"""Routes that call a handler, or end one."""
_LARGEST = 1e15
"""Whole numbers above it are no count of anything here, and float64 has not all of them."""
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DEEPEST = 40
MOST, MOST_VALUES = 2**23, 10**5
"""Bytes of such a request, and values in it; files come another way."""
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""Also one that does not end, or each quotation mark in it would be looked at as the start of another."""


class Bodies:
    """ASGI middleware: refuses malformed requests (400) before Gradio sees them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(_ASKED):
            return await self._app(scope, receive, send)
        if "json" not in Headers(scope=scope).get("content-type", "json"):
            return await _refusal("send JSON")(scope, receive, send)
        body = await _read(receive)
        if body is None:
            return None
        if problem := "too large" if len(body) > MOST else problem_of(body):
            return await _refusal(problem)(scope, receive, send)
        await self._app(scope, _again(body, receive), send)
        return None


async def _read(receive: Receive) -> bytes | None:
    """The body, or as much of one as shows that it is too large; None where the sender went away."""
    body, more = b"", True
    while more and len(body) <= MOST:
        try:
            message = await receive()
        except MultiPartException:  # of the doorkeeper, who counts too
            return None
        if message["type"] == "http.disconnect":
            return None
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """The body in one part, and then whatever comes after it."""
    told = False

    async def received() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


def _refusal(problem: str) -> JSONResponse:
    return JSONResponse({"error": f"Malformed request: {problem}."}, 400)


def problem_of(body: bytes) -> str | None:
    """Why a body cannot be taken, in a few words that quote nothing of it; None where it can."""
    if _marks(body) > MOST_VALUES and _marks(_STRING.sub(b"", body)) > MOST_VALUES:
        return "too many values"  # to read millions of them would keep everybody waiting for seconds
    try:
        document = json.loads(body.decode())  # in no other encoding, or its marks would not be those that were counted
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


def _marks(body: bytes) -> int:
    return sum(map(body.count, (b",", b"[", b"{")))


def _whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _problems(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield "nested too deeply"
    elif isinstance(value, str):
        if not _whole(value):
            yield "text with half a character in it"
    elif isinstance(value, int | float):
        if not -_LARGEST <= value <= _LARGEST:  # not a number is none of these either
            yield "a number out of range"
    elif isinstance(value, list | dict):
        parts = value if isinstance(value, list) else (*value.keys(), *value.values())
        for each in parts:
            yield from _problems(each, depth + 1)
