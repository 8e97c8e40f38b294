"""Prototypes: where they point, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.noise import SecureRandomness
from mechanisms.tallies import Prototypes
from mechanisms.tallies.prototypes import within_ball
from mechanisms.tallies.tally import LATTICE
from tests.steps.inputs import Noiseless


def released(noise, count, vectors, labels, randomness):
    return Prototypes(noise, count).release(Prototypes.contributions(labels, vectors), randomness)


def test_without_noise_they_are_the_directions_of_the_labels_means():
    vectors = np.array([[1.0, 0, 0], [0.6, 0.8, 0], [0, 0, -1]])
    found = released(1.0, 3, vectors, np.array([0, 0, 2]), Noiseless())
    assert found[0] == pytest.approx(np.array([1.6, 0.8, 0]) / np.hypot(1.6, 0.8))
    assert found[1].tolist() == [0, 0, 0]
    assert found[2].tolist() == [0, 0, -1]


def test_a_unit_whose_label_or_vector_is_none_adds_nothing():
    vectors = np.array([[1.0, 0], [1, 0], [np.nan, 0], [0, np.inf]])
    assert not released(1.0, 2, vectors, np.array([-1, 2, 0, 1]), Noiseless()).any()


def test_no_vector_leaves_the_ball_by_rounding():
    vectors = np.random.default_rng(0).normal(size=(500, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[::2] *= np.float32(1.0001)
    norms = (within_ball(vectors) ** 2).sum(axis=1)
    assert norms.max() <= LATTICE**2
    assert norms.min() > LATTICE**2 * (1 - 1e-6)


def test_hundreds_of_units_drown_the_noise():
    rng = np.random.default_rng(4)
    centres = np.eye(3, 16)
    labels = rng.integers(0, 3, 600)
    vectors = centres[labels] + rng.normal(scale=0.1, size=(600, 16))
    found = released(3.7, 3, vectors, labels, SecureRandomness())
    assert np.linalg.norm(found, axis=1) == pytest.approx(1)
    assert (np.argmax(vectors @ found.T, axis=1) == labels).mean() > 0.95
