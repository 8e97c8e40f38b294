"""What no page of this app asks the server for is refused before it is looked at; answers say what browsers may do."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_UNUSED = tuple(
    f"/gradio_api/{route}"
    for route in ("file", "proxy", "deep_link", "stream", "vibe", "process_recording", "component_server")
)
"""Routes of Gradio that serve uploaded files, other hosts' pages, the state of a tab, or none of this app."""
_HARMLESS = ("GET", "HEAD", "OPTIONS")
_CHANGING = ("/logout", "/gradio_api/heartbeat")
"""Routes that change something although they are only read: who is signed in, and which page is open."""


class Doorkeeper:
    """ASGI middleware. Refuses unused routes, and changes asked for by a page of another site.

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
            if scope["path"].startswith(_UNUSED):
                app = PlainTextResponse("Not served here.", 404)
            elif _changes(scope) and _foreign(Headers(scope=scope)):
                app = PlainTextResponse("Refused: asked for by another site.", 403)
        await app(scope, receive, said)


def _changes(scope: Scope) -> bool:
    return scope["method"] not in _HARMLESS or scope["path"].startswith(_CHANGING)


def _foreign(headers: Headers) -> bool:
    """Whether a browser sends this for a page that did not come from here; other clients name no origin.

    A browser would keep the answer from that page, but what was asked for would have been done.
    """
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")
