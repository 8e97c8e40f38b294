"""The bar of steps and places: which are open, why the others are not, and their panels.

Not `gr.Walkthrough`: its closed step (`gr.Step(interactive=False)`) is a disabled button, which keys do not reach, and
has no place for the reason why it is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.assets import asset
from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.sessions import Session, Sessions, State


@dataclass(frozen=True)
class Gate:
    """A step's state: the reason why it is closed (empty if it is open), and whether it is done."""

    why: str = ""
    done: bool = False

    @property
    def note(self) -> str:
        return "closed" if self.why else "done" if self.done else "open"


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

    def follow(self, sessions: Sessions, *events: gr.events.Dependency) -> None:
        """Update the bar after each of these events: an update shortly before a handler's end can get lost."""

        def told(request: gr.Request) -> dict[str, Any]:
            return self.value(sessions.of(request))

        for event in events:
            event.then(told, None, self.html, **PRIVATE)

    def value(self, session: Session, go: int | None = None) -> dict[str, Any]:
        """The bar's value; with `go` the browser moves to that step."""
        moves = session.of(Moves)
        if go is not None:
            moves.count += 1
        gates = [(each, each.gate(session)) for each in self._places]
        return {
            "go": [moves.count, go or 1],
            "steps": [
                {
                    "title": each.title,
                    "sign": each.sign,
                    "opened": each.opened,
                    "left": each.left,
                    "note": gate.note,
                    "done": gate.done and not gate.why,
                    "why": gate.why,
                }
                for each, gate in gates
            ],
        }
