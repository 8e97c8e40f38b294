"""Selection: report noisy max and the exponential mechanisms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp, softmax
from scipy.stats import chisquare

from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.privacy_events import ZCDP, Poisson, Pure
from mechanisms.sampling import SamplingPlan
from mechanisms.steps.blended_logits import BlendedLogits
from mechanisms.steps.difference_clipping import DifferenceClipping
from mechanisms.steps.distributions import GRID
from mechanisms.steps.noisy_max import NoisyMax
from mechanisms.steps.softmax_draw import bounded_range_event
from tests.steps.inputs import FALSE_ALARM, Noiseless, a_step

# Report noisy max: exact probabilities on small domains, and the sampler that is meant to have them.


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


# The exponential mechanisms: their draws, the range they claim, and its price under sampling.

ORDERS = np.array([1.01, 1.5, 2.0, 5.0, 20.0, 100.0])
PUBLIC = np.array([1.0, 0.0, -2.0, 3.0])
ROWS = np.array([[5.0, 1.0, -30.0, 0.0], [0.0, 2.0, 1.0, -1.0]])


def renyi(log_p, log_q, order):
    return logsumexp(order * log_p + (1 - order) * log_q) / (order - 1)


def span_of(mechanism, step):
    return (step.expected_rows * mechanism.temperature * GRID) * (2 if isinstance(mechanism, BlendedLogits) else 1)


@pytest.mark.parametrize("source", [SecureRandomness(), SeededRandomness(11)], ids=["secure", "seeded"])
def test_blended_logits_draw_from_the_papers_softmax(source):
    clip, mechanism = 4.0, BlendedLogits(temperature=0.7, clip=4.0)
    step = a_step(ROWS, PUBLIC, expected=3)
    clipped = [np.maximum(-clip, z - z.max() + clip) for z in (*ROWS, PUBLIC)]
    expected = softmax(0.5 * ((clipped[0] + clipped[1]) / 3 + clipped[2]) / 0.7)
    drawn = np.bincount([mechanism.step(step, source).index for _ in range(3000)], minlength=4)
    assert chisquare(drawn, 3000 * expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize("source", [SecureRandomness(), SeededRandomness(12)], ids=["secure", "seeded"])
def test_difference_clipping_draws_from_the_papers_softmax(source):
    mechanism = DifferenceClipping(clip=1.5, temperature=1.2)
    step = a_step(ROWS, PUBLIC, expected=3)
    expected = softmax((PUBLIC + np.clip(ROWS - PUBLIC, -1.5, 1.5).sum(axis=0) / 3) / 1.2)
    drawn = np.bincount([mechanism.step(step, source).index for _ in range(3000)], minlength=4)
    assert chisquare(drawn, 3000 * expected).pvalue > FALSE_ALARM


def test_without_private_rows_difference_clipping_is_public_text():
    step = a_step(np.empty((0, 4)), PUBLIC, expected=5)
    mechanism = DifferenceClipping()
    probabilities = softmax(mechanism.aggregate(step) / span_of(mechanism, step))
    np.testing.assert_allclose(probabilities, softmax(PUBLIC), rtol=1e-6)


logits = st.lists(st.floats(-40, 40), min_size=4, max_size=4).map(np.array)


@pytest.mark.parametrize("mechanism", [BlendedLogits(0.8, 5.0, batch=3), DifferenceClipping(2.0, 0.8, batch=3)])
@given(rows=st.lists(logits, min_size=1, max_size=4), public=logits)
@settings(max_examples=80)
def test_a_unit_costs_no_more_than_the_event_at_any_order(mechanism, rows, public):
    with_unit = a_step(np.stack(rows), public, expected=3)
    without = a_step(np.stack(rows)[:-1].reshape(-1, 4), public, expected=3)
    log_p, log_q = (log_softmax(mechanism.aggregate(s) / span_of(mechanism, s)) for s in (with_unit, without))
    rho = mechanism.event(1, 1.0).rho
    for order in ORDERS:
        assert max(renyi(log_p, log_q, order), renyi(log_q, log_p, order)) <= rho * order + 1e-9


@given(
    samples=st.lists(logits, min_size=1, max_size=4),
    change=st.lists(st.floats(0, 1), min_size=4, max_size=4).map(np.array),
    rate=st.floats(0.01, 0.99),
    eta=st.floats(0.1, 4),
)
@settings(max_examples=200)
def test_one_step_on_a_sample_keeps_the_amplified_rho_whoever_else_joins(samples, change, rate, eta):
    """Also where the others' sample, which stays secret, decides between quite different distributions."""
    rho = bounded_range_event(eta, 1, rate).rho
    without = np.stack([log_softmax(s) for s in samples])
    with_unit = np.stack([log_softmax(s + eta * change) for s in samples])
    mixed = np.logaddexp(np.log1p(-rate) + without, np.log(rate) + with_unit)
    log_p, log_q = (logsumexp(each, axis=0) - np.log(len(samples)) for each in (mixed, without))
    for order in ORDERS:
        assert max(renyi(log_p, log_q, order), renyi(log_q, log_p, order)) <= rho * order + 1e-9


@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_the_rho_of_a_step_is_no_larger_than_it_has_to_be(rate):
    eta = 0.2
    log_q = log_softmax([0.0, 0.0])
    log_p = np.logaddexp(np.log1p(-rate) + log_q if rate < 1 else -np.inf, np.log(rate) + log_softmax([eta, 0.0]))
    rho = bounded_range_event(eta, 1, rate).rho
    assert 0.8 * rho < renyi(log_p, log_q, 1.01) / 1.01 <= rho


def test_several_steps_on_one_sample_are_pure_steps_then_the_mixture():
    assert bounded_range_event(0.2, 10, 0.1) == Poisson(0.1, Pure(0.2, 10))
    for rate in (0.9, 1.0):
        event = bounded_range_event(0.2, 10, rate)
        assert isinstance(event, ZCDP)
        assert event.rho == pytest.approx(10 * 0.04 / 8)


@pytest.mark.parametrize("mechanism", [BlendedLogits(), DifferenceClipping()])
def test_the_cost_is_not_told_before_the_batch_size_is_known(mechanism):
    with pytest.raises(UsageError, match="plan"):
        mechanism.event(1, 0.1)
    small, large = (mechanism.for_plan(SamplingPlan(rows_per_token=m)).event(1, 1.0).rho for m in (10, 100))
    assert small == pytest.approx(100 * large)
