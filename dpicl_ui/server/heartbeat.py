"""The connection that an open page keeps: when it ends, the tab is closed, and what the server knew of it goes.

Gradio's own one takes any name from anybody, and makes a session for each name that hangs up, on the event loop: a
stranger who opened and closed a thousand kept everybody else waiting. This one stands in its place.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import gradio as gr
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from dpicl_ui.server.asker import address_of, person_of

PATH = "/gradio_api/heartbeat/{session_hash}"
MOST, MOST_OF_ONE = 2000, 200
"""Open connections: of all, and of one person, or of one address where nobody signs in."""
_PAUSE = 15.0
"""Seconds between two signs of life, as in Gradio."""


class Heartbeats:
    """ASGI application. Wants the sign-in where there is one; a name that no handler has seen leaves nothing behind."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._unloading = asyncio.Semaphore(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold the connection until one side ends it."""
        request = Request(scope, receive)
        app = request.app
        person = person_of(request)
        if app.auth is not None and person is None:
            return await PlainTextResponse("Sign in first.", 401)(scope, receive, send)
        whose = person or address_of(request)
        if self._open[whose] >= MOST_OF_ONE or self._open.total() >= MOST:
            return await PlainTextResponse("Too many open pages: close some.", 429)(scope, receive, send)
        self._open[whose] += 1
        try:
            await _beat(app, receive, send)
        finally:
            self._open -= Counter({whose: 1})
            await self._closed(request, person)

    async def _closed(self, request: Request, person: str | None) -> None:
        name = str(request.path_params["session_hash"])
        session = request.app.state_holder.session_data.get(name)
        if session is None:
            return
        async with self._unloading:  # one at a time, and off the loop that answers everybody
            await asyncio.to_thread(_unload, request, name, person)
        session.is_closed = True  # unloading may have taken it out of the holder
        _end_events(request.app, name)


async def _beat(app: Any, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    gone, stopped = asyncio.create_task(_gone(receive)), asyncio.create_task(app.stop_event.wait())
    try:
        while not (gone.done() or stopped.done()):
            await send({"type": "http.response.body", "body": b"data: ALIVE\n\n", "more_body": True})
            await asyncio.wait([gone, stopped], timeout=_PAUSE, return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            await send({"type": "http.response.body", "body": b""})
    except OSError:
        pass  # the page went while it was written to
    finally:
        gone.cancel()
        stopped.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _unload(request: Request, name: str, person: str | None) -> None:
    """Call what the page wants called when it is closed."""
    asked = gr.Request(request, person, session_hash=name)
    for handler in request.app.get_blocks().fns.values():
        unload: Callable[[gr.Request], None] | None = handler.fn
        if unload is not None and any(event == "unload" for _, event in handler.targets):
            unload(asked)


def _end_events(app: Any, name: str) -> None:
    """Stop what still runs for the page."""
    queue = app.get_blocks()._queue
    for number in queue.pending_event_ids_session.get(name, ()):
        if event := queue.event_ids_to_events.get(number):
            event.run_time, event.closed = math.inf, True
            event.signal.set()
