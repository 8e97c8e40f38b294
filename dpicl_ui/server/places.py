"""Who asks: places in the queue for each person, and the connection that an open page keeps."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpicl_ui.frame.inputs import discard

# Who asks: whom a request counts for, where each may have so much and no more.

_PREFIX = 64
"""Bits of an IPv6 address that name a household; whoever has one may use all addresses in it."""


def person_of(request: Request) -> str | None:
    """Who signed in, as Gradio knows it."""
    app = request.app
    cookies = (request.cookies.get(f"access-token-{kind}{app.cookie_id}") for kind in ("", "unsecure-"))
    person: str | None = app.tokens.get(next(filter(None, cookies), None))
    return person


def address_of(request: Request) -> str:
    """The address of who connects, or whom a proxy names that the operator trusts (FORWARDED_ALLOW_IPS of uvicorn)."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or IPv6Network((address.packed, _PREFIX), strict=False))


# Places in Gradio's queue: so many for each person, and what a refused request has uploaded is removed at once.
#
# The queue itself has places for everybody, in the order in which they ask: one client could take all of them.

_JOINING = ("/gradio_api/queue/join", "/gradio_api/call/")
MOST_OF_ONE = 8
"""Requests of one person, or of one address where nobody signs in, that wait at once; the page has 32 for all."""
_REFUSAL = f"You have {MOST_OF_ONE} requests waiting: let one of them end, or close a tab, and try again."
_SIGN_IN = 401
"""Whoever is told to sign in has uploaded nothing, and may name what somebody else has."""


class Places:
    """ASGI middleware, which stands behind `Bodies`: refuses (429) a request whose sender has enough that wait.

    Args:
        app: what is behind it.
        by_address: whether an address stands for a person where nobody signs in; not so where all come through one
            proxy that the operator has not named.
    """

    def __init__(self, app: ASGIApp, by_address: bool = True) -> None:
        self._app, self._by_address = app, by_address
        self._entering = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(_JOINING):
            return await self._app(scope, receive, send)
        request = Request(scope)
        parts, status = list[bytes](), 0

        async def kept() -> Message:
            message = await receive()
            parts.append(message.get("body", b""))
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._asked(request, kept, noted)
        if status >= 400 and status != _SIGN_IN:
            _discard(b"".join(parts), request.app)
        return None

    async def _asked(self, request: Request, receive: Receive, send: Send) -> None:
        whose = person_of(request) or (address_of(request) if self._by_address else None)
        if whose is None:
            return await self._app(request.scope, receive, send)
        if self._entering[whose] + _waiting(request.app, whose) >= MOST_OF_ONE:
            while (await receive()).get("more_body"):  # it names what is to be removed
                pass
            return await JSONResponse({"detail": _REFUSAL}, 429)(request.scope, receive, send)
        self._entering[whose] += 1  # it waits nowhere yet, and others that come meanwhile must see it
        try:
            return await self._app(request.scope, receive, send)
        finally:
            self._entering -= Counter({whose: 1})


def _lines(app: Any) -> Iterator[Any]:
    for line in app.get_blocks()._queue.event_queue_per_concurrency_id.values():
        yield from line.queue


def _waiting(app: Any, whose: str) -> int:
    return sum((event.username or address_of(event.request)) == whose for event in _lines(app))


def _discard(body: bytes, app: Any) -> None:
    """Remove the uploads that a body names, but those that a request names which is in the queue, or at work."""
    try:
        named = set(_paths(json.loads(body)))
    except (ValueError, RecursionError):
        return
    if not named:
        return
    working = (event for job in app.get_blocks()._queue.active_jobs for event in job or ())
    for event in (*_lines(app), *working):
        named -= set(_paths(event.data.data if event.data else None))
    for path in named:
        discard(path)


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(path := value.get("path"), str):
            yield path
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _paths(each)


# The connection that an open page keeps: when it ends, the tab is closed, and what the server knew of it goes.
#
# Gradio's own one takes any name from anybody, and makes a session for each name that hangs up, on the event loop: a
# stranger who opened and closed a thousand kept everybody else waiting. This one stands in its place.

PATH = "/gradio_api/heartbeat/{session_hash}"
MOST_PAGES, MOST_PAGES_OF_ONE = 2000, 200
"""Open connections: of all, and of one person, or of one address where nobody signs in."""
_PAUSE = 15.0
"""Seconds between two signs of life, as in Gradio."""
_LATE = 30.0
"""Seconds after which what was still under way when the tab closed has ended."""


class Heartbeats:
    """ASGI application. Wants the sign-in where there is one; a name that no handler has seen leaves nothing behind."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._pages: Counter[str] = Counter()
        self._unloading = asyncio.Semaphore(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold the connection until one side ends it."""
        request = Request(scope, receive)
        app = request.app
        person = person_of(request)
        if app.auth is not None and person is None:
            return await PlainTextResponse("Sign in first.", 401)(scope, receive, send)
        whose = person or address_of(request)
        if self._open[whose] >= MOST_PAGES_OF_ONE or self._open.total() >= MOST_PAGES:
            return await PlainTextResponse("Too many open pages: close some.", 429)(scope, receive, send)
        name = str(request.path_params["session_hash"])
        self._open[whose] += 1
        self._pages[name] += 1
        try:
            await _beat(app, receive, send)
        finally:
            self._open -= Counter({whose: 1})
            self._pages -= Counter({name: 1})
            await self._closed(request, name, person)

    async def _closed(self, request: Request, name: str, person: str | None) -> None:
        """Forget the tab, and once more later: a handler that was still at work may have made its session anew."""
        app = request.app
        session = app.state_holder.session_data.get(name)
        if session is None:
            return
        await self._forgotten(request, name, person)
        session.is_closed = True  # unloading may have taken it out of the holder
        _end_events(app, name)
        await asyncio.wait([stopped := asyncio.create_task(app.stop_event.wait())], timeout=_LATE)
        stopped.cancel()
        if not self._pages[name]:  # a page may find its way back after its connection broke
            await self._forgotten(request, name, person)

    async def _forgotten(self, request: Request, name: str, person: str | None) -> None:
        async with self._unloading:  # one at a time, and off the loop that answers everybody
            await asyncio.to_thread(_unload, request, name, person)


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
