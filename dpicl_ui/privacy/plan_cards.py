"""What the planner has found: the curve of signal against cost, and the options in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from dpicl_ui.frame.plot_style import AXIS, BLUE, GREY, GRID, LAYOUT
from mechanisms.runs.planner import Option
from mechanisms.sampling import SamplingPlan, Scheme

_COLOURS = {Scheme.PER_DEMONSTRATION: BLUE, Scheme.PER_TOKEN: "#b56fc4", Scheme.DISJOINT: GREY}
_WORDS = {
    Scheme.PER_DEMONSTRATION: "one sample a demonstration",
    Scheme.PER_TOKEN: "a new sample every token",
    Scheme.DISJOINT: "batches without overlap",
}
_HOVER = "%{text}<br>signal-to-noise %{y:.3g}<br>%{x:.3s} prompt tokens<extra></extra>"
_AXIS = AXIS | GRID | {"type": "log", "dtick": "D2", "exponentformat": "SI"}


def plan_in_words(plan: SamplingPlan) -> str:
    """A plan's sampling in a few words, without M."""
    rows = "one record a row" if plan.unit_rows else f"subsets of {plan.per_subset}"
    return f"{_WORDS[plan.scheme]}, {rows}"


def option_in_words(option: Option, time: str) -> str:
    """An option in one line, with its predicted duration."""
    signal, plan = option.signal_to_noise, option.plan
    return f"Signal-to-noise {signal:.3g}: M = {plan.subsets}, {plan_in_words(plan)} ({time})"


def plan_figure(found: Sequence[Option], now: tuple[float, float] | None) -> go.Figure:
    """Signal-to-noise by cost of every option, the efficient ones joined.

    Args:
        found: options, marked by `ranked`.
        now: cost and signal-to-noise of the current settings, where they are known.
    """
    figure = go.Figure()
    curve = sorted((each for each in found if each.efficient), key=lambda each: each.cost)
    line = {"color": GREY, "width": 1.5}
    _add(figure, _places(curve), "most signal for its cost", mode="lines", line=line, hoverinfo="skip")
    for scheme in (Scheme.PER_DEMONSTRATION, Scheme.PER_TOKEN):
        for unit_rows in (True, False):
            kind = [each for each in found if (each.plan.scheme, each.plan.unit_rows) == (scheme, unit_rows)]
            if kind:
                shape = "circle" if unit_rows else "square"
                symbols = [shape if each.efficient else f"{shape}-open" for each in kind]
                marker = {"color": _COLOURS[scheme], "symbol": symbols, "size": 11, "line": {"width": 1.5}}
                names = [f"M = {each.plan.subsets}" for each in kind]
                _add(
                    figure,
                    _places(kind),
                    plan_in_words(kind[0].plan),
                    mode="markers",
                    marker=marker,
                    text=names,
                    hovertemplate=_HOVER,
                )
    if now is not None:
        marker = {"color": GREY, "symbol": "x", "size": 11}
        _add(figure, [now], "the settings now", mode="markers", marker=marker, text=["now"], hovertemplate=_HOVER)
    figure.update_layout(
        **LAYOUT,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        height=400,
        legend={"orientation": "h", "y": -0.25, "x": 0, "yanchor": "top"},
        xaxis=_AXIS | {"title": {"text": "prompt tokens a demonstration", "standoff": 8}},
        yaxis=_AXIS | {"title": {"text": "signal-to-noise", "standoff": 8}},
    )
    return figure


def _places(found: Sequence[Option]) -> list[tuple[float, float]]:
    return [(float(f"{each.cost:.4g}"), float(f"{each.signal_to_noise:.4g}")) for each in found]


def _add(figure: go.Figure, places: Sequence[tuple[float, float]], name: str, **look: Any) -> None:
    costs, signals = [each[0] for each in places], [each[1] for each in places]
    figure.add_trace(go.Scatter(x=costs, y=signals, name=name, **look))
