"""Handlers of the page: their listeners, their errors in one line, and long jobs."""

from __future__ import annotations

import functools
import inspect
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import gradio as gr

from dpicl_ui.frame.services import Services, Session, State
from dpicl_ui.frame.tree import Tree, Updates, missing, notice, panel
from mechanisms.errors import SeveralErrors, StudioError, UsageError, place_of

After = Callable[[], Updates]

PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
"""Arguments of every listener: its handler is not part of the app's API and shows no progress overlay."""

MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}
"""Arguments of handlers that use the model, one at a time."""

UNTIL_FREE = "Waiting until nothing uses the model …"
"""Shown while a handler waits for the model."""

FETCH: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "fetch"}
"""Arguments of handlers that fetch a model's files, one at a time, while others use the present model."""

ACCOUNTING: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "calibrate"}
"""Arguments of handlers that calibrate noise or account for a run: two at a time."""

_log = logging.getLogger(__name__)


def guarded(where: gr.HTML, after: After | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a handler (function or generator) that returns or yields `{component: value}`.

    Args:
        where: the component that shows an error.
        after: returns the final values of a generator's components, whether it succeeds or fails, e.g. a button that
            is enabled again. They are not yielded if the generator is closed from outside.
    """

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(handler):

            @functools.wraps(handler)
            def generate(*arguments: Any) -> Iterator[Any]:
                idle = after or dict
                try:
                    yield from handler(*arguments)
                except Exception as error:
                    # In one update: a click between two updates would be dropped, because the handler has not ended.
                    yield {where: in_lines(error), **idle()}
                else:
                    # Gradio empties the components of a generator that ends without having yielded.
                    yield {where: gr.skip(), **idle()}

            return generate

        @functools.wraps(handler)
        def call(*arguments: Any) -> Any:
            try:
                return handler(*arguments)
            except Exception as error:
                return {where: in_lines(error)}

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


def in_lines(error: Exception) -> list[Tree]:
    """An error as elements, with one line for each problem."""
    return missing(error.lines) if isinstance(error, SeveralErrors) else notice(in_one_line(error))


def in_one_line(error: Exception) -> str:
    """An error in one line without private text; a defect is logged by its type and place."""
    if isinstance(error, StudioError):
        return str(error)
    _log.error("a handler failed: %s", place_of(error))
    return f"Something went wrong inside the app ({place_of(error)}). Please report it; nothing more was released."


W = TypeVar("W")


@dataclass(frozen=True, eq=False, repr=False)
class Job(Generic[W]):
    """A job that was ordered; private, because `request` may hold rows."""

    request: W
    stop: threading.Event = field(default_factory=threading.Event)

    def check(self, words: str) -> None:
        """Raise a `UsageError` with this message if the job was stopped."""
        if self.stop.is_set():
            raise UsageError(words)


class Jobs(State, Generic[W]):
    """The jobs of one kind; each kind is a subclass."""

    under_way: ClassVar[str] = "This is already running: wait until it has ended."
    """The refusal of a further job while one runs."""

    def __init__(self, session: Session) -> None:
        self._lock = threading.Lock()
        self._ordered: Job[W] | None = None
        self._at_work: Job[W] | None = None

    @property
    def busy(self) -> bool:
        return self._at_work is not None

    def refuse(self, request: W) -> None:
        """Raise a `UsageError` if this job cannot be accepted; called while no other job runs."""

    def order(self, request: W) -> None:
        """Order a job; it replaces one that was ordered and has not begun.

        Raises:
            UsageError: another job is running, or `refuse` raises.
        """
        with self._lock:
            if self._at_work is not None:
                raise UsageError(self.under_way)
            self.refuse(request)
            self._ordered = Job(request)

    @contextmanager
    def taken(self) -> Iterator[Job[W] | None]:
        """The job, marked as running inside the block; None if there is none or another handler took it."""
        with self._lock:
            self._ordered, job = None, self._ordered
            if job is not None:
                self._at_work = job
        try:
            yield job
        finally:
            with self._lock:
                if self._at_work is job:
                    self._at_work = None

    def close(self) -> None:
        """Stop the tab's job at its next step."""
        with self._lock:
            for job in (self._ordered, self._at_work):
                if job is not None:
                    job.stop.set()


class UpdateLimit:
    """Limits intermediate updates, because the page renders each of them.

    Args:
        interval: the least seconds between two updates; usually 12 a second.
    """

    def __init__(self, interval: float = 0.08) -> None:
        self._interval, self._shown = interval, -math.inf

    def due(self) -> bool:
        if due := time.monotonic() - self._shown > self._interval:
            self._shown = time.monotonic()
        return due


class JobControls(Generic[W]):
    """The start and stop buttons and the progress bar of a job.

    If the job is not `startable`, its card enables the start button.
    """

    def __init__(
        self, app: Services, kind: type[Jobs[W]], title: str, ids: tuple[str, str, str], startable: bool = True
    ) -> None:
        self._app, self._kind, self._startable = app, kind, startable
        start, stop, bar = ids
        with gr.Row(elem_classes="actions"):
            self.start = gr.Button(title, variant="primary", interactive=startable, elem_id=start)
            self.stop = gr.Button("Stop", variant="stop", interactive=False, elem_id=stop)
        self.bar = panel(elem_id=bar)
        self.outputs = [self.start, self.stop, self.bar]
        self.stop.click(self.halt, None, self.stop, queue=False, **PRIVATE)

    def working(self, shown: list[Tree]) -> Updates:
        """The components' values when a job begins; `shown` takes the place of the bar."""
        start, stop = gr.Button(interactive=False), gr.Button("Stop", interactive=True)
        return {self.bar: shown, self.start: start, self.stop: stop}

    def idle(self) -> Updates:
        """The components' values when no job runs."""
        free = {self.start: gr.Button(interactive=True)} if self._startable else {}
        return {self.bar: [], self.stop: gr.Button("Stop", interactive=False)} | free

    def run(self, request: gr.Request, steps: Callable[[Job[W]], Iterator[Updates]]) -> Iterator[Updates]:
        """The updates of the ordered job. When it has ended in any way, another job can be ordered."""
        with self._app.session(request).of(self._kind).taken() as job:
            if job is not None:
                yield from steps(job)

    def halt(self, request: gr.Request) -> Any:
        self._app.session(request).of(self._kind).close()
        return gr.Button("Stopping …", interactive=False)
