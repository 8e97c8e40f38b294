"""Report noisy max: exact probabilities on small domains, and the sampler that is meant to have them."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps.distributions import GRID
from mechanisms.steps.noisy_max import NoisyMax
from tests.steps.inputs import FALSE_ALARM, Noiseless, a_step


def selection(scores, scale):
    """Probability of each candidate to win under exponential noise (McKenna and Sheldon 2020, proposition 3)."""
    survive = np.exp(-(np.max(scores) - np.asarray(scores)) / scale)
    chances = []
    for i in range(len(scores)):
        others = [survive[j] for j in range(len(scores)) if j != i]
        terms = (
            (-1) ** size / (size + 1) * sum(math.prod(subset) for subset in itertools.combinations(others, size))
            for size in range(len(others) + 1)
        )
        chances.append(survive[i] * sum(terms))
    return np.array(chances)


def worst_ratio(scale, moves):
    """Largest log-ratio over all three-candidate scores on a small lattice and all moves of one unit."""
    scores = [np.array(s) for s in itertools.product((0.0, 0.5, 1.0, 2.0), repeat=3)]
    ratios = (np.abs(np.log(selection(s, scale) / selection(s + m, scale))).max() for s in scores for m in moves)
    return max(ratios)


ADDED = [np.array(m) for m in itertools.product((0.0, 0.25, 0.5, 1.0), repeat=3) if max(m) == 1]
TURNED = [one - other for one, other in itertools.product(ADDED[::4], repeat=2)]


class Scale(Noiseless):
    """Keeps the noise's mean that a step asks for, in the units of the scores."""

    def exponential_argmax(self, values, scale):
        self.mean = scale / GRID
        return super().exponential_argmax(values, scale)


def drawn_and_charged(epsilon, unit_rows):
    """The noise of a step, and the epsilon that is charged for it."""
    mechanism, source = NoisyMax(step_epsilon=epsilon), Scale()
    mechanism.step(a_step(np.zeros((2, 3)), unit_rows=unit_rows), source)
    return source.mean, mechanism.event(1, 1.0).epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_unit_that_only_adds_costs_what_is_charged(epsilon):
    scale, charged = drawn_and_charged(epsilon, unit_rows=True)
    assert 0.5 * charged < worst_ratio(scale, ADDED) <= charged * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_row_that_turns_into_another_needs_twice_the_scale(epsilon):
    scale, charged = drawn_and_charged(epsilon, unit_rows=False)
    assert 0.5 * charged < worst_ratio(scale, TURNED) <= charged * (1 + 1e-9)
    scale, charged = drawn_and_charged(epsilon, unit_rows=True)
    assert worst_ratio(scale, TURNED) > 1.2 * charged, "unit rows' scale would be wrong with subsets"


@pytest.mark.parametrize("source", [SecureRandomness(), SeededRandomness(5)], ids=["secure", "seeded"])
@pytest.mark.parametrize("unit_rows", [True, False])
def test_the_sampler_has_these_probabilities(source, unit_rows):
    mechanism = NoisyMax(step_epsilon=4.0)  # so large that half or twice the noise is seen in all but 1 in 10^6 runs
    step = a_step(np.log([[0.6, 0.3, 0.1], [0.2, 0.4, 0.4]]), unit_rows=unit_rows)
    scale = (1 if unit_rows else 2) / 4.0
    expected = selection(mechanism.aggregate(step) / GRID, scale)
    drawn = np.bincount([mechanism.step(step, source).index for _ in range(4000)], minlength=3)
    assert chisquare(drawn, 4000 * expected).pvalue > FALSE_ALARM


def test_per_demonstration_keeps_the_sample_for_all_steps():
    event = NoisyMax(step_epsilon=0.2).event(30, 0.1)
    assert event.to_json() == {"type": "poisson", "rate": 0.1, "of": {"type": "pure", "epsilon": 0.2, "count": 30}}


def test_unit_rows_have_twice_the_signal():
    plans = [SamplingPlan(Scheme.PER_TOKEN, subsets=10, unit_rows=each) for each in (True, False)]
    with_units, with_subsets = (NoisyMax().signal_to_noise(plan) for plan in plans)
    assert with_units == pytest.approx(2 * with_subsets)
