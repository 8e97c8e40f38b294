"""What no page of this app asks the server for is refused before it is looked at."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_UNUSED = tuple(
    f"/gradio_api/{route}"
    for route in ("file", "proxy", "deep_link", "stream", "vibe", "process_recording", "component_server")
)
"""Routes of Gradio that serve uploaded files, other hosts' pages, the state of a tab, or none of this app."""
_HARMLESS = ("GET", "HEAD", "OPTIONS")
_CHANGING = ("/logout", "/gradio_api/heartbeat")
"""Routes that change something although they are only read: who is signed in, and which page is open."""


class Doorkeeper:
    """ASGI middleware. Refuses unused routes, and changes asked for by a page of another site."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        app = self._app
        if scope["type"] == "http":
            if scope["path"].startswith(_UNUSED):
                app = PlainTextResponse("Not served here.", 404)
            elif _changes(scope) and _foreign(Headers(scope=scope)):
                app = PlainTextResponse("Refused: asked for by another site.", 403)
        await app(scope, receive, send)


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
