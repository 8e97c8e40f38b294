"""What epsilon has bought: the private scores of several runs over their epsilons."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from dpicl_ui.frame.plot_style import AXIS, BLUE, GRID, LAYOUT, ORANGE, TEAL
from mechanisms import confidence
from mechanisms.demos.findings import ArmScore
from mechanisms.runs.run_file import Summary

_COLOURS = (TEAL, ORANGE, BLUE, "#a05fb4")
_HOVER = "%{text}: epsilon %{x:.3g}, %{y:.0%}<extra></extra>"


def score_figure(runs: Mapping[str, Summary]) -> go.Figure | None:
    """Each run's score with its interval; None where fewer than two have one to speak of.

    Args:
        runs: by the letter of their column; nothing that a file says stands in the figure but its numbers.
    """
    scored = [
        (letter, run.made.certificate.claim.epsilon, run.score)
        for letter, run in runs.items()
        if run.score is not None and not run.score.wide
    ]
    if len(scored) < 2:
        return None
    title = {"text": f"private score, {confidence.percent()} interval"}
    figure = go.Figure([_trace(*each, place) for place, each in enumerate(scored)])
    figure.update_layout(
        **LAYOUT,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        height=320,
        showlegend=False,
        xaxis=AXIS | GRID | {"rangemode": "tozero", "title": {"text": "epsilon", "standoff": 8}},
        yaxis=AXIS | GRID | {"range": [-0.02, 1.02], "tickformat": ".0%", "title": title},
    )
    return figure


def _trace(letter: str, epsilon: float, score: ArmScore, place: int) -> go.Scatter:
    """One run; at the same epsilon two intervals are told apart by their colours and by the width of their ends."""
    low, high = score.interval
    return go.Scatter(
        x=[epsilon],
        y=[score.accuracy],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [high - score.accuracy],
            "arrayminus": [score.accuracy - low],
            "thickness": 2,
            "width": 5 * (place + 1),
        },
        text=[letter],
        textposition="middle right" if place % 2 == 0 else "middle left",
        mode="markers+text",
        marker={"color": _COLOURS[place % len(_COLOURS)], "size": 11},
        hovertemplate=_HOVER,
    )
