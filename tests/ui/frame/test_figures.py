"""Costs on the page are never smaller than they are, and what is left is never larger."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.frame import figures


@given(st.floats(1e-12, 1e6))
def test_each_is_rounded_to_its_safe_side_and_stays_close(value: float):
    spent, left = float(figures.spent(value)), float(figures.left(value))
    assert left <= value <= spent
    assert spent - left <= 0.011 * value


@pytest.mark.parametrize(
    ("value", "spent", "left"), [(9.9951, "10", "9.99"), (3.3349, "3.34", "3.33"), (0.0, "0", "0")]
)
def test_known_figures(value: float, spent: str, left: str):
    assert (figures.spent(value), figures.left(value)) == (spent, left)
