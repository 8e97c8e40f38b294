"""What noise does to a clear majority: closed forms, and the mechanism's own noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from mechanisms.answers.odds import chance_of_first, clear_majority
from mechanisms.noise import SecureRandomness
from mechanisms.queries.knn_votes import KnnVotes

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
    found, mechanism, randomness = clear_majority(shards, labels, noise), KnnVotes(noise=noise), SecureRandomness()
    votes = np.array([found.leading, found.other, *[0] * (labels - 2)])
    won = sum(mechanism.release(votes, randomness).chosen == (0,) for _ in range(DRAWS))
    spread = np.sqrt(found.chance * (1 - found.chance) / DRAWS)
    assert won / DRAWS == pytest.approx(found.chance, abs=FAR * spread)


@pytest.mark.parametrize(("shards", "votes"), [(1, (1, 0)), (2, (2, 0)), (3, (2, 1)), (10, (7, 3)), (100, (70, 30))])
def test_the_scenario_is_a_majority_of_about_seven_in_ten(shards, votes):
    found = clear_majority(shards, 2, 1.0)
    assert (found.leading, found.other) == votes
    assert clear_majority(shards, 2, 1e-3).chance == pytest.approx(1, abs=1e-7)
