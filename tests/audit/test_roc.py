"""The curve of an attack against closed forms, and its intervals against simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from mechanisms.accounting import best_guess
from mechanisms.audit.membership import LOW, Roc, allowed, allowed_area, corners, roc
from mechanisms.errors import UsageError


def finds_nothing(found: Roc) -> bool:
    """Whether guessing blindly would do as well, as far as these numbers of rows can tell."""
    return found.interval[0] <= 0.5 <= found.interval[1]


def test_scores_that_tell_everything_and_nothing():
    low, high = np.arange(50.0), np.arange(100.0, 150.0)
    assert roc(high, low).area == roc(high, low).found == 1.0
    assert roc(low, high).area == roc(low, high).found == 0.0
    assert roc(low, low).area == 0.5
    same = roc(np.zeros(40), np.zeros(60))
    assert (same.area, same.found) == (0.5, 0.0)  # ties are found by nobody
    assert finds_nothing(same)
    assert not finds_nothing(roc(high, low))
    assert 0.8 < roc(high, low).interval[0] < roc(high, low).interval[1] == 1.0


def test_the_area_and_the_points_are_those_of_two_normal_distributions():
    random = np.random.default_rng(1)
    found = roc(random.normal(1.0, 1.0, 20_000), random.normal(0.0, 1.0, 20_000))
    assert found.area == pytest.approx(norm.cdf(1 / math.sqrt(2)), abs=0.01)
    for rate, reached in found.points[1:-1]:
        assert reached == pytest.approx(norm.sf(norm.isf(rate) - 1), abs=0.02)
    assert found.points[-1] == (1.0, 1.0)


def test_the_intervals_cover_what_they_should():
    random = np.random.default_rng(2)
    truth, runs = float(norm.cdf(1.5 / math.sqrt(2))), 150
    found = [roc(random.normal(1.5, 1.0, 40), random.normal(0.0, 1.0, 60)) for _ in range(runs)]
    assert sum(each.interval[0] <= truth <= each.interval[1] for each in found) >= 0.9 * runs
    blind = [roc(random.normal(size=40), random.normal(size=60)) for _ in range(runs)]
    assert 0.9 * runs <= sum(finds_nothing(each) for each in blind) < runs


def test_the_false_positives_at_the_low_rate_are_as_few_as_said():
    others = np.arange(300.0)
    for members in (np.array([296.5, 296.5]), np.array([295.5, 299.5])):
        found = roc(members, others).found
        assert found == np.mean([(others > each).mean() <= LOW for each in members])


def test_what_a_claim_allows():
    assert allowed(0.0, 0.0, LOW) == pytest.approx(LOW)
    assert allowed(1.0, 1e-5, LOW) == pytest.approx(math.e * LOW + 1e-5)
    assert allowed(math.inf, 1e-5, LOW) == 1.0
    assert allowed(50.0, 0.0, 0.5) == pytest.approx(1.0)
    # Randomised response reaches the corner, and nothing passes it.
    wrong = 1 / (1 + math.exp(2.0))
    assert allowed(2.0, 0.0, wrong) == pytest.approx(1 - wrong)
    assert allowed(2.0, 0.0, 0.5) < 1.0


@pytest.mark.parametrize("ties", [3, 1000])
def test_the_curve_rises_to_its_end_and_has_the_area_below_it(ties):
    random = np.random.default_rng(3)
    found = roc(random.integers(1, ties + 1, 30) * 1.0, random.integers(0, ties, 40) * 1.0)
    rates, reached = np.array(found.curve).T
    assert (found.curve[0], found.curve[-1]) == ((0.0, 0.0), (1.0, 1.0))
    assert (np.diff(rates) >= 0).all()
    assert (np.diff(reached) >= 0).all()
    assert np.trapezoid(reached, rates) == pytest.approx(found.area)
    for rate, best in found.points[:-1]:
        assert best == pytest.approx(reached[rates <= rate + 1e-12].max())


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 1e-5), (2.0, 0.1), (9.0, 0.0)])
def test_the_corners_and_the_area_of_what_a_claim_allows(epsilon, delta):
    for rate, reached in corners(epsilon, delta):
        assert allowed(epsilon, delta, rate) == pytest.approx(reached)
    grid = np.concatenate([np.linspace(0, 0.01, 10_001), np.linspace(0.01, 1, 10_001)])
    area = np.trapezoid([allowed(epsilon, delta, rate) for rate in grid], grid)
    assert allowed_area(epsilon, delta) == pytest.approx(area, abs=1e-6)


def test_without_a_claim_everything_is_allowed():
    assert allowed_area(math.inf, 1e-5) == 1.0
    assert allowed_area(1.0, 0.0) == pytest.approx(math.e / (1 + math.e))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-5), (1.0, 0.2), (5.0, 1e-3), (700.0, 0.0)])
def test_the_best_guess_is_the_best_of_all_that_the_claim_allows(epsilon, delta):
    balanced = max((allowed(epsilon, delta, rate) + 1 - rate) / 2 for rate, _ in corners(epsilon, delta))
    assert best_guess(epsilon, delta) == pytest.approx(balanced)
    assert best_guess(epsilon, delta) == pytest.approx((1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def test_too_few_rows_are_refused():
    with pytest.raises(UsageError):
        roc(np.zeros(1), np.zeros(9))
