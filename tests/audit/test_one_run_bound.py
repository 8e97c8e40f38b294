"""The bound from one run: closed forms, and simulations of mechanisms whose epsilon is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from mechanisms.audit.one_run import best_guesses, epsilon_proved

RUNS = 40


def test_without_delta_it_is_the_interval_of_clopper_and_pearson():
    for made, correct in ((100, 80), (64, 64), (500, 300)):
        least = beta.ppf(0.05, correct, made - correct + 1)
        bound = epsilon_proved(made, made, correct, 0.0, 0.05)
        assert bound == pytest.approx(math.log(least / (1 - least)), abs=1e-5)
    assert epsilon_proved(100, 100, 50, 0.0, 0.05) == 0.0
    assert epsilon_proved(100, 100, 0, 0.0, 0.05) == 0.0


def test_delta_lowers_it_and_a_large_one_leaves_nothing():
    bounds = [epsilon_proved(1000, 100, 90, delta, 0.05) for delta in (0.0, 1e-4, 1e-2)]
    assert bounds[0] > bounds[1] > bounds[2] == 0.0


def response(epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    return lambda coins, random: np.where(random.random(len(coins)) < truth, coins, ~coins).astype(float)


def laplace(epsilon):
    return lambda coins, random: coins + random.laplace(0.0, 1 / epsilon, len(coins))


def told_by_chance(delta):
    """Says nothing of a canary, but with probability delta everything."""
    return lambda coins, random: np.where(random.random(len(coins)) < delta, 2.0 * coins - 1, 0.0)


def bounds(mechanism, delta=0.0, canaries=256):
    random = np.random.default_rng(5)
    coins = [random.random(canaries) < 0.5 for _ in range(RUNS)]
    return [best_guesses(each, mechanism(each, random), delta).lower_bound for each in coins]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [response, laplace])
def test_right_noise_is_hardly_ever_refuted_and_noise_too_small_by_four_always(mechanism):
    found = bounds(mechanism(1.0))
    assert sum(bound > 1.0 for bound in found) <= 0.1 * RUNS
    assert np.median(found) > 0.3
    assert min(bounds(mechanism(4.0))) > 1.0


def test_what_says_nothing_proves_nothing():
    found = bounds(lambda coins, random: random.normal(size=len(coins)))
    assert sum(bound > 0 for bound in found) <= 0.1 * RUNS


def test_delta_is_counted():
    """Without the term in delta the bound would refute a mechanism that keeps its claim of epsilon 0."""
    assert sum(bound > 0 for bound in bounds(told_by_chance(0.1), delta=0.1)) <= 0.1 * RUNS
    assert sum(bound > 0 for bound in bounds(told_by_chance(0.1), delta=0.0)) > 0.5 * RUNS
