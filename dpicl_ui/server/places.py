"""Limits for each person: places in the queue, and connections of open pages."""

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

# The person or address that a request counts for.

_PREFIX = 64
"""Bits of an IPv6 address that identify a household: its members can use all addresses with this prefix."""


def person_of(request: Request) -> str | None:
    """The name of the signed-in user, as Gradio keeps it; None without one."""
    app = request.app
    cookies = (request.cookies.get(f"access-token-{kind}{app.cookie_id}") for kind in ("", "unsecure-"))
    person: str | None = app.tokens.get(next(filter(None, cookies), None))
    return person


def address_of(request: Request) -> str:
    """The client's address; behind a trusted proxy (FORWARDED_ALLOW_IPS of uvicorn) the one that the proxy names."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or IPv6Network((address.packed, _PREFIX), strict=False))


# Places in Gradio's queue. Gradio limits the queue as a whole, so that one client could fill it; here each person has
# a limit. The uploads of a refused request are deleted at once.

_JOINING = ("/gradio_api/queue/join", "/gradio_api/call/")
MOST_OF_ONE = 8
"""The most waiting requests of one person, or of one address without sign-in; the page allows 32 for all."""
_REFUSAL = f"You have {MOST_OF_ONE} requests waiting: let one of them end, or close a tab, and try again."
_SIGN_IN = 401
"""After this status no upload is deleted: the sender has uploaded nothing, and may name files of others."""


class Places:
    """ASGI middleware behind `Bodies`: refuses (429) a request if its sender has `MOST_OF_ONE` requests waiting.

    Args:
        app: the application behind it.
        by_address: whether senders without a name are told apart by address. It cannot be done if all of them come
            through one proxy that the operator does not trust.
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
            while (await receive()).get("more_body"):  # the body names the uploads to delete
                pass
            return await JSONResponse({"detail": _REFUSAL}, 429)(request.scope, receive, send)
        self._entering[whose] += 1  # not in the queue yet, but it must count for requests that arrive meanwhile
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
    """Delete the uploads that a refused body names, except those that a waiting or running request names too."""
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


# The connection of an open page: when it ends, the tab is closed, and the server forgets it.
#
# It replaces Gradio's own route, which accepts any session name and makes a session for each name that disconnects,
# on the event loop: a stranger who opened and closed a thousand connections kept everybody else waiting. A session
# name that no handler has seen leaves nothing behind here.

PATH = "/gradio_api/heartbeat/{session_hash}"
MOST_PAGES, MOST_PAGES_OF_ONE = 2000, 200
"""The most open connections of all, and of one person, or of one address without sign-in."""
_PAUSE = 15.0
"""Seconds between two heartbeats, as in Gradio."""
_LATE = 30.0
"""Seconds after which every handler that ran when the tab closed has ended."""


class Heartbeats:
    """ASGI application for the connection that an open page keeps; it requires the sign-in, where there is one."""

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
        """Forget the tab; and again `_LATE` seconds later, since a handler that still ran may have made its session
        anew.
        """
        app = request.app
        session = app.state_holder.session_data.get(name)
        if session is None:
            return
        await self._forgotten(request, name, person)
        session.is_closed = True  # unloading may have removed it from the holder
        _end_events(app, name)
        await asyncio.wait([stopped := asyncio.create_task(app.stop_event.wait())], timeout=_LATE)
        stopped.cancel()
        if not self._pages[name]:  # a page may connect again after its connection broke
            await self._forgotten(request, name, person)

    async def _forgotten(self, request: Request, name: str, person: str | None) -> None:
        async with self._unloading:  # one at a time, and not on the event loop
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
        pass  # the page disconnected during a write
    finally:
        gone.cancel()
        stopped.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _unload(request: Request, name: str, person: str | None) -> None:
    """Call the page's unload handlers."""
    asked = gr.Request(request, person, session_hash=name)
    for handler in request.app.get_blocks().fns.values():
        unload: Callable[[gr.Request], None] | None = handler.fn
        if unload is not None and any(event == "unload" for _, event in handler.targets):
            unload(asked)


def _end_events(app: Any, name: str) -> None:
    """Stop the tab's running and waiting events."""
    queue = app.get_blocks()._queue
    for number in queue.pending_event_ids_session.get(name, ()):
        if event := queue.event_ids_to_events.get(number):
            event.run_time, event.closed = math.inf, True
            event.signal.set()
