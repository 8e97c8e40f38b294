"""A product of experts costs what it claims, in closed form, and answers with the product where there is no noise."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax
from scipy.stats import binom

from mechanisms.accounting import PrivacyTarget, amplified, pld
from mechanisms.accounting.losses import Direction, dominating_pair
from mechanisms.accounting.normal_form import NormalForm, SampledPure
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.queries.mechanism import GRID
from research.newer.poetry import Poetry

LABELS, DELTA = 3, 1e-5
NUMBERS = st.floats(-20, 5) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0])
EXPERTS = arrays(float, st.tuples(st.integers(1, 5), st.just(LABELS)), elements=NUMBERS)
NOBODY = np.empty((0, LABELS))
POETRY = Poetry(eta=0.7, rate=0.2, clip=1.7)


def outcomes(poetry, experts):
    """The exact distribution of the label that is drawn from these experts."""
    return softmax(poetry.product(experts) * poetry.eta / (poetry.clip * GRID))


def sampled(poetry, rows, public=NOBODY):
    """The same where each row joins with the rate, and public experts always do."""
    coins = product([0, 1], repeat=len(rows))
    weights = {each: poetry.rate ** sum(each) * (1 - poetry.rate) ** (len(rows) - sum(each)) for each in coins}
    joined = {each: np.vstack([public, rows[np.array(each, bool)]]) for each in weights}
    return sum(weight * outcomes(poetry, joined[each]) for each, weight in weights.items())


def span(one, other):
    """The range of the privacy loss over the labels."""
    return float(np.ptp(np.log(one) - np.log(other)))


@given(EXPERTS)
def test_an_expert_moves_the_draw_by_no_more_than_eta(experts):
    losses = np.log(outcomes(POETRY, experts)) - np.log(outcomes(POETRY, experts[1:]))
    assert np.ptp(losses) <= POETRY.eta + 1e-9
    assert np.abs(losses).max() <= POETRY.eta + 1e-9


def test_an_expert_can_move_it_by_eta():
    expert = np.array([[0.0, -math.pi, -30.0]])
    assert span(outcomes(POETRY, expert), outcomes(POETRY, expert[1:])) == pytest.approx(POETRY.eta, rel=1e-5)


@given(EXPERTS)
def test_a_row_that_joins_by_a_coin_is_dominated_by_its_pair(rows):
    with_it, without = sampled(POETRY, rows), sampled(POETRY, rows[1:])
    assert span(with_it, without) <= amplified(POETRY.eta, POETRY.rate) + 1e-9
    epsilons = np.array([0.0, 0.02, 0.05, 0.1, 0.15])
    for direction, one, other in ((Direction.REMOVE, with_it, without), (Direction.ADD, without, with_it)):
        pair = dominating_pair(SampledPure(POETRY.eta, 1, POETRY.rate), direction)
        deltas = [np.maximum(one - math.exp(epsilon) * other, 0).sum() for epsilon in epsilons]
        assert (deltas <= pair.hockey_stick(epsilons) + 1e-9).all()


def test_a_row_at_its_worst_comes_near_the_price():
    rows, against = np.array([[0.0, -9.0, -9.0]]), np.array([[-9.0, 0.0, 0.0]] * 20)
    price = amplified(POETRY.eta, POETRY.rate)
    assert 0.99 * price < span(sampled(POETRY, rows, against), sampled(POETRY, rows[1:], against)) <= price


@pytest.mark.parametrize(("epsilon", "queries", "rate"), [(1.0, 100, 0.002), (4.0, 100, 0.002), (1.0, 50, 0.5)])
def test_all_questions_cost_the_target_and_a_sequence_of_worst_ones_less(epsilon, queries, rate):
    poetry = Poetry.costing(PrivacyTarget(epsilon, DELTA), queries, rate)
    assert 0.999 * epsilon < poetry.epsilon(queries, DELTA) <= epsilon
    pairs = NormalForm(((SampledPure(poetry.eta, 1, rate), queries),), 0.0)
    assert pld.epsilon(pairs, DELTA) == pytest.approx(epsilon, rel=0.02)
    # Two labels, a row that is sure each time, and public experts who say the opposite: the number of times that its
    # label is drawn is binomial.
    row, none, deltas = np.array([[0.0, -9.0]]), np.empty((0, 2)), []
    for experts in range(6):
        public = np.array([[-9.0, 0.0]] * experts).reshape(-1, 2)
        with_it, without = (sampled(poetry, each, public)[0] for each in (row, none))
        for one, other in ((with_it, without), (without, with_it)):
            deltas.append(hockey_stick(queries, one, other, epsilon))
    assert 0 < max(deltas) < DELTA


def hockey_stick(queries, one, other, epsilon):
    """Delta at epsilon of so many draws of two labels, the first one with either probability."""
    times = np.arange(queries + 1)
    return np.maximum(binom.pmf(times, queries, one) - math.exp(epsilon) * binom.pmf(times, queries, other), 0).sum()


@given(EXPERTS)
def test_without_noise_the_largest_product_answers(experts):
    noiseless = Poetry(eta=1e9, rate=1.0, clip=100.0)
    scores = noiseless.product(experts)
    finite = experts[np.isfinite(experts).all(axis=1)]
    assert np.allclose(scores / GRID, finite.sum(axis=0) - finite.max(axis=1).sum(), atol=1e-4)
    [chosen] = noiseless.release(scores, SeededRandomness(1)).chosen
    assert scores[chosen] >= scores.max() - 1


def test_labels_are_drawn_with_their_probabilities():
    experts = np.log([[0.6, 0.3, 0.1], [0.5, 0.2, 0.3]])
    drawn = [POETRY.release(POETRY.product(experts), SecureRandomness()).chosen[0] for _ in range(4000)]
    # Four standard deviations of a frequency are below .032.
    assert np.bincount(drawn, minlength=LABELS) / 4000 == pytest.approx(outcomes(POETRY, experts), abs=0.04)
