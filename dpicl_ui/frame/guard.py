"""Handlers: errors without private text, and the queue for the model."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.server_messages import ProcessCompletedMessage

from dpicl_ui.frame.tree import Tree, missing, notice
from mechanisms.errors import SeveralErrors, StudioError, place_of

# What a handler may let out: one clear line for a `StudioError`, and nothing private for a defect.
#
# Gradio logs tracebacks with the exception's message, which may quote a cell. Handlers are therefore guarded: a
# defect is logged by its type and place alone.

Updates = Callable[[], dict[Any, Any]]

PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
"""Arguments of every handler: not part of the app's API, and no overlay over what is being read."""

MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}
"""Arguments of handlers that take turns at the model."""

ACCOUNTING: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "calibrate"}
"""Arguments of handlers that calibrate noise or account for a run: two at a time."""

_log = logging.getLogger(__name__)


def guarded(where: gr.HTML, after: Updates | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a handler (function or generator) that gives `{component: value}`; errors appear in `where`.

    Args:
        where: shows the one line.
        after: what a generator's components become when it ends, well or badly, e.g. a button that works again. Not
            yielded when the generator is closed from outside.
    """

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(handler):

            @functools.wraps(handler)
            def generate(*arguments: Any) -> Iterator[Any]:
                idle = after or dict
                try:
                    yield from handler(*arguments)
                except Exception as error:
                    # In one update: a click between two would be dropped, since the handler has not ended.
                    yield {where: _told(error), **idle()}
                else:
                    if after is not None:
                        yield after()

            return generate

        @functools.wraps(handler)
        def call(*arguments: Any) -> Any:
            try:
                return handler(*arguments)
            except Exception as error:
                return {where: _told(error)}

        return call

    return decorate


def _told(error: Exception) -> list[Tree]:
    return missing(error.lines) if isinstance(error, SeveralErrors) else notice(in_one_line(error))


def in_one_line(error: Exception) -> str:
    """An error in one line without private text; a defect is logged by its type and place."""
    if isinstance(error, StudioError):
        return str(error)
    _log.error("a handler failed: %s", place_of(error))
    return f"Something went wrong inside the app ({place_of(error)}). Please report it; nothing more was released."


# The line before the model, as Gradio's queue has it: which place a press has in it, and how it is taken out of it.
#
# Gradio has no public way to ask for either, so that this file looks into its queue, and beside it `server` alone.
# It does so on the event loop, where the queue is changed, and therefore needs no lock.


@dataclass(frozen=True)
class Place:
    """The place of a press in the queue.

    Attributes:
        number: 1 is next while nothing runs, 2 is behind one other.
        own: whether all presses before it are of the same tab.
    """

    number: int
    own: bool


class Line:
    """The queue of all who use the model or wait for it. A tab learns its own place only."""

    def __init__(self, page: gr.Blocks) -> None:
        self._page = page

    def free(self) -> bool:
        """Whether nobody uses the model or waits for it; safe from any thread."""
        return not self._waiting() and not self._under_way()

    async def place(self, request: gr.Request, press: int) -> Place | None:
        """Where a tab's press waits; None where it does not wait, or waits no longer.

        Args:
            request: any of the tab's.
            press: the listener's number in the page.
        """
        waiting = self._waiting()
        for at, each in enumerate(waiting):
            if _is(each, request, press):
                before = [*self._under_way(), *waiting[:at]]
                return Place(len(before) + 1, all(_same_tab(other, request) for other in before))
        return None

    async def leave(self, request: gr.Request, press: int) -> bool:
        """Take a tab's press out of the line; gives whether it was there and will not run."""
        queue = self._page._queue
        for each in self._waiting():
            if _is(each, request, press):
                await queue.remove_from_queue(each._id)
                if each._id in queue.event_ids_to_events:  # its turn came meanwhile
                    return False
                # The page waits for an answer: one that changes nothing.
                unchanged = {"data": [gr.skip() for _ in each.fn.outputs], "is_generating": False}
                queue.send_message(each, ProcessCompletedMessage(output=unchanged, success=True))
                return True
        return False

    def _waiting(self) -> list[Any]:
        line = self._page._queue.event_queue_per_concurrency_id.get(MODEL["concurrency_id"])
        return list(line.queue) if line else []

    def _under_way(self) -> list[Any]:
        jobs = [event for job in self._page._queue.active_jobs for event in job or ()]
        return [event for event in jobs if event.concurrency_id == MODEL["concurrency_id"]]


def _is(event: Any, request: gr.Request, press: int) -> bool:
    return event.fn._id == press and _same_tab(event, request)


def _same_tab(event: Any, request: gr.Request) -> bool:
    return (event.username or "", event.session_hash) == (request.username or "", request.session_hash)
