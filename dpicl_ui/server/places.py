"""Places in Gradio's queue: so many for each person, and what a refused request has uploaded is removed at once.

The queue itself has places for everybody, in the order in which they ask: one client could take all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpicl_ui.frame.uploads import discard
from dpicl_ui.server.asker import address_of, person_of

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
