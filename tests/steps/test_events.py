"""Pure steps, their sampled compositions and zCDP: accountants against sums that can be written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from scipy.stats import binom, norm

from mechanisms.accounting import claim
from mechanisms.accounting.losses import Direction, dominating_pair
from mechanisms.accounting.normal_form import Concentrated, SampledGaussian, SampledPure, normal_form
from mechanisms.errors import AccountingError
from mechanisms.privacy_events import ZCDP, Composed, Gaussian, Laplace, Poisson, PrivacyEvent, Pure, Repeat
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names

DELTA = 1e-5


def cost(*events, delta=DELTA):
    return claim(Composed("dataset", (("all", events),)), delta)


def outcomes(epsilon, steps):
    """Both distributions of every sequence of randomised responses, written out."""
    truth = 1 / (1 + math.exp(-epsilon))
    for answers in itertools.product((True, False), repeat=steps):
        truthful = sum(answers)
        yield truth**truthful * (1 - truth) ** (steps - truthful), truth ** (steps - truthful) * (1 - truth) ** truthful


@pytest.mark.parametrize(("epsilon", "steps", "rate"), [(0.3, 1, 1.0), (0.5, 6, 0.1), (1.0, 8, 0.7), (0.05, 10, 0.01)])
@pytest.mark.parametrize("direction", list(Direction))
def test_the_dominating_pair_is_the_mixture_of_every_sequence(epsilon, steps, rate, direction):
    pair = dominating_pair(SampledPure(epsilon, steps, rate), direction)
    for at in (0.0, 0.01, 0.2, 1.0):
        exact = 0.0
        for joined, apart in outcomes(epsilon, steps):
            mixed = (1 - rate) * apart + rate * joined
            upper, lower = (mixed, apart) if direction is Direction.REMOVE else (apart, mixed)
            exact += max(0.0, upper - math.exp(at) * lower)
        assert pair.hockey_stick(np.array([at]))[0] == pytest.approx(exact, abs=1e-12)
    order = 3.0
    total = 0.0
    for joined, apart in outcomes(epsilon, steps):
        mixed = (1 - rate) * apart + rate * joined
        upper, lower = (mixed, apart) if direction is Direction.REMOVE else (apart, mixed)
        total += upper**order * lower ** (1 - order)
    assert pair.cumulant(order - 1) == pytest.approx(math.log(total))


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_a_sampled_step_costs_its_amplified_epsilon(rate):
    amplified = math.log(1 + rate * (math.e - 1))
    assert cost(Repeat(40, Poisson(rate, Pure(1.0)))).epsilon == pytest.approx(cost(Pure(amplified, 40)).epsilon)


def test_sampling_once_for_many_steps_mixes_after_composing():
    epsilon, steps, rate = 0.1, 100, 0.013
    claimed = cost(Poisson(rate, Pure(epsilon, steps)))
    pairs = [dominating_pair(SampledPure(epsilon, steps, rate), direction) for direction in Direction]
    exact = max(brentq(lambda e, p=pair: p.hockey_stick(np.array([e]))[0] - DELTA, 0, 20) for pair in pairs)
    assert exact <= claimed.epsilon <= 1.015 * exact + 0.005
    wrong = cost(Pure(math.log1p(rate * math.expm1(epsilon)), steps)).epsilon
    assert claimed.epsilon > 1.2 * wrong, "amplifying step by step is not what a sample kept for all steps costs"


@pytest.mark.parametrize("rho", [0.001, 0.1, 2.0])
def test_zcdp_is_charged_above_the_gaussian_that_it_may_be_and_not_by_much(rho):
    claimed = cost(Repeat(4, ZCDP(rho / 4)))
    sigma = 1 / math.sqrt(2 * rho)

    def gaussian_delta(e):
        return norm.cdf(0.5 / sigma - e * sigma) - math.exp(e) * norm.cdf(-0.5 / sigma - e * sigma)

    exact = brentq(lambda e: gaussian_delta(e) - DELTA, 0, 100)
    assert exact < claimed.epsilon < 1.25 * exact
    assert claimed.epsilon < rho + 2 * math.sqrt(rho * math.log(1 / DELTA)), "the textbook conversion is looser"
    assert (claimed.accountant, claimed.check_accountant) == ("zcdp", "rdp")


def test_zcdp_never_enters_a_privacy_loss_distribution_but_adds_up():
    both = cost(Gaussian(5.0), ZCDP(0.01))
    halves = (cost(event, delta=DELTA / 2).epsilon for event in (Gaussian(5.0), ZCDP(0.01)))
    assert both.epsilon == pytest.approx(sum(halves))
    assert both.accountant == "prv + zcdp"


def test_what_no_accountant_bounds_is_refused():
    with pytest.raises(AccountingError):
        cost(Poisson(0.1, ZCDP(0.01)))
    for nothing in (Pure(500.0), Laplace(1e-3)):
        with pytest.raises(AccountingError, match="promises nothing"):
            cost(nothing)


# What an event claims of a sample, held against an explicit pair of distributions that is mixed by the rate.
#
# The price of T steps with everybody in them is taken as true. Whatever is claimed for the same steps on one sample of
# rate q must then cover the mixture of that pair: amplifying each step of a kept sample, or the rate twice, does not.

SMALL_DELTA = 1e-6
STEPS, RATES = (1, 20), (0.02, 0.3, 0.7)
PRIVATE = [name for name in mechanism_names() if name not in ("public", "non-private")]


def mixed(losses: np.ndarray, log_without: np.ndarray, rate: float) -> float:
    """Epsilon at SMALL_DELTA of removing a unit, for outcomes with these losses and probabilities without it."""
    loss = np.logaddexp(math.log1p(-rate), math.log(rate) + losses)

    def excess(epsilon: float) -> float:
        above = loss > epsilon
        if not above.any():
            return -SMALL_DELTA
        with_unit = logsumexp((log_without + loss)[above])
        return float(np.exp(with_unit) - np.exp(epsilon + logsumexp(log_without[above]))) - SMALL_DELTA

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, float(loss.max())))


def responses(eta: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """T rounds of randomised response whose loss a round is +-eta."""
    truthful = np.arange(steps + 1)
    return eta * (2.0 * truthful - steps), binom.logpmf(truthful, steps, expit(-eta))


def gaussian(multiplier: float) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian release, on a grid of outcomes fine enough for a lower bound."""
    edges = np.linspace(-9.0, 9.0 + 1 / multiplier, 40_001)
    without = np.diff(norm.cdf(edges))
    with_unit = np.diff(norm.cdf(edges, loc=1 / multiplier))
    kept = (without > 0) & (with_unit > 0)
    return np.log(with_unit[kept] / without[kept]), np.log(without[kept])


def pair(event: PrivacyEvent, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of the demonstration when everybody joins: losses, and log-probabilities without the unit."""
    primitives = normal_form([event]).primitives
    [kind] = {type(primitive) for primitive, _ in primitives}
    if kind is SampledGaussian:
        return gaussian(1 / math.sqrt(sum(count / each.noise_multiplier**2 for each, count in primitives)))
    if kind is SampledPure:
        [(each, count)] = primitives
        return responses(each.epsilon, each.steps * count)
    assert kind is Concentrated
    [(each, count)] = primitives
    # Bounded range: one half of it up, one half down, is a pair that every such price allows.
    return responses(math.sqrt(8 * each.rho * count / steps) / 2, steps)


def covers(event, steps: int, rate: float) -> bool:
    """Whether the claim of T steps on a sample is at least what the mixed pair costs."""
    losses, log_without = pair(event(steps, 1.0), steps)
    claimed = claim(Composed("dataset", (("all", (event(steps, rate),)),)), SMALL_DELTA).epsilon
    return claimed >= mixed(losses, log_without, rate) * (1 - 1e-3) - 1e-6


def made(name: str):
    """A mechanism for whose demonstrations epsilon is neither tiny nor in the hundreds."""
    values = {
        "gaussian": {"noise_multiplier": 3.0},
        "noisy-max": {"step_epsilon": 0.5},
        "adadpsyn": {"sigma1": 20.0, "sigma0": 40.0, "sigma2": 40.0},
        "blended-logits": {"temperature": 1.0, "clip": 10.0},
        "difference-clipping": {"temperature": 1.0, "clip": 2.0},
        "svt-public": {"token_epsilon": 1.0},
    }
    return mechanism_class(name)(**values.get(name, {}))


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", PRIVATE)
def test_a_sampled_event_covers_the_mixture_of_its_steps(name, steps, rate):
    plan = SamplingPlan(Scheme.PER_DEMONSTRATION, rows_per_token=20)
    mechanism = made(name)
    if mechanism.closed(plan):
        return
    assert covers(mechanism.for_plan(plan).event, steps, rate)
