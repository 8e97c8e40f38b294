"""What tallies cost, and prototypes."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from mechanisms.noise import SecureRandomness
from mechanisms.privacy_events import Composed
from mechanisms.tallies import LabelBias, Openings, Prototypes, ScoreTally, Votes
from mechanisms.tallies.prototypes import within_ball
from mechanisms.tallies.tally import LATTICE
from tests.steps.inputs import Noiseless

# What tallies cost: both accountants, exact curves of the noise, and its deviation.


DELTA = 1e-5


def alone(*events) -> Composed:
    return Composed("role", (("one", events),))


def curve(shifts, scale, epsilons):
    """Exact delta at each epsilon of discrete Laplace noise on the integers, shifted by `shifts` in its entries."""
    values = np.arange(-int(14 * scale), int(14 * scale) + max(shifts) + 1)
    pairs = [(np.exp(-np.abs(values) / scale), np.exp(-np.abs(values - shift) / scale)) for shift in shifts]
    without, with_unit = (
        functools.reduce(np.multiply.outer, [pair[side] / pair[0].sum() for pair in pairs]) for side in (0, 1)
    )
    return [np.maximum(with_unit - math.exp(each) * without, 0).sum() for each in epsilons]


def laplace_curve(epsilon, epsilons):
    return [max(0.0, 1 - math.exp((each - epsilon) / 2)) for each in epsilons]


@pytest.mark.parametrize("shifts", [(40,), (20, 20), (1, 39), (33, 7), (0, 40), (10, 10)])
def test_one_laplace_release_of_norm_1_covers_a_norm_that_is_shared_among_entries(shifts):
    scale, epsilons = 40, np.linspace(0, 1.2, 49)
    found, allowed = curve(shifts, scale, epsilons), laplace_curve(1.0, epsilons)
    of_the_lattice = len(shifts) / (8 * scale**2)
    assert (np.array(found) <= np.array(allowed) + of_the_lattice + 1e-6).all()


def test_a_norm_above_one_it_does_not_cover():
    epsilons = np.linspace(0, 1.2, 49)
    excess = np.array(curve((40, 20), 40, epsilons)) - np.array(laplace_curve(1.0, epsilons))
    assert excess.max() > 0.05


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize(
    "make", [lambda e: Votes(e, False), lambda e: Openings(e, True), lambda e: ScoreTally(e, True), LabelBias]
)
def test_the_deviation_stated_is_that_of_the_noise(make, epsilon):
    tally = make(epsilon)
    noise = tally.release(np.zeros((0, 20_000)), SecureRandomness())
    spread = np.mean(noise**4) / tally.deviation**4 / len(noise)
    assert np.mean(noise**2) / tally.deviation**2 == pytest.approx(1, abs=6 * math.sqrt(spread))
    if tally.steps == 1:
        assert (noise == np.rint(noise)).all()
        chance = math.exp(-epsilon)
        assert tally.deviation == pytest.approx(math.sqrt(2 * chance) / (1 - chance))
    else:
        assert tally.deviation == pytest.approx(math.sqrt(2) / epsilon)


# Prototypes: where they point, and what is left out.


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
