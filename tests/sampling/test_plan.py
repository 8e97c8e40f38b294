"""The plan's events and capacities follow from its public numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Approximate, Gaussian, Poisson, Repeat
from mechanisms.sampling import CAPACITY_SHARE, SamplingPlan, Scheme
from mechanisms.steps.gaussian import GaussianMechanism

EVENT = GaussianMechanism(4.0).event


def test_per_token_composes_tokens_times_shots():
    plan = SamplingPlan(Scheme.PER_TOKEN, subsets=10, per_subset=2, unit_rows=False, tokens=30, shots=3)
    assert plan.label_events(EVENT, 0.1) == (Repeat(90, Poisson(0.1, Gaussian(4.0))),)
    assert plan.demonstration_events(EVENT, 0.1) == (Repeat(30, Poisson(0.1, Gaussian(4.0))),)


def test_per_demonstration_samples_a_stronger_gaussian_once_a_shot():
    plan = SamplingPlan(Scheme.PER_DEMONSTRATION, tokens=16, shots=3)
    assert plan.label_events(EVENT, 0.1) == (Repeat(3, Poisson(0.1, Gaussian(1.0))),)


def test_labels_are_parallel_for_records_and_sequential_for_users():
    plan = SamplingPlan(subsets=10)
    sizes = {"a": 100, "b": 200}
    parallel, sequence = plan.compose(EVENT, sizes, 1e-5), plan.compose(EVENT, sizes, 1e-5, labels_in_parallel=False)
    assert [name for name, _ in parallel] == ["a", "b"]
    assert sum(len(events) for _, events in parallel) == len(sequence.lists[0][1])


@given(st.integers(1, 5000), st.integers(1, 400), st.floats(1e-8, 1e-3), st.integers(1, 5))
def test_capacity_is_the_least_that_its_share_of_delta_pays_for(size, subsets, delta, shots):
    plan = SamplingPlan(subsets=subsets, shots=shots)
    capacity, overflow = plan.capacity(size, delta)
    rate = plan.rate(size)
    assert overflow <= CAPACITY_SHARE * delta
    assert overflow >= shots * binom.sf(capacity - 1, size, rate) * (1 - 1e-9)
    if rate < 1:
        assert shots * binom.sf(capacity - 2, size, rate) > CAPACITY_SHARE * delta
        failures = [e for _, events in plan.compose(EVENT, {"a": size}, delta) for e in events[1:]]
        assert failures == ([Approximate(overflow)] if overflow else [])
    else:
        assert capacity > size


@pytest.mark.parametrize(
    "bad",
    [
        {"subsets": 0},
        {"tokens": 0},
        {"shots": 0},
        {"per_subset": 2, "unit_rows": True},
        {"share": 0.0},
        {"share": 1.1},
        {"share": float("nan")},
    ],
)
def test_impossible_plans_are_refused(bad):
    with pytest.raises(UsageError):
        SamplingPlan(**bad)


def overflow_of_a_role(plan, size, members, capacity):
    """The probability that a run overflows when so many units may join, by the union bound."""
    return plan.draws_per_label * binom.sf(capacity - 1, members, plan.rate(size))


@given(
    st.sampled_from(list(Scheme)),
    st.integers(1, 2000),
    st.integers(1, 200),
    st.floats(0.01, 0.99),
    st.floats(1e-8, 1e-2),
    st.integers(1, 5),
)
def test_a_capacity_holds_over_the_role_and_in_every_role_but_its_failure(scheme, size, subsets, share, delta, shots):
    plan = SamplingPlan(scheme, subsets=subsets, tokens=3, shots=shots, share=share)
    capacity, overflow = plan.capacity(size, delta)
    allowed = CAPACITY_SHARE * delta
    assert 0 <= overflow <= allowed
    members = np.arange(size + 1)
    given_role = overflow_of_a_role(plan, size, members, capacity)
    assert binom.pmf(members, size, share) @ np.minimum(given_role, 1) <= overflow * (1 + 1e-6)
    # A role stays from run to run: roles in which a run fails with more than its part must be rare by themselves.
    assert binom.pmf(members, size, share) @ (given_role > allowed) <= allowed / 2 * (1 + 1e-6)
    assert capacity <= size + 1
    failures = [e for _, events in plan.compose(EVENT, {"a": size}, delta) for e in events[1:]]
    assert failures == [Approximate(overflow)] * (len(failures) if overflow else 0)


def test_an_unlucky_role_overflows_the_quantile_of_both_coins_together_but_not_the_capacity():
    plan, size, delta = SamplingPlan(subsets=80, share=0.1), 1000, 1e-5
    assert plan.rate(size) == pytest.approx(0.8)
    capacity, _ = plan.capacity(size, delta)
    naive = int(binom.isf(CAPACITY_SHARE * delta, size, 0.08)) + 1
    unlucky = int(binom.isf(CAPACITY_SHARE * delta / 2, size, 0.1)) + 1
    randomness = SeededRandomness(1)
    joined = np.array([len(randomness.poisson_sample(unlucky, 0.8)) for _ in range(4000)])
    assert (naive, unlucky) == (133, 159)
    assert np.mean(joined >= naive) == pytest.approx(0.146, abs=0.03)
    assert not (joined >= capacity).any()
    assert overflow_of_a_role(plan, size, unlucky, capacity) <= CAPACITY_SHARE * delta


def test_where_all_of_a_role_join_only_the_role_can_overflow():
    plan = SamplingPlan(subsets=200, share=0.1)
    capacity, overflow = plan.capacity(1000, 1e-5)
    assert plan.rate(1000) == 1
    assert 100 < capacity < 200
    assert 0 < overflow <= CAPACITY_SHARE * 1e-5
    assert plan.overflow_allowed(1.0, 1e-5) == (Approximate(CAPACITY_SHARE * 1e-5),)
    assert SamplingPlan(subsets=200).overflow_allowed(1.0, 1e-5) == ()


def test_a_share_of_the_units_is_sampled_like_a_label_of_that_size():
    part, whole = SamplingPlan(subsets=10, shots=2, share=0.25), SamplingPlan(subsets=10, shots=2)
    assert part.rate(1000) == whole.rate(250)
    assert part.rate(20) == 1
    assert SamplingPlan(subsets=10, unit_rows=False, share=0.25).capacity(1000, 1e-5) == (10, 0.0)
