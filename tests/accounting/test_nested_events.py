"""Laplace releases, and events that nest: accountants against closed forms, integrals and each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from mechanisms.accounting import claim
from mechanisms.accounting.losses import Direction, directions
from mechanisms.accounting.normal_form import (
    SampledGaussian,
    SampledLaplace,
    SampledPure,
    dominates,
    normal_form,
    pure_epsilon,
)
from mechanisms.accounting.prv import LaplaceLoss
from mechanisms.accounting.rdp import divergence, renyi, to_epsilon
from mechanisms.errors import AccountingError, UsageError
from mechanisms.privacy_events import (
    ZCDP,
    Approximate,
    Composed,
    Gaussian,
    Laplace,
    Poisson,
    Pure,
    Repeat,
    SequentialComposition,
    from_json,
)

pytestmark = pytest.mark.slow

DELTA = 1e-5
SAMPLED = [(1.0, 0.1), (0.4, 0.02), (3.0, 0.6), (0.2, 0.3)]


def one(*events):
    return Composed("label", (("only", tuple(events)),))


def densities(scale, rate, direction):
    """Of the released value: where it is drawn from, and of the neighbour."""

    def without(x):
        return math.exp(-abs(x) / scale) / (2 * scale)

    def with_unit(x):
        return (1 - rate) * without(x) + rate * without(x - 1)

    return (with_unit, without) if direction is Direction.REMOVE else (without, with_unit)


def integral(function, scale):
    """Over the real line, split where the densities have corners."""
    ends = [-40 * scale, 0.0, *np.linspace(0, 1, 41)[1:], 1 + 40 * scale]
    return sum(quad(function, low, high, epsabs=1e-14, limit=200)[0] for low, high in itertools.pairwise(ends))


def hockey_stick(scale, rate, direction, epsilon):
    upper, lower = densities(scale, rate, direction)
    return integral(lambda x: max(0.0, upper(x) - math.exp(epsilon) * lower(x)), scale)


@pytest.mark.parametrize(("scale", "rate"), SAMPLED)
def test_a_sampled_laplace_release_costs_the_worse_direction_of_its_integral(scale, rate):
    exact = max(
        brentq(lambda e, d=each: hockey_stick(scale, rate, d, e) - DELTA, 0, 1 / scale, xtol=1e-6) for each in Direction
    )
    found = claim(one(Poisson(rate, Laplace(scale))), DELTA)
    assert exact - 1e-6 <= found.epsilon <= 1.01 * exact + 0.006
    assert found.check == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize(("scale", "rate"), [*SAMPLED, (0.7, 1.0)])
@pytest.mark.parametrize("direction", list(Direction))
def test_the_loss_has_the_distribution_of_the_log_ratio(scale, rate, direction):
    loss = LaplaceLoss(SampledLaplace(scale, rate), direction)
    upper, lower = densities(scale, rate, direction)

    def log_ratio(x):
        return math.log(upper(x) / lower(x))

    low, high = sorted((log_ratio(0.0), log_ratio(1.0)))
    for at in (low - 0.01, low + 1e-9, 0.3 * low + 0.7 * high, 0.8 * low + 0.2 * high, high - 1e-9, high + 0.01):
        below = integral(lambda x, at=at: upper(x) if log_ratio(x) <= at else 0.0, scale)
        assert float(loss.cdf(np.array(at))) == pytest.approx(below, abs=2e-4)
    mean = integral(lambda x: upper(x) * log_ratio(x), scale)
    assert loss.mean_within(low - 1, high + 1) == pytest.approx(mean, rel=1e-8, abs=1e-12)
    cut = 0.4 * low + 0.6 * high
    kept = integral(lambda x: upper(x) * log_ratio(x) if log_ratio(x) <= cut else 0.0, scale)
    assert loss.mean_within(low - 1, cut) == pytest.approx(kept / float(loss.cdf(np.array(cut))), abs=1e-3)
    for order in (1.5, 4.0, 64.0):
        exact = math.log(integral(lambda x, a=order: upper(x) * math.exp((a - 1) * log_ratio(x)), scale)) / (order - 1)
        assert loss.rdp(order) == pytest.approx(exact, rel=1e-6)


def test_accountants_agree_on_random_laplace_settings_under_a_bound_that_anybody_can_compute():
    generator = np.random.default_rng(5)
    for _ in range(12):
        scale, rate = float(10 ** generator.uniform(-0.7, 1.3)), float(10 ** generator.uniform(-2.5, 0))
        count, delta = int(generator.integers(1, 60)), float(10 ** generator.uniform(-8, -4))
        event = Repeat(count, Laplace(scale) if rate > 0.7 else Poisson(rate, Laplace(scale)))
        found = claim(one(event, Pure(0.05, 3)), delta)
        assert found.check == pytest.approx(found.epsilon, rel=0.02, abs=0.001), (scale, rate, count, delta)
        form = normal_form([event, Pure(0.05, 3)])
        bound = min(to_epsilon(renyi(form, order), order, delta) for order in 1 + np.geomspace(0.1, 200, 40))
        assert found.epsilon <= min(1.02 * bound, form.pure_epsilon)


def test_pure_lists_claim_no_more_than_their_plain_sum():
    few = claim(one(Pure(0.5, 2), Laplace(2.0)), DELTA)
    assert few.epsilon == pytest.approx(1.5)
    assert few.accountant == "sum of pure epsilons"
    assert few.check == pytest.approx(1.5, rel=0.01)
    sampled = claim(one(Poisson(0.1, Pure(0.5, 4))), 1e-9)
    assert sampled.epsilon <= math.log1p(0.1 * math.expm1(2.0))
    many = claim(one(Pure(0.01, 1000)), DELTA)
    assert many.epsilon < 5
    assert many.accountant == "prv"
    assert claim(one(Pure(0.5, 2), Gaussian(50.0)), DELTA).accountant == "prv"


def test_a_sequence_that_is_not_sampled_is_its_parts():
    parts = (Gaussian(3.0), Pure(0.1, 2), Laplace(5.0), Approximate(1e-7), ZCDP(0.01))
    assert normal_form([SequentialComposition(parts)]) == normal_form(parts)
    nested = Repeat(3, SequentialComposition((Gaussian(3.0), Repeat(2, SequentialComposition((Pure(0.1),))))))
    assert normal_form([nested]) == normal_form([Repeat(3, Gaussian(3.0)), Pure(0.1, 6)])


@given(st.lists(st.tuples(st.floats(0.5, 20), st.integers(1, 9)), min_size=1, max_size=4), st.floats(0.01, 1))
@settings(max_examples=50)
def test_gaussians_on_one_sample_are_one_gaussian(releases, rate):
    form = normal_form([Poisson(rate, SequentialComposition(tuple(Repeat(n, Gaussian(m)) for m, n in releases)))])
    [(primitive, count)] = form.primitives
    assert count == 1
    assert primitive == SampledGaussian(pytest.approx(sum(n / m**2 for m, n in releases) ** -0.5), rate)


@given(st.lists(st.tuples(st.floats(0.05, 1), st.integers(1, 3)), min_size=1, max_size=3), st.floats(0.01, 0.9))
@settings(max_examples=30)
def test_pure_events_on_one_sample_cost_no_less_than_their_own_dominating_pair(releases, rate):
    form = normal_form([Poisson(rate, SequentialComposition(tuple(Pure(e, n) for e, n in releases)))])
    rounds = [epsilon for epsilon, count in releases for _ in range(count)]
    exact = 0.0  # delta at epsilon 0.2 of rounds of randomised response, mixed
    for truths in itertools.product((1, -1), repeat=len(rounds)):
        answers = [t * e for t, e in zip(truths, rounds, strict=True)]
        joined, apart = (math.prod(1 / (1 + math.exp(-s * each)) for each in answers) for s in (1, -1))
        exact += max(0.0, (1 - rate) * apart + rate * joined - math.exp(0.2) * apart)
    epsilon, steps = max(e for e, _ in releases), len(rounds)
    worse = sum(
        max(0.0, math.comb(steps, k) * ((1 - rate) * q + rate * p - math.exp(0.2) * q))
        for k in range(steps + 1)
        for p, q in [(_share(epsilon, k, steps), _share(-epsilon, k, steps))]
    )
    [(primitive, count)] = form.primitives
    assert isinstance(primitive, SampledPure)
    if steps > 1:
        assert (primitive, count) == (SampledPure(epsilon, steps, rate), 1)
    assert worse >= exact - 1e-12


def _share(epsilon, truthful, steps):
    return (1 + math.exp(-epsilon)) ** -truthful * (1 + math.exp(epsilon)) ** -(steps - truthful)


def test_what_is_composed_on_one_sample_costs_more_than_parts_on_samples_of_their_own():
    parts = (Gaussian(3.0), Gaussian(3.0), Gaussian(3.0))
    together = claim(one(Poisson(0.05, SequentialComposition(parts))), DELTA).epsilon
    apart = claim(one(*(Poisson(0.05, each) for each in parts)), DELTA).epsilon
    assert together > 1.1 * apart


@pytest.mark.parametrize(
    "of",
    [
        SequentialComposition((Gaussian(2.0), Pure(0.1))),
        SequentialComposition((Laplace(2.0), Laplace(2.0))),
        SequentialComposition((Pure(0.1), Approximate(1e-9))),
        Repeat(2, Laplace(2.0)),
        Poisson(0.5, Gaussian(2.0)),
        SequentialComposition((Repeat(10**6, Pure(1e-6, 10)), Pure(1e-6))),
    ],
)
def test_other_compositions_on_one_sample_are_refused_with_the_reason(of):
    with pytest.raises(AccountingError, match="dominating pair"):
        claim(one(Poisson(0.1, of)), DELTA)


def test_nested_events_survive_json():
    event = one(
        Repeat(3, Poisson(0.25, SequentialComposition((Pure(0.5, 2), Laplace(1.5))))),
        SequentialComposition((Gaussian(2.0),)),
    )
    assert from_json(event.to_json()) == event
    with pytest.raises(UsageError, match="at least one"):
        SequentialComposition(())


KINDS = [
    (SampledGaussian, lambda noise, _: (noise,)),
    (SampledLaplace, lambda noise, _: (noise,)),
    (SampledPure, lambda noise, steps: (1 / noise, steps)),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[0].__name__)
@given(st.floats(0.1, 20), st.floats(0.01, 1), st.floats(1, 1.5), st.floats(0.5, 1), st.integers(0, 5))
@settings(max_examples=30)
def test_what_dominates_costs_no_less(kind, noise, rate, more_noise, smaller, steps):
    of, values = kind
    greater, less = of(*values(noise, 6), rate), of(*values(noise * more_noise, 6 - steps), rate * smaller)
    assert dominates(greater, less)
    assert not dominates(less, greater) or greater == less
    assert not any(dominates(greater, other(*made(1.0, 1), rate)) for other, made in KINDS if other is not of)
    assert pure_epsilon(less) <= pure_epsilon(greater) * (1 + 1e-12)
    for direction, order in itertools.product(directions(greater), (1.5, 8.0)):
        assert divergence(less, direction, order) <= divergence(greater, direction, order) * (1 + 1e-9) + 1e-12
