"""The ROC curve of an attack, beside what a claim allows."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from dpicl_ui.frame.plot_style import AXIS, GREY, GRID, LAYOUT, ORANGE, TEAL
from mechanisms.accounting import Claim
from mechanisms.audit.membership import Points, Roc, corners

_OWN, _ROWS = TEAL, ORANGE
_HOVER = "%{x:.0%} false alarms, %{y:.0%} found<extra></extra>"
_AXIS = AXIS | GRID | {"range": [-0.01, 1.01], "dtick": 0.25, "tickformat": ".0%"}


def roc_figure(own: Roc, planted: Roc, claimed: Claim | None) -> go.Figure:
    """How many rows of the data are found at each share of false alarms.

    Args:
        own: of the set under test.
        planted: of real rows that stand in the prompt as they are.
        claimed: what the set promises; None where it promises nothing.
    """
    figure = go.Figure()
    _add(figure, own.curve, "your demonstrations", color=_OWN, width=3)
    _add(figure, planted.curve, "your real rows instead", color=_ROWS, width=2)
    if claimed is not None:
        bound = corners(claimed.epsilon, claimed.delta)
        _add(figure, ((0.0, 0.0), *bound), "the most that the claim allows", color=GREY, width=1.5, dash="dash")
    _add(figure, ((0.0, 0.0), (1.0, 1.0)), "guessing blindly", color=GREY, width=1, dash="dot")
    figure.update_layout(
        **LAYOUT,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        height=420,
        legend={"orientation": "h", "y": -0.2, "x": 0, "yanchor": "top"},
        xaxis=_AXIS | {"title": {"text": "false alarms", "standoff": 8}},
        yaxis=_AXIS | {"title": {"text": "your rows found", "standoff": 8}},
    )
    return figure


def _add(figure: go.Figure, points: Points, name: str, **line: Any) -> None:
    rates, found = zip(*points, strict=True)
    figure.add_trace(go.Scatter(x=rates, y=found, name=name, mode="lines", line=line, hovertemplate=_HOVER))
