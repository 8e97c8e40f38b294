"""What an event claims of a sample, held against an explicit pair of distributions that is mixed by the rate.

The price of T steps with everybody in them is taken as true. Whatever is claimed for the same steps on one sample of
rate q must then cover the mixture of that pair: amplifying each step of a kept sample, or the rate twice, does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from scipy.stats import binom, norm

from mechanisms.accounting import claim
from mechanisms.accounting.normal_form import Concentrated, SampledGaussian, SampledPure, normal_form
from mechanisms.privacy_events import Composed, PrivacyEvent, Repeat
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.steps.difference_clipping import DifferenceClipping
from mechanisms.steps.softmax_draw import bounded_range_event

pytestmark = pytest.mark.slow

DELTA = 1e-6
STEPS, RATES = (1, 20), (0.02, 0.3, 0.7)
PRIVATE = [name for name in mechanism_names() if name not in ("public", "non-private")]


def mixed(losses: np.ndarray, log_without: np.ndarray, rate: float) -> float:
    """Epsilon at DELTA of removing a unit, for outcomes with these losses and probabilities without it."""
    loss = np.logaddexp(math.log1p(-rate), math.log(rate) + losses)

    def excess(epsilon: float) -> float:
        above = loss > epsilon
        if not above.any():
            return -DELTA
        with_unit = logsumexp((log_without + loss)[above])
        return float(np.exp(with_unit) - np.exp(epsilon + logsumexp(log_without[above]))) - DELTA

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
    claimed = claim(Composed("dataset", (("all", (event(steps, rate),)),)), DELTA).epsilon
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


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", PRIVATE)
def test_a_sampled_event_covers_the_mixture_of_its_steps(name, steps, rate):
    plan = SamplingPlan(Scheme.PER_DEMONSTRATION, subsets=20)
    mechanism = made(name)
    if mechanism.closed(plan):
        return
    assert covers(mechanism.for_plan(plan).event, steps, rate)


@dataclass(frozen=True)
class EachStepAmplified(DifferenceClipping):
    name: ClassVar[str] = "each step amplified"

    def event(self, steps, rate):
        return Repeat(steps, bounded_range_event(2 * self.clip / (self.batch * self.temperature), 1, rate))


@dataclass(frozen=True)
class RateTwice(DifferenceClipping):
    name: ClassVar[str] = "rate twice"

    def event(self, steps, rate):
        return super().event(steps, rate if rate == 1.0 else rate**2)


@pytest.mark.parametrize("cheat", [EachStepAmplified, RateTwice])
def test_what_claims_more_from_sampling_than_it_gives_is_found(cheat):
    plan = SamplingPlan(Scheme.PER_DEMONSTRATION, subsets=20)
    event = cheat(temperature=1.0, clip=2.0).for_plan(plan).event
    assert not all(covers(event, steps, rate) for steps in STEPS for rate in RATES)
