"""What all steps of the page share: tabs, ledgers, models, and the bar of steps with their panels.

The bar is not `gr.Walkthrough`: its closed step (`gr.Step(interactive=False)`) is a disabled button, which keys do not
reach, and has no place for the reason why it is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import gradio as gr

from dpicl_ui.assets import asset
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.sessions import Ledgers, Session, Sessions, State
from mechanisms.accounting import PrivacyLedger


@dataclass(frozen=True)
class Gate:
    """A step's state: the reason why it is closed (empty if it is open), and whether it is done."""

    why: str = ""
    done: bool = False


@dataclass(frozen=True)
class Place:
    """A step of the bar, or a place beside the steps.

    Attributes:
        sign: of a place beside the steps, where a step has its number; empty for a step.
        opened, left: the events that the bar fires when somebody comes to the place, or leaves it; empty for none.
    """

    title: str
    gate: Callable[[Session], Gate]
    sign: str = ""
    opened: str = ""
    left: str = ""

    def told(self, session: Session) -> dict[str, Any]:
        """What `assets/steps.js` draws of it; a closed step is not called done."""
        gate = self.gate(session)
        note = "closed" if gate.why else "done" if gate.done else "open"
        said = {name: getattr(self, name) for name in ("title", "sign", "opened", "left")}
        return said | asdict(gate) | {"note": note, "done": note == "done"}


class Moves(State):
    """The number of times the server has moved this tab to another step: a higher number is a new move."""

    count = 0


class StepBar:
    """The bar's component, `html`, and its value."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self.html = gr.HTML(
            value=self.value(Session()),
            html_template="<div></div>",
            js_on_load=asset("steps.js"),
            apply_default_css=False,
            elem_id="steps",
        )

    @contextmanager
    def panel(self, number: int) -> Iterator[None]:
        """A step's components, or the reason why it is closed: the browser shows one of them. Numbers begin at 1."""
        with gr.Column(elem_id=f"step-{number}", elem_classes=["step", "current"] if number == 1 else ["step"]):
            gr.HTML(
                html_template=f'<h2>{self._places[number - 1].title}</h2><p class="gate-why"></p>',
                js_on_load=None,
                apply_default_css=False,
                elem_classes="gate card",
            )
            with gr.Column(elem_classes="step-body"):
                yield

    def value(self, session: Session, go: int | None = None) -> dict[str, Any]:
        """The bar's value; with `go` the browser moves to that step."""
        moves = session.of(Moves)
        if go is not None:
            moves.count += 1
        return {"go": [moves.count, go or 1], "steps": [each.told(session) for each in self._places]}


@dataclass(frozen=True, eq=False, repr=False)
class Services:
    """Made once, by the page, and handed to every step."""

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
        """A handler that gives the bar's value: for a button that moves, or behind an event that may open a step."""

        def told(request: gr.Request) -> dict[str, Any]:
            return self.bar.value(self.session(request), go)

        return told
