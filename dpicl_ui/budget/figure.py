"""What all runs have cost together, as a curve of delta over epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from dpicl_ui.frame.plot_style import AXIS, BLUE, GREY, GRID, LAYOUT, ORANGE, TEAL
from mechanisms.accounting import Cap, Claim

_COUNTED, _PLANNED, _COMPOSED = TEAL, ORANGE, BLUE
_HOVER = "epsilon %{x:.3g} at delta %{y:.2g}<extra></extra>"
_POWERS = 1.25
"""Plotly writes powers so many times larger than other ticks."""


def budget_figure(
    cap: Cap, counted: Sequence[Cap], planned: Sequence[Cap] = (), composed: Sequence[Claim] = ()
) -> go.Figure:
    """The least epsilon at each delta.

    Args:
        cap: the cap of today.
        counted: what the ledger counts of all runs, the largest delta first.
        planned: of all runs and the planned one; empty where there is none.
        composed: all runs as both accountants would compose them, had they been fixed beforehand.
    """
    figure = go.Figure()
    _line(figure, counted, "what the ledger counts", color=_COUNTED, width=3)
    _line(figure, planned, "with the planned run", color=_PLANNED, width=2, dash="dash")
    if composed:
        deltas = [each.delta for each in composed]
        first, second = composed[0].accountant, composed[0].check_accountant
        name = f"all fixed beforehand ({first})"
        marker = {"color": _COMPOSED, "symbol": "circle", "size": 6}
        _add(figure, [each.epsilon for each in composed], deltas, name, mode="markers", marker=marker)
        marker = marker | {"symbol": "circle-open", "size": 11}
        _add(figure, [each.check for each in composed], deltas, f"the same ({second})", mode="markers", marker=marker)
    marker = {"color": GREY, "symbol": "x", "size": 11}
    _add(figure, [cap.epsilon], [cap.delta], "the cap", mode="markers", marker=marker)
    figure.update_layout(
        **LAYOUT,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        height=380,
        legend={"orientation": "h", "y": -0.22, "x": 0, "yanchor": "top"},
        xaxis=AXIS | GRID | {"rangemode": "tozero", "title": {"text": "epsilon", "standoff": 8}},
        yaxis=AXIS
        | GRID
        | {"type": "log", "dtick": 1, "exponentformat": "power", "title": {"text": "delta", "standoff": 8}}
        | {"tickfont": {"size": LAYOUT["font"]["size"] / _POWERS}},
    )
    return figure


def _line(figure: go.Figure, caps: Sequence[Cap], name: str, **line: Any) -> None:
    if caps:
        # In steps: between two deltas the larger epsilon holds, and a straight line would show less.
        line = line | {"shape": "hv"}
        _add(figure, [each.epsilon for each in caps], [each.delta for each in caps], name, mode="lines", line=line)


def _add(figure: go.Figure, epsilons: list[float], deltas: list[float], name: str, **look: Any) -> None:
    figure.add_trace(go.Scatter(x=epsilons, y=deltas, name=name, hovertemplate=_HOVER, **look))
