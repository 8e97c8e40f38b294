"""Votes: noisy, divided, and with a clear majority."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import norm

from mechanisms.answers import chance_of_first, clear_majority
from mechanisms.noise import SecureRandomness
from mechanisms.queries import presence_histogram, query_mechanism_class, query_mechanism_names
from mechanisms.queries.knn_votes import SENSITIVITY, KnnVotes
from mechanisms.queries.soft_votes import SoftVotes

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


# Divided votes: the bound that their price rests on, whatever a shard says, and what lies at both ends.

LABELS = 6
SAID = st.lists(st.floats(-1e308, 1e308) | st.floats(-5, 5), min_size=LABELS, max_size=LABELS).map(np.array)
SHARPNESS = st.sampled_from([0.1, 1.0, 4.0, 100.0])
CORNERS = np.eye(LABELS) * 1e3


@given(one=SAID, other=SAID, sharpness=SHARPNESS)
@example(one=CORNERS[0], other=CORNERS[1], sharpness=4.0)
@example(one=np.zeros(LABELS), other=CORNERS[0], sharpness=1.0)  # six sixths, which would round up
def test_two_votes_are_root_two_apart_at_most(one, other, sharpness):
    mechanism = SoftVotes(sharpness=sharpness)
    votes = [mechanism.vote(each).tolist() for each in (one, other)]
    for vote in votes:
        assert min(vote) >= 0
        assert mechanism.parts - LABELS <= sum(vote) <= mechanism.parts
    squares = sum((a - b) ** 2 for a, b in zip(*votes, strict=True))  # of integers: no rounding
    assert squares <= round(SENSITIVITY**2) * mechanism.parts**2


def test_two_shards_of_opposite_minds_reach_the_bound():
    mechanism = SoftVotes()
    one, other = (mechanism.vote(each) for each in CORNERS[:2])
    assert np.linalg.norm(one - other) == pytest.approx(SENSITIVITY * mechanism.parts)


@given(said=st.lists(st.floats(-5, 5), min_size=LABELS, max_size=LABELS).map(np.array), sharpness=SHARPNESS)
def test_a_vote_is_the_probabilities_to_a_power(said, sharpness):
    mechanism = SoftVotes(sharpness=sharpness)
    assert mechanism.vote(said) / mechanism.parts == pytest.approx(softmax(sharpness * said), abs=2 / mechanism.parts)


def test_a_very_sharp_vote_is_a_whole_one():
    said = np.array([0.0, 3.0, 1.0])
    assert (SoftVotes(sharpness=100.0).vote(said) == SoftVotes.parts * KnnVotes().vote(said)).all()


def test_without_noise_the_heaviest_label_answers():
    mechanism = SoftVotes(noise=1e-3, sharpness=1.0)
    shares = [[0.4, 0.6, 0.0], [0.4, 0.6, 0.0], [0.99, 0.0, 0.01]]  # whole votes would answer 1
    histogram = np.sum([mechanism.vote(np.log(np.array(each) + 1e-9)) for each in shares], axis=0)
    release = mechanism.release(histogram, SecureRandomness())
    assert release.chosen == (0,)
    assert release.scores == pytest.approx([1.79, 1.2, 0.01], abs=0.02)


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
