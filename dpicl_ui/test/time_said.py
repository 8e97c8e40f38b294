"""How long measuring and class prototypes will take, said before they begin."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.frame.tree import Tree, el, panel
from dpicl_ui.privacy.duration import duration
from dpicl_ui.test.state import TestState
from mechanisms.errors import UsageError
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.reading_forecast import embedding_seconds, measuring_seconds


class MeasuringTime:
    """One line under the settings of a measurement; made where it stands."""

    def __init__(self, sessions: Sessions, loader: ModelLoader) -> None:
        self._sessions, self._loader = sessions, loader
        self._line = panel(elem_id="test-time")

    def wire(self, limit: gr.Slider, *opened: gr.events.Dependency) -> None:
        """Say it when a file was opened, and when another number of rows is wanted."""
        told: dict[str, Any] = {"fn": self._told, "inputs": limit, "outputs": self._line, **PRIVATE}
        for each in opened:
            each.then(**told)
        limit.release(**told)

    def _told(self, limit: float, request: gr.Request) -> list[Tree]:
        state, speed = self._sessions.of(request).of(TestState), self._loader.speed
        try:
            tested = state.classifying
        except UsageError:  # the button says so; answers are as long as the model makes them
            return []
        if state.table is None or speed is None:
            return []
        rows = min(int(limit), len(state.table.frame))
        return said(measuring_seconds(tested, rows, speed), f"Reading {rows:,} of them takes")


def reading_said(units: int, speed: ModelSpeed | None) -> list[Tree]:
    """The time that prototypes of so many units take; nothing before the model was measured."""
    return said(embedding_seconds(units, speed)) if speed else []


def said(seconds: float, what: str = "It takes") -> list[Tree]:
    """One line."""
    return [el("p.muted", f"{what} {duration(seconds)} on this machine.")]
