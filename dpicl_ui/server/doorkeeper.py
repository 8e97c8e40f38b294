"""What is refused at the door: bodies that no handler can take, uploads that are none, and what no page asks for."""

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

# What a request may ask a handler with: JSON whose values every handler can take, or one line that refuses it.
#
# Gradio hands values on as they came: a number of four hundred digits, or half of a character, broke in its own
# code, where the answer is a stack of lines in the log and, for some, the end of the sender's connection.

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


# What arrives as an upload and is none: files under another name, without an end, or in a form that is no form.
#
# Gradio's reader puts every part that has a file's name on the disk, hands on those it has been asked for, and
# forgets the others there.

_FIELD = "files"
"""The one under which Gradio's page sends files."""


class TidyParser(GradioMultiPartParser):
    """Gradio's reader of uploads, which leaves on the disk what it hands on, and nothing else."""

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
    """From now on, in this process, uploads are read in this way."""
    gradio.route_utils.GradioMultiPartParser = TidyParser  # type: ignore[misc]


# What no page of this app asks the server for is refused before it is looked at; answers say what browsers may do.

_UNUSED = tuple(
    f"/gradio_api/{route}"
    for route in (
        "file", "proxy", "deep_link", "stream", "vibe", "process_recording", "component_server", "custom_component",
        "token", "run-history",
    )
)  # fmt: skip
"""Routes of Gradio that serve uploaded files, other hosts' pages, the state of a tab, the key of whoever signed in, or
none of this app."""
_UPLOAD = "/gradio_api/upload"
MOST_UPLOADED, MOST_ASKED = MAX_BYTES + 2**20, 2**25
"""Bytes of a request: of an upload with what stands around its file, and of any other."""
_TOO_LARGE = "Refused: larger than the maximum allowed size."
"""In words by which Gradio knows a request that is too large (413)."""
_HARMLESS = ("GET", "HEAD", "OPTIONS")
_CHANGING = ("/logout", "/gradio_api/heartbeat")
"""Routes that change something although they are only read: who is signed in, and which page is open."""


class Doorkeeper:
    """ASGI middleware. Refuses unused routes, requests that are too large, and what a page of another site asks for.

    A link on another site may lead here, and that is all: Gradio itself lets pages of any site read with the cookies of
    whoever is signed in.

    Every answer forbids other sites to show the page in a frame (a click meant for theirs would spend epsilon here),
    to keep it open beside theirs, and to guess what kind a file is. The page's own policy (`frame/theme.py`) cannot say
    the first: browsers read `frame-ancestors` in headers only.

    Args:
        app: what is behind the door.
        framed_by: the sites that may show the page in a frame all the same, as a host of Spaces does.
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
    """The parts of a request, which end in an exception where they are too many, or where the last one never comes.

    It is the one exception with which Gradio's reading of an upload removes what has arrived from the disk.
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
    """Whether a browser goes to a page that changes nothing by being looked at; older ones name no origin for that."""
    leads = headers.get("sec-fetch-mode", "") == "navigate"
    return leads and scope["method"] in _HARMLESS and not scope["path"].startswith(_CHANGING)


def _foreign(headers: Headers) -> bool:
    """Whether a browser sends this for a page that did not come from here; other clients name no origin."""
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")
