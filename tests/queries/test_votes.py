"""Noisy votes, and how often a clear majority wins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from mechanisms.answers.plan import chance_of_first, clear_majority
from mechanisms.noise import SecureRandomness
from mechanisms.queries import presence_histogram, query_mechanism_class, query_mechanism_names
from mechanisms.queries.knn_votes import SENSITIVITY, KnnVotes

# Noisy votes: sensitivity, closed forms, the limit without noise.


VOTES = st.lists(st.integers(0, 4), min_size=1, max_size=30)


@given(votes=VOTES, place=st.integers(0, 29), other=st.integers(0, 4))
def test_one_shard_moves_the_histogram_by_root_two_at_most(votes, place, other):
    place %= len(votes)
    neighbour = [*votes[:place], other, *votes[place + 1 :]]
    one, two = (presence_histogram([(vote,) for vote in each], 5) for each in (votes, neighbour))
    distance = float(np.linalg.norm(one - two))
    assert distance == pytest.approx(SENSITIVITY if other != votes[place] else 0)


@pytest.mark.parametrize("rho", [0.001, 0.0625, 1.0])
def test_the_price_of_an_answer_is_that_of_its_gaussian(rho):
    votes = KnnVotes().calibrate(rho, 0.0)
    assert votes.rho == pytest.approx(rho)
    for order in (1.5, 2.0, 32.0):  # Renyi divergence of two Gaussians that far apart, in closed form
        assert order * SENSITIVITY**2 / (2 * votes.noise**2) == pytest.approx(order * votes.rho)
    assert votes.dominating_noise == pytest.approx(1 / math.sqrt(2 * rho))


def test_without_noise_the_majority_answers():
    release = KnnVotes(noise=1e-3).release(np.array([3, 5, 2]), SecureRandomness())
    assert release.chosen == (1,)
    assert release.scores == pytest.approx([3, 5, 2], abs=0.02)


@pytest.mark.parametrize("mechanism", query_mechanism_names())
def test_noise_that_drowns_the_shards_is_pointed_out(mechanism):
    quiet, loud = (query_mechanism_class(mechanism)(noise=noise) for noise in (0.5, 50.0))
    assert quiet.caution(shards=10) is None
    assert "more shards" in loud.caution(shards=10)


# What noise does to a clear majority: closed forms, and the mechanism's own noise.

DRAWS = 4000
FAR = 5.5
"""Standard deviations of a mean of draws: further off in fewer than 1 of 10^7 runs."""


@given(lead=st.integers(-20, 20), noise=st.floats(0.1, 100))
def test_of_two_labels_it_is_the_chance_of_one_gaussian(lead, noise):
    assert chance_of_first([lead, 0], noise) == pytest.approx(norm.cdf(lead / (np.sqrt(2) * noise)), abs=1e-7)


@given(labels=st.integers(2, 12), votes=st.integers(0, 50), noise=st.floats(0.1, 100))
def test_equal_labels_win_equally_often(labels, votes, noise):
    assert chance_of_first([votes] * labels, noise) == pytest.approx(1 / labels, abs=1e-7)


@given(votes=st.lists(st.integers(0, 30), min_size=2, max_size=5), noise=st.floats(0.5, 30))
def test_the_chances_of_all_labels_add_up_to_one(votes, noise):
    turned = (votes[place:] + votes[:place] for place in range(len(votes)))
    assert sum(chance_of_first(each, noise) for each in turned) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("shards", "labels", "noise"), [(10, 2, 3.7), (10, 4, 3.7), (25, 3, 2.0), (3, 6, 5.0)])
def test_the_mechanism_lets_the_majority_win_as_often(shards, labels, noise):
    votes, mechanism, randomness = (
        [*clear_majority(shards), *[0] * (labels - 2)],
        KnnVotes(noise=noise),
        SecureRandomness(),
    )
    won = sum(mechanism.release(np.array(votes), randomness).chosen == (0,) for _ in range(DRAWS))
    chance = chance_of_first(votes, noise)
    assert won / DRAWS == pytest.approx(chance, abs=FAR * np.sqrt(chance * (1 - chance) / DRAWS))


@pytest.mark.parametrize(("shards", "votes"), [(1, (1, 0)), (2, (2, 0)), (3, (2, 1)), (10, (7, 3)), (100, (70, 30))])
def test_the_scenario_is_a_majority_of_about_seven_in_ten(shards, votes):
    assert clear_majority(shards) == votes
    assert chance_of_first(votes, 1e-3) == pytest.approx(1, abs=1e-7)
