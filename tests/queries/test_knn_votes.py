"""Noisy votes: sensitivity, closed forms, the limit without noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.noise import SecureRandomness
from mechanisms.queries import presence_histogram, query_mechanism_class, query_mechanism_names
from mechanisms.queries.knn_votes import SENSITIVITY, KnnVotes

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


def test_the_noise_is_as_large_as_it_says():
    draws = [KnnVotes(noise=2.0).release(np.zeros(50, dtype=np.int64), SecureRandomness()).scores for _ in range(40)]
    assert np.std(draws) == pytest.approx(2.0, rel=0.15)  # 2,000 draws: a ninth standard error


@pytest.mark.parametrize("mechanism", query_mechanism_names())
def test_noise_that_drowns_the_shards_is_pointed_out(mechanism):
    quiet, loud = (query_mechanism_class(mechanism)(noise=noise) for noise in (0.5, 50.0))
    assert quiet.caution(shards=10) is None
    assert "more shards" in loud.caution(shards=10)
