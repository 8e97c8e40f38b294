"""Intervals are over runs, whole ones alone, and differences are paired."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from research.ginc.table import COLUMNS, differences, figure, grouped, interval, table


def line(concept: int, run: int, method: str, one: float) -> dict:
    return dict.fromkeys(COLUMNS, 0.0) | {
        "concept": concept, "run": run, "plan": "ours", "method": method, "epsilon": 1.0, "one": one,
    }  # fmt: skip


LINES = [
    line(concept, run, method, 0.1 * run + 0.2 * concept + (0.05 if method == "pta" else 0.0))
    for run in (1, 2, 3)
    for concept in (0, 1)
    for method in ("plain", "pta")
]


def test_a_run_is_the_mean_over_concepts_and_counts_when_it_is_whole():
    cut = [*LINES, line(0, 4, "plain", 9.0)]
    assert grouped(cut, "one")["ours", "plain", 1.0] == pytest.approx([0.2, 0.3, 0.4])


def test_interval_is_students():
    mean, half = interval([0.2, 0.3, 0.4])
    assert (mean, half) == (pytest.approx(0.3), pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-5))
    assert math.isinf(interval([0.5])[1])


def test_what_runs_share_falls_out_of_differences():
    assert "| ours | pta | 1 | +0.050 ± 0.000 |" in differences(LINES, "one")
    assert "| ours | pta | 1 | 3 | 0.350 ± 0.248 |" in table(LINES)


def test_figure_has_a_mark_for_each_row():
    root = ElementTree.fromstring(figure(LINES))
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == 2
