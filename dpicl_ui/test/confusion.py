"""The confusion matrix of one arm as a plot."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from dpicl_ui.frame.plot_style import AXIS, LAYOUT
from mechanisms.evaluation.evaluate import Scorecard

_SCALE = [[0.0, "rgba(26,143,133,0.05)"], [1.0, "rgba(26,143,133,0.6)"]]
_LONGEST = 18
_NUMBERED = 12
"""Labels up to which every cell shows its count."""
_LEAST_ROW = 16
"""Pixels of a label, however many there are: each is to be read, and Plotly leaves out names that would touch."""
_SMALL = 10
_AXIS = AXIS | {"type": "category", "showgrid": False}


def _short(label: str) -> str:
    # Plotly reads some tags in text: what could begin one is replaced by its look-alike.
    return (label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…").replace("<", "‹").replace("&", "＆")


def confusion_figure(card: Scorecard, labels: Sequence[str]) -> go.Figure:
    """Counts of true label (rows) by predicted label (columns), calibrated; shape (labels, labels)."""
    few = len(labels) <= _NUMBERED
    every = {} if few else {"dtick": 1, "tickfont": {"size": _SMALL}}
    names = [f"{i + 1}. {_short(label)}" for i, label in enumerate(labels)]
    figure = go.Figure(
        go.Heatmap(
            z=card.confusion.tolist(),
            x=[f"{i + 1}." for i in range(len(labels))],
            y=names,
            colorscale=_SCALE,
            showscale=False,
            customdata=[list(map(_short, labels))] * len(labels),
            xgap=3 if few else 1,
            ygap=3 if few else 1,
            texttemplate="%{z}" if few else None,
            textfont={"size": 14},
            hovertemplate="in truth %{y}<br>predicted %{x} %{customdata}<br>%{z} rows<extra></extra>",
        )
    )
    figure.update_layout(
        **LAYOUT,
        margin={"l": 10, "r": 10, "t": 10, "b": 44},
        height=110 + len(labels) * 44 if few else max(640, 110 + len(labels) * _LEAST_ROW),
        xaxis=_AXIS | every | {"title": {"text": "predicted", "standoff": 8}},
        yaxis=_AXIS | every | {"automargin": True, "autorange": "reversed"},
    )
    return figure
