"""Corrections: what a fit aims at, and what noise cannot do to it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax

from mechanisms.runs.judging import preferences, step

SIZES = (400, 150, 50)
SHARES = np.array(SIZES) / sum(SIZES)
EVEN = np.full(3, 1 / 3)


def scores(rows: int = 300, labels: int = 3) -> np.ndarray:
    """Log-probabilities of a model that prefers the last label."""
    drawn = np.random.default_rng(3).normal(size=(rows, labels)) * 2
    return log_softmax(drawn + np.array([*[0.0] * (labels - 1), 3.0]), axis=1)


@pytest.mark.parametrize("aim", [SHARES, EVEN], ids=["shares", "even"])
def test_a_fit_ends_where_mean_probabilities_are_the_aim(aim):
    seen, offset = scores(), np.zeros(3)
    for _ in range(200):
        offset = offset + step(preferences(seen, offset).sum(axis=0), aim)
    assert preferences(seen, offset).mean(axis=0) == pytest.approx(aim, abs=1e-6)
    assert step(preferences(seen, offset).sum(axis=0), aim) == pytest.approx(np.zeros(3), abs=1e-5)
    assert abs(preferences(seen, np.zeros(3)).mean(axis=0) - aim).max() > 0.2, "it was there before the fit"


@given(arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)))
def test_whatever_noise_makes_of_sums_a_step_is_finite_and_bounded(noisy):
    found = step(noisy, SHARES)
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(0, abs=1e-9)
    assert np.ptp(found) <= np.log(3 / 0.02) + np.log(SIZES[0] / SIZES[-1]) + 0.02


@given(arrays(np.float64, 3, elements=st.floats(0, 1e3)), st.floats(0, 1e3), st.floats(0, 1e3))
def test_the_noisier_a_measurement_is_known_to_be_the_less_it_moves(noisy, one, other):
    assume(noisy.sum() >= 1)  # less than one row's worth is not scaled up, and there a step may grow by a hair
    low, high = sorted((one, other))
    aim = SHARES
    assert np.ptp(step(noisy, aim, high)) <= np.ptp(step(noisy, aim, low)) + 1e-9


def test_of_many_rows_known_noise_changes_nothing_and_of_no_rows_nothing_moves():
    aim = SHARES
    assert step(np.array([1e6, 2e6, 5e6]), aim, 4.0) == pytest.approx(step(np.array([1e6, 2e6, 5e6]), aim), abs=1e-4)
    assert step(np.zeros(3), aim, 4.0) == pytest.approx(np.zeros(3), abs=1e-12)
