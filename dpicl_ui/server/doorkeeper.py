"""Middleware that refuses requests no page of this app sends: malformed bodies, malformed uploads, unused routes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import gradio.route_utils
from gradio.route_utils import GradioMultiPartParser
from starlette.datastructures import FormData, Headers, MutableHeaders, UploadFile
from starlette.formparsers import MultiPartException
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mechanisms.data.table import MAX_BYTES

# The bodies of requests that call a handler: JSON with values that every handler can take; others are refused.
#
# Gradio does not check values. A number of four hundred digits, or half a surrogate pair, raised in Gradio's own code:
# a traceback in the log and, in some cases, a closed connection.

_ASKED = (
    "/gradio_api/queue/",
    "/gradio_api/run/",
    "/gradio_api/api/",
    "/gradio_api/call/",
    "/gradio_api/cancel",
    "/gradio_api/reset",
)
"""Routes that start or cancel a handler."""
_LARGEST = 1e15
"""The largest number that is accepted. Nothing here counts so far, and float64 skips whole numbers beyond 2**53."""
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DEEPEST = 40
MOST, MOST_VALUES = 2**23, 10**5
"""The most bytes and values of such a request. Files are uploaded on another route."""
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, also one that is not closed: otherwise the search would start again at each of its quotation marks."""


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
    """The body, or just over `MOST` bytes of it where it is longer; None if the client disconnected."""
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
    """A `receive` that gives the body in one part first, then the messages after it."""
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
    """The reason to refuse a body, in a few words that quote nothing of it; None if there is none."""
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


# Uploads: Gradio's parser writes every part with a file name to the disk, also parts that no handler asked for, and
# leaves those there.

_FIELD = "files"
"""The form field in which Gradio's page sends files."""


class TidyParser(GradioMultiPartParser):
    """Gradio's parser of uploads; it also deletes each file that it does not hand on."""

    async def parse(self) -> FormData:
        """See Gradio; a form that cannot be read is refused (400)."""
        taken = list[Any]()
        try:
            form = await super().parse()
            taken = [part.file for part in map(_file, form.getlist(_FIELD))]
            return form
        except MultiPartException:
            raise
        except Exception:
            raise MultiPartException("The upload cannot be read.") from None
        finally:
            for file in self._files_to_close_on_error:
                if file not in taken:
                    file.close()
                    with suppress(OSError):
                        os.unlink(file.name)


def _file(part: UploadFile | str) -> UploadFile:
    if isinstance(part, str):
        raise MultiPartException("A file has a name.")
    if part.filename and PurePath(part.filename).name in ("", ".."):
        raise MultiPartException("That is no name of a file.")
    return part


def leave_no_parts() -> None:
    """Use `TidyParser` for all uploads of this process."""
    gradio.route_utils.GradioMultiPartParser = TidyParser  # type: ignore[misc]


# Requests that no page of this app makes, and the security headers of every answer.

_UNUSED = tuple(
    f"/gradio_api/{route}"
    for route in (
        "file", "proxy", "deep_link", "stream", "vibe", "process_recording", "component_server", "custom_component",
        "token", "run-history",
    )
)  # fmt: skip
"""Gradio's routes for uploaded files, for pages of other hosts, for the state of a tab and for the token of a signed-in
user, and routes for features that this app does not have."""
_UPLOAD = "/gradio_api/upload"
MOST_UPLOADED, MOST_ASKED = MAX_BYTES + 2**20, 2**25
"""The most bytes of an upload (a megabyte of them around its file), and of any other request."""
_TOO_LARGE = "Refused: larger than the maximum allowed size."
"""Gradio answers 413 to exactly these words."""
_HARMLESS = ("GET", "HEAD", "OPTIONS")
_CHANGING = ("/logout", "/gradio_api/heartbeat")
"""Routes whose GET changes state: signing out, and the connection of an open page."""


class Doorkeeper:
    """ASGI middleware: refuses unused routes, requests that are too large, and requests made by pages of other sites.

    Gradio alone accepts requests of any site with the cookies of a signed-in user. Here, another site may link to the
    app and do nothing else.

    Every answer has headers that forbid other sites to frame the page (a click meant for their page would spend epsilon
    here), to keep a handle on its window, and to guess content types. `frame-ancestors` works in headers only, so the
    page's own policy (`frame/theme.py`) cannot hold it.

    Args:
        app: the application behind it.
        framed_by: sites that may frame the page, such as the host of Spaces.
    """

    def __init__(self, app: ASGIApp, framed_by: str = "'none'") -> None:
        self._app = app
        self._said = {
            "content-security-policy": f"frame-ancestors {framed_by}",
            "cross-origin-opener-policy": "same-origin",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        app = self._app

        async def said(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._said)
            await send(message)

        if scope["type"] == "http":
            most = MOST_UPLOADED if scope["path"].startswith(_UPLOAD) else MOST_ASKED
            headers = Headers(scope=scope)
            if scope["path"].startswith(_UNUSED):
                app = PlainTextResponse("Not served here.", 404)
            elif _foreign(headers) and not _follows_a_link(scope, headers):
                app = PlainTextResponse("Refused: asked for by another site.", 403)
            elif _stated_length(headers) > most:
                app = PlainTextResponse(_TOO_LARGE, 413)
            elif scope["method"] not in _HARMLESS:
                receive = _read_whole(receive, most)
        await app(scope, receive, said)


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
            raise MultiPartException(_TOO_LARGE)
        complete = complete or not message.get("more_body", False)
        return message

    return received


def _stated_length(headers: Headers) -> int:
    stated = headers.get("content-length", "")
    return int(stated) if stated.isdecimal() else 0


def _follows_a_link(scope: Scope, headers: Headers) -> bool:
    """Whether a browser opens a page whose display changes nothing. Older browsers send no origin for that."""
    leads = headers.get("sec-fetch-mode", "") == "navigate"
    return leads and scope["method"] in _HARMLESS and not scope["path"].startswith(_CHANGING)


def _foreign(headers: Headers) -> bool:
    """Whether a page of another site made the browser send this. Clients that are no browsers send no origin."""
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")
