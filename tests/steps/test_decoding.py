"""Decoding a released vector: projection against its definition, draws against their distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2

from mechanisms.noise import SeededRandomness
from mechanisms.steps.distributions import choose, project_to_simplex

VECTORS = arrays(np.float64, st.integers(1, 12), elements=st.floats(-5, 5))


@given(VECTORS, st.integers(0, 2**32))
def test_the_projection_is_the_nearest_probability_vector(vector, seed):
    projected = project_to_simplex(vector)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    distance = np.linalg.norm(projected - vector)
    others = np.random.default_rng(seed).dirichlet(np.ones(len(vector)), size=50)
    assert (np.linalg.norm(others - vector, axis=1) >= distance - 1e-9).all()


@given(arrays(np.float64, 6, elements=st.floats(0.01, 1)))
def test_probability_vectors_stay_where_they_are(weights):
    probabilities = weights / weights.sum()
    assert project_to_simplex(probabilities) == pytest.approx(probabilities)


@given(VECTORS, st.integers(0, 2**32))
def test_temperature_zero_and_a_tiny_nucleus_take_the_largest(vector, seed):
    randomness = SeededRandomness(seed)
    assert choose(vector, 0.0, 1.0, randomness) == int(np.argmax(vector))
    assert vector[choose(vector, 1.0, 1e-9, randomness)] == pytest.approx(vector.max(), abs=1e-9)


def test_draws_follow_the_projected_distribution():
    shares, draws = np.array([0.5, 0.3, 0.2, -0.4]), 6000
    randomness = SeededRandomness(4)
    counts = np.bincount([choose(shares, 1.0, 1.0, randomness) for _ in range(draws)], minlength=4)
    assert counts[3] == 0
    expected = draws * shares[:3]
    assert ((counts[:3] - expected) ** 2 / expected).sum() < chi2.isf(1e-9, 2)


def test_a_nucleus_leaves_the_tail_out():
    shares = np.array([0.5, 0.3, 0.2])
    chosen = {choose(shares, 1.0, 0.7, SeededRandomness(i)) for i in range(200)}
    assert chosen == {0, 1}
