"""What no page of this app asks the server for is refused before it is looked at; answers say what browsers may do."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.formparsers import MultiPartException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mechanisms.data.table import MAX_BYTES

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
                receive = _whole(receive, most)
        await app(scope, receive, said)


def _whole(receive: Receive, most: int) -> Receive:
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
