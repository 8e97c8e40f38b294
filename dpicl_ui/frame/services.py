"""What all steps of the page share: tabs, ledgers, models, and the bar of steps with their panels.

The bar is not `gr.Walkthrough`, whose closed step (`gr.Step(interactive=False)`) is a disabled button: the keyboard
does not reach it, and it cannot say why it is closed.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import gradio as gr

from dpicl_ui.assets import asset
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from mechanisms.accounting import PrivacyLedger


class State:
    """The state of one step in one tab, in memory only; it is dropped when the tab closes.

    The tab's session makes it, and gives it the states of earlier steps.
    """

    def __init__(self, session: Session) -> None:
        """Take the states of earlier steps from `session`."""

    def close(self) -> None:
        """Stop running work, because the tab is closed."""


S = TypeVar("S", bound=State)


class Session:
    """The states of one tab, one of each type; the steps define the types."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a state that is being made may ask for another
        self._states: dict[type[State], State] = {}

    def of(self, kind: type[S]) -> S:
        with self._lock:
            if kind not in self._states:
                self._states[kind] = kind(self)
            return cast(S, self._states[kind])

    def close(self) -> None:
        with self._lock:
            states = list(self._states.values())
        for state in states:
            state.close()


T = TypeVar("T")

_LATE = 30.0
"""Seconds in which a handler may still request a tab that was closed after the handler was called."""


class Tabs(Generic[T]):
    """What the server keeps for each open tab, by Gradio's session hash.

    A handler that arrives after its tab was closed gets a new value that is not kept, because nothing would drop it. A
    browser that reconnects under the same hash gets a new tab.
    """

    def __init__(self, make: Callable[[], T], end: Callable[[T], None]) -> None:
        self._lock, self._make, self._end = threading.Lock(), make, end
        self._open: dict[str, T] = {}
        self._closed: dict[str, float] = {}

    def of(self, request: gr.Request) -> T:
        tab = request.session_hash or ""
        with self._lock:
            if tab in self._open:
                return self._open[tab]
            made = self._make()
            if tab not in self._lately_closed():
                self._open[tab] = made
            return made

    def drop(self, request: gr.Request) -> None:
        tab = request.session_hash or ""
        with self._lock:
            self._closed = {**self._lately_closed(), tab: time.monotonic()}
            dropped = self._open.pop(tab, None)
        if dropped is not None:
            self._end(dropped)

    def _lately_closed(self) -> dict[str, float]:
        return {tab: at for tab, at in self._closed.items() if time.monotonic() - at < _LATE}


class Sessions(Tabs[Session]):
    """The sessions of all open tabs."""

    def __init__(self) -> None:
        super().__init__(Session, Session.close)


class CuratorLedger:
    """The installation's ledger, which the command line uses too. Everybody who can reach the server is its owner.

    Attributes:
        footing: a note on who uses this ledger.
        warning: a warning at the top of the page.
        signed_in: whether the user signed in, and may sign out.
        lasting: whether the ledger, and the runs kept beside it, outlive the tab.
    """

    warning = ""
    lasting = True

    def __init__(self, ledger: PrivacyLedger, signed_in: bool = False) -> None:
        self._ledger, self.signed_in = ledger, signed_in
        self.footing = f"This server has one ledger, used by whoever {'signs in' if signed_in else 'opens it'}."

    def of(self, request: gr.Request) -> PrivacyLedger:
        return self._ledger

    def drop(self, request: gr.Request) -> None:
        """Do nothing: the ledger outlives the tab."""


class TabLedgers:
    """One ledger for each open tab of a public Space, whose visitors are strangers to each other."""

    footing = "The ledger lasts as long as this page."
    warning = (
        "This is a public demonstration: do not use private data. The ledger lasts as long as this page, and closing "
        "the page forgets what was spent."
    )
    signed_in = lasting = False

    def __init__(self) -> None:
        self._tabs = Tabs(self._made, lambda ledger: shutil.rmtree(ledger.folder, ignore_errors=True))

    @staticmethod
    def _made() -> PrivacyLedger:
        folder = tempfile.mkdtemp(prefix="dpicl-")
        ledger = PrivacyLedger(Path(folder))
        weakref.finalize(ledger, shutil.rmtree, folder, ignore_errors=True)
        return ledger

    def of(self, request: gr.Request) -> PrivacyLedger:
        return self._tabs.of(request)

    def drop(self, request: gr.Request) -> None:
        self._tabs.drop(request)


Ledgers = CuratorLedger | TabLedgers


@dataclass(frozen=True)
class StepStatus:
    """The status of a step: why it is closed (empty if it is open), and whether it is done."""

    why: str = ""
    done: bool = False


@dataclass(frozen=True)
class BarItem:
    """A step of the bar, or a panel beside the steps.

    Attributes:
        sign: shown in place of a step's number; empty for a step.
        opened, left: the events that the bar fires when the user opens or leaves the item; empty for none.
    """

    title: str
    status: Callable[[Session], StepStatus] = lambda session: StepStatus()
    sign: str = ""
    opened: str = ""
    left: str = ""

    def value(self, session: Session) -> dict[str, Any]:
        """The value that `assets/steps.js` draws; a closed step is never marked as done."""
        status = self.status(session)
        note = "closed" if status.why else "done" if status.done else "open"
        said = {name: getattr(self, name) for name in ("title", "sign", "opened", "left")}
        return said | asdict(status) | {"note": note, "done": note == "done"}


class BarMoves(State):
    """How often the server has moved this tab to another step: a higher number is a new move."""

    count = 0


class StepBar:
    """The bar's component, `html`, and the value that it shows."""

    def __init__(self, items: Sequence[BarItem]) -> None:
        self._items = items
        self.html = gr.HTML(
            value=self.value(Session()),
            html_template="<div></div>",
            js_on_load=asset("steps.js"),
            apply_default_css=False,
            elem_id="steps",
        )

    @contextmanager
    def panel(self, number: int) -> Iterator[None]:
        """Enclose a step's components. The browser shows them, or why the step is closed. Numbers begin at 1."""
        with gr.Column(elem_id=f"step-{number}", elem_classes=["step", "current"] if number == 1 else ["step"]):
            gr.HTML(
                html_template=f'<h2>{self._items[number - 1].title}</h2><p class="gate-why"></p>',
                js_on_load=None,
                apply_default_css=False,
                elem_classes="gate card",
            )
            with gr.Column(elem_classes="step-body"):
                yield

    def value(self, session: Session, go: int | None = None) -> dict[str, Any]:
        """The bar's value; with `go` the browser moves to that step."""
        moves = session.of(BarMoves)
        if go is not None:
            moves.count += 1
        return {"go": [moves.count, go or 1], "steps": [each.value(session) for each in self._items]}


@dataclass(frozen=True, eq=False, repr=False)
class Services:
    """The services that every step gets; the page makes them once."""

    sessions: Sessions
    ledgers: Ledgers
    loader: ModelLoader
    embedder: EmbedderLoader
    bar: StepBar

    def session(self, request: gr.Request) -> Session:
        return self.sessions.of(request)

    def ledger(self, request: gr.Request) -> PrivacyLedger:
        return self.ledgers.of(request)

    def steps(self, session: Session, go: int | None = None) -> dict[Any, Any]:
        """The step bar as it is now; with `go` the browser moves to that step."""
        return {self.bar.html: self.bar.value(session, go)}

    def bar_after(self, go: int | None = None) -> Any:
        """A handler that returns the bar's value: for a button that moves to a step, or an event that may open one."""

        def moved(request: gr.Request) -> dict[str, Any]:
            return self.bar.value(self.session(request), go)

        return moved
