"""Pure steps, their sampled compositions and zCDP: accountants against sums that can be written out."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, norm

from mechanisms.accounting import claim
from mechanisms.accounting.losses import Direction, dominating_pair
from mechanisms.accounting.normal_form import SampledPure, normal_form
from mechanisms.errors import AccountingError
from mechanisms.privacy_events import ZCDP, Composed, Gaussian, Poisson, Pure, Repeat

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
    assert pair.renyi(order) == pytest.approx(math.log(total) / (order - 1))


def composed_randomised_response(epsilon, count, delta):
    """Optimal composition of pure steps (Kairouz, Oh, Viswanath 2015), solved for epsilon."""
    k = np.arange(count + 1)
    joined, apart = (binom.pmf(k, count, 1 / (1 + math.exp(s * epsilon))) for s in (-1, 1))
    return brentq(lambda e: np.maximum(joined - math.exp(e) * apart, 0).sum() - delta, 0, count * epsilon)


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 500), (0.1, 60), (0.5, 30)])
def test_pure_steps_cost_their_optimal_composition(epsilon, count):
    exact = composed_randomised_response(epsilon, count, DELTA)
    claimed = cost(Pure(epsilon, count))
    assert exact <= claimed.epsilon <= 1.015 * exact + 0.005
    assert claimed.check == pytest.approx(exact, rel=0.01)
    assert cost(Repeat(count, Pure(epsilon))).epsilon == pytest.approx(claimed.epsilon)


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


def test_which_direction_costs_more_depends_on_epsilon():
    primitive = SampledPure(0.3, 10, 0.6)
    removing, adding = (dominating_pair(primitive, d).hockey_stick(np.array([-1.5, 1.5])) for d in Direction)
    assert removing[1] > adding[1]
    assert adding[0] > removing[0]


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
    with pytest.raises(AccountingError):
        cost(Poisson(0.1, Gaussian(2.0)), Poisson(0.1, Pure(0.1, 5)))
    with pytest.raises(AccountingError, match="promises nothing"):
        cost(Pure(500.0))


@given(st.floats(0.01, 3), st.integers(1, 30), st.floats(0.01, 1), st.floats(1, 1.5), st.integers(0, 5))
@settings(max_examples=50)
def test_what_dominates_costs_no_less(epsilon, steps, rate, factor, more):
    smaller = normal_form([Poisson(rate, Pure(epsilon, steps))])
    larger = normal_form([Poisson(min(1.0, rate * factor), Pure(epsilon * factor, steps + more))])
    if larger.dominates(smaller):
        [(one, m)], [(other, n)] = smaller.primitives, larger.primitives
        at = np.linspace(0, 3, 7)
        if m == n == 1:
            for direction in Direction:
                less, greater = (dominating_pair(p, direction).hockey_stick(at) for p in (one, other))
                assert (less <= greater + 1e-9).all()
    assert not normal_form([ZCDP(1.0)]).dominates(smaller)
