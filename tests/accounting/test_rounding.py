"""What is said of a bound is still a bound, and no longer than it has to be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting import rounded_down, rounded_up

BOUNDS = st.floats(min_value=1e-12, max_value=1e12)


@given(BOUNDS, st.integers(1, 6))
def test_it_is_never_below_and_at_most_one_digit_above(bound, digits):
    said = float(rounded_up(bound, digits))
    assert bound <= said <= bound * (1 + 10.0 ** (1 - digits))


@given(BOUNDS, st.integers(1, 6))
def test_what_is_left_is_never_above_and_at_most_one_digit_below(left, digits):
    said = float(rounded_down(left, digits))
    assert left * (1 - 10.0 ** (1 - digits)) <= said <= left


@given(BOUNDS, st.integers(1, 6))
def test_what_fits_is_said_as_it_is(bound, digits):
    short = f"{bound:.{digits}g}"
    assert rounded_up(float(short), digits) == rounded_down(float(short), digits) == short


@pytest.mark.parametrize(
    ("bound", "said"), [(1.00049, "1.001"), (0.0, "0"), (math.inf, "inf"), (np.float64(0.1), "0.1"), (9.9999, "10")]
)
def test_bounds_that_are_met(bound, said):
    assert rounded_up(bound, 4) == said
