"""Keywords by propose-test-release: the lemmas of its proof, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.queries import presence_histogram
from mechanisms.queries.keywords import Keywords
from mechanisms.queries.mechanism import GRID

ANSWER = st.sets(st.integers(0, 11), max_size=6)
MANY = settings(max_examples=300)


def neighbours(answers, place, other):
    place %= len(answers)
    changed = [*answers[:place], other, *answers[place + 1 :]]
    return (presence_histogram(each, 12) for each in (answers, changed))


def ranked(histogram):
    return np.sort(histogram)[::-1]


@given(answers=st.lists(ANSWER, min_size=1, max_size=12), place=st.integers(0, 11), other=ANSWER)
@MANY
def test_one_shard_moves_a_gap_by_two_and_all_gaps_by_a_range_of_four(answers, place, other):
    one, two = neighbours(answers, place, other)
    assert np.abs(one - two).max() <= 1
    assert np.abs(ranked(one) - ranked(two)).max() <= 1
    moved = np.diff(ranked(one)) - np.diff(ranked(two))
    assert np.abs(moved).max() <= 2
    assert np.ptp(moved) <= 4  # over a scale of 4 / epsilon: an epsilon-bounded range


AGREEING = st.integers(1, 5).flatmap(
    lambda core: st.lists(
        st.sets(st.integers(core, 11), max_size=2).map(lambda own: own | set(range(core))), min_size=8, max_size=12
    )
)


@given(answers=AGREEING, place=st.integers(0, 11), other=ANSWER)
@MANY
def test_behind_a_gap_above_two_the_set_is_the_neighbours_set(answers, place, other):
    one, two = neighbours(answers, place, other)
    wide = [k for k, gap in enumerate(-np.diff(ranked(one)), start=1) if gap > 2]
    assume(wide)
    for k in wide:
        first, second = (set(np.argsort(-each, kind="stable")[:k].tolist()) for each in (one, two))
        assert first == second


class Fixed:
    """Hands out the noise that a test wants."""

    private = False

    def __init__(self, noise: int, position: int = 0) -> None:
        self.noise, self.position = noise, position
        self.scale = self.selection_scale = None

    def gaussian(self, values, scale):
        self.scale = scale
        return values + self.noise

    def gumbel_argmax(self, values, scale):
        self.selection_scale = scale
        return self.position


def test_behind_a_gap_of_two_it_need_not_be():
    before, after = (presence_histogram([{0}, {1}, {1}, {own}], 3) for own in (1, 0))
    mechanism = Keywords(noise=1e-3, fewest_keywords=1, most_keywords=1)
    passed, refused = ([mechanism.release(h, Fixed(noise)).chosen for h in (before, after)] for noise in (GRID, 0))
    assert passed == [(1,), (0,)]  # what would be seen if the noise, or the rule, let such a gap pass
    assert refused == [None, None]
    assert mechanism.release(presence_histogram([{0}, *[{1}] * 4], 3), Fixed(0)).chosen == (1,)  # a gap of three


@pytest.mark.parametrize("failure", [1e-3, 1e-7])
@pytest.mark.parametrize("gap", [0, 1, 2])
def test_a_narrow_gap_passes_with_the_failure_probability_at_most(failure, gap):
    mechanism = Keywords(noise=1.5, fewest_keywords=1, most_keywords=1, failure=failure)
    histogram = np.array([gap, 0, 0])
    low, high = 0, 20 * 2 * GRID
    while high - low > 1:  # the least noise with which the test passes
        middle = (low + high) // 2
        low, high = (low, middle) if mechanism.release(histogram, Fixed(middle)).chosen else (middle, high)
    source = Fixed(high)
    mechanism.release(histogram, source)
    assert source.scale == pytest.approx(2 * 1.5 * GRID)
    # The discrete Gaussian is at or above `high` at most as often as the continuous one is above `high - 1`.
    assert norm.sf((high - 1) / source.scale) <= failure
    assert norm.sf((high - 1) / source.scale) >= 0.99 * failure


def test_the_order_inside_the_set_does_not_show():
    mechanism = Keywords(noise=1e-2, fewest_keywords=2, most_keywords=4)
    one, two = (mechanism.release(np.array(h), Fixed(0)) for h in ([9, 8, 1, 0, 0], [8, 9, 1, 0, 0]))
    assert one == two
    assert one.chosen == (0, 1)
    assert one.scores is None


def test_the_drawn_size_is_the_released_size():
    histogram = np.array([30, 29, 20, 10, 9, 0, 0])
    for position in range(3):
        source = Fixed(10**12, position)
        mechanism = Keywords(noise=1.0, fewest_keywords=2, most_keywords=4)
        assert mechanism.release(histogram, source).chosen == tuple(range(2 + position))
        assert source.selection_scale == pytest.approx(4 / mechanism.selection_epsilon)


def test_without_noise_a_wide_gap_answers_and_a_narrow_one_abstains():
    mechanism = Keywords(noise=1e-3, fewest_keywords=1, most_keywords=3)
    assert mechanism.release(np.array([9, 9, 1, 0, 0, 0]), SecureRandomness()).chosen == (0, 1)
    assert mechanism.release(np.array([4, 3, 2, 1, 0, 0]), SecureRandomness()).chosen is None


@pytest.mark.parametrize("most", [15, 30])
@pytest.mark.parametrize("rho", [0.01, 1.0])
def test_the_price_is_shared_as_asked(rho, most):
    mechanism = Keywords(most_keywords=most).calibrate(rho, 1e-8)
    assert mechanism.rho == pytest.approx(rho)
    assert mechanism.delta == 1e-8
    chosen = mechanism.selection_epsilon**2 / 8
    assert chosen == pytest.approx(0 if most == 15 else 0.2 * rho)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_dominating_gaussian_covers_a_pure_draw(epsilon):
    share = 0.2
    noise = 2 * math.sqrt(share / (1 - share)) / epsilon
    mechanism = Keywords(noise=noise, selection_share=share)
    assert mechanism.selection_epsilon == pytest.approx(epsilon)
    mean = math.sqrt(mechanism.dominating_noise**-2 - noise**-2)
    for other in np.linspace(0, epsilon, 20):
        pure = (math.exp(epsilon) - math.exp(other)) / (1 + math.exp(epsilon))
        covered = norm.cdf(mean / 2 - other / mean) - math.exp(other) * norm.cdf(-mean / 2 - other / mean)
        assert pure <= covered + 1e-12


def test_bad_sizes_are_refused():
    with pytest.raises(UsageError, match="fewest"):
        Keywords(fewest_keywords=5, most_keywords=4)
