"""A grid as a page that loads nothing from elsewhere: accuracy by shots, one line an arm and reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import plotly.graph_objects as go

from mechanisms import confidence
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT
from mechanisms.evaluation.reader import CONTEXTUAL, PRIOR, RAW
from mechanisms.evaluation.results import Line
from mechanisms.kept_file import keep

_COLOURS = {ZERO_SHOT: "#7c8592", PUBLIC_ONLY: "#c9822b", PRIVATE: "#1a8f85"}
_DASHES = {RAW: "dot", CONTEXTUAL: "dash", PRIOR: "solid"}
_ALONE = "for the curator alone: figures without noise on rows of a private data set"
_AXIS = {"zeroline": False, "showgrid": True, "gridcolor": "#e6e9ed"}


def grid_figure(lines: Sequence[Line], curator_only: bool = False) -> go.Figure:
    """Means over the orders by demonstrations a label; bars reach from the worst order's interval to the best one's."""
    shots = sorted({line.shots for line in lines}, key=lambda each: (not each.isdigit(), each.zfill(9)))
    figure = go.Figure(list(_traces(lines, shots)))
    figure.update_layout(
        template="none",
        font={"family": "system-ui, sans-serif", "size": 14},
        title={"text": _ALONE} if curator_only else None,
        xaxis=_AXIS | {"type": "category", "categoryarray": shots, "title": {"text": "demonstrations a label"}},
        yaxis=_AXIS | {"title": {"text": f"accuracy, with {confidence.percent()} intervals"}, "range": [0, 1]},
    )
    return figure


def _traces(lines: Sequence[Line], shots: Sequence[str]) -> Iterator[go.Scatter]:
    for arm, reading in dict.fromkeys((line.arm, line.reading) for line in lines):
        own = [line for line in lines if (line.arm, line.reading) == (arm, reading)]
        groups = {each: [line.accuracy for line in own if line.shots == each] for each in shots}
        means = {each: sum(found.value for found in group) / len(group) for each, group in groups.items() if group}
        lows = {each: min(found.interval[0] for found in groups[each]) for each in means}
        highs = {each: max(found.interval[1] for found in groups[each]) for each in means}
        yield go.Scatter(
            x=list(means),
            y=list(means.values()),
            name=f"{arm}, {reading}",
            mode="lines+markers",
            line={"color": _COLOURS.get(arm, "#444"), "dash": _DASHES.get(reading, "solid")},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [highs[each] - means[each] for each in means],
                "arrayminus": [means[each] - lows[each] for each in means],
                "thickness": 1,
            },
        )


def write_plot(path: Path, figure: go.Figure) -> None:
    """Write a figure as one page, with the library that draws it inside.

    Raises:
        UsageError: the place cannot be written.
    """
    keep(path, figure.to_html(include_plotlyjs=True, full_html=True))
