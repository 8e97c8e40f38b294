"""Divided votes: the bound that their price rests on, whatever a shard says, and what lies at both ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import softmax

from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.queries.knn_votes import SENSITIVITY, KnnVotes
from mechanisms.queries.soft_votes import SoftVotes

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


def test_votes_of_both_kinds_meet_the_same_noise():
    votes = np.array([3, 0, 7])
    one, other = (
        mechanism.release(votes * mechanism.parts, SeededRandomness(1)).scores
        for mechanism in (KnnVotes(noise=2.0), SoftVotes(noise=2.0))
    )
    assert (one == other).all()


def test_without_noise_the_heaviest_label_answers():
    mechanism = SoftVotes(noise=1e-3, sharpness=1.0)
    shares = [[0.4, 0.6, 0.0], [0.4, 0.6, 0.0], [0.99, 0.0, 0.01]]  # whole votes would answer 1
    histogram = np.sum([mechanism.vote(np.log(np.array(each) + 1e-9)) for each in shares], axis=0)
    release = mechanism.release(histogram, SecureRandomness())
    assert release.chosen == (0,)
    assert release.scores == pytest.approx([1.79, 1.2, 0.01], abs=0.02)
