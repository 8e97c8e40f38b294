"""Handlers: what they may let out, and their turns at the model.

Gradio logs tracebacks with the exception's message, which may quote a cell. Handlers are therefore guarded: a
`StudioError` is one clear line, and a defect is logged by its type and place alone.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from dpicl_ui.frame.tree import Tree, Updates, missing, notice
from mechanisms.errors import SeveralErrors, StudioError, place_of

After = Callable[[], Updates]

PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
"""Arguments of every handler: not part of the app's API, and no overlay over what is being read."""

MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}
"""Arguments of handlers that take turns at the model."""

ACCOUNTING: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "calibrate"}
"""Arguments of handlers that calibrate noise or account for a run: two at a time."""

_log = logging.getLogger(__name__)


def guarded(where: gr.HTML, after: After | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
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


def on(
    event: Any,
    handler: Callable[..., Any],
    inputs: Any,
    outputs: Any,
    where: gr.HTML,
    after: After | None = None,
    **more: Any,
) -> gr.events.Dependency:
    """Listen to an event with a guarded handler; `more` are arguments of the listener, such as `MODEL`."""
    made: gr.events.Dependency = event(guarded(where, after)(handler), inputs, outputs, **PRIVATE, **more)
    return made


def _told(error: Exception) -> list[Tree]:
    return missing(error.lines) if isinstance(error, SeveralErrors) else notice(in_one_line(error))


def in_one_line(error: Exception) -> str:
    """An error in one line without private text; a defect is logged by its type and place."""
    if isinstance(error, StudioError):
        return str(error)
    _log.error("a handler failed: %s", place_of(error))
    return f"Something went wrong inside the app ({place_of(error)}). Please report it; nothing more was released."
