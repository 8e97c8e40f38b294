"""Tables of measurements: what a cell says is what was measured."""

from __future__ import annotations

import pytest

from research.lines import cell


@pytest.mark.parametrize(
    ("figures", "shown"),
    [([0.5], ".500"), ([90.8], "90.800"), ([100.0, 100.0], "100.000"), ([None], "-"), ([None, 0.25], ".250")],
)
def test_a_figure_below_one_loses_its_zero_and_no_other_does(figures, shown):
    assert cell(figures) == shown


def test_the_half_interval_of_runs_is_students():
    # Two runs: 12.706 standard errors, and the standard error of 0 and .2 is .1.
    assert cell([0.0, 0.2]) == ".100 ± 1.271"
