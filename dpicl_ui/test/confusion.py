"""Which labels a reader confuses: the counts of true by predicted label, as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from dpicl_ui.frame.services import Services
from dpicl_ui.test.state import TestState
from mechanisms.evaluation.evaluate import Scorecard

_SCALE = [[0.0, "rgba(26,143,133,0.05)"], [1.0, "rgba(26,143,133,0.6)"]]
_FONT = {"family": "system-ui, sans-serif", "color": "#7c8592", "size": 13}
"""`studio.css` repaints the text in the colours of the light and of the dark page."""
_AXIS: dict[str, Any] = {"type": "category", "showgrid": False, "fixedrange": True, "zeroline": False, "ticks": ""}
_LONGEST = 18
_NUMBERED = 12
"""Labels up to which every cell shows its count."""
_ROW, _LEAST_ROW, _AROUND = 44, 16, 140
"""Pixels of a label, of one among many, and around the plot: Plotly leaves out names that would touch."""


class ConfusionPlot:
    """The plot below the figures; hidden until everything is measured."""

    def __init__(self, app: Services) -> None:
        self._app = app
        self.plot = gr.Plot(show_label=False, visible=False, elem_id="confusion", elem_classes="chart")

    def drawn(self, request: gr.Request) -> Any:
        """The plot of the set's own figures, once all are there."""
        scored = self._app.session(request).of(TestState).scored
        if scored is None or not scored.complete:
            return gr.skip()
        return gr.Plot(confusion_figure(scored.cards[-1], scored.of.labels), visible=True)


def confusion_figure(card: Scorecard, labels: Sequence[str]) -> go.Figure:
    """Counts of true label (rows) by predicted label (columns), shape (labels, labels)."""
    few = len(labels) <= _NUMBERED
    every = {} if few else {"dtick": 1, "tickfont": {"size": _LEAST_ROW - 6}}
    figure = go.Figure(
        go.Heatmap(
            z=card.confusion.tolist(),
            x=[f"{i + 1}." for i in range(len(labels))],
            y=[f"{i + 1}. {_short(label)}" for i, label in enumerate(labels)],
            colorscale=_SCALE,
            showscale=False,
            customdata=[list(map(_short, labels))] * len(labels),
            xgap=3 if few else 1,
            ygap=3 if few else 1,
            texttemplate="%{z}" if few else None,
            hovertemplate="in truth %{y}<br>predicted %{x} %{customdata}<br>%{z} rows<extra></extra>",
        )
    )
    return figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font=_FONT,
        title={"text": "Which labels are confused", "x": 0, "font": {"size": 15}},
        margin={"l": 10, "r": 10, "t": 40, "b": 44},
        height=_AROUND + len(labels) * (_ROW if few else _LEAST_ROW),
        xaxis=_AXIS | every | {"title": {"text": "predicted", "standoff": 8}},
        yaxis=_AXIS | every | {"automargin": True, "autorange": "reversed"},
    )


def _short(label: str) -> str:
    # Plotly reads some tags in text: what could begin one is replaced by its look-alike.
    return (label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…").replace("<", "‹").replace("&", "＆")
