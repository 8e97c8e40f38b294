"""The plan's events and capacities follow from its public numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from mechanisms.errors import UsageError
from mechanisms.privacy_events import Approximate, Gaussian, Poisson, Repeat
from mechanisms.sampling import SamplingPlan, Scheme, keyed_place
from mechanisms.sampling.plan import CAPACITY_SHARE
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


def test_subsets_have_exactly_m_rows_and_no_overflow():
    assert SamplingPlan(subsets=10, per_subset=4, unit_rows=False).capacity(1000, 1e-5) == (10, 0.0)


@pytest.mark.parametrize("bad", [{"subsets": 0}, {"tokens": 0}, {"shots": 0}, {"per_subset": 2, "unit_rows": True}])
def test_impossible_plans_are_refused(bad):
    with pytest.raises(UsageError):
        SamplingPlan(**bad)


def test_disjoint_batches_compose_in_parallel_and_are_not_amplified():
    plan = SamplingPlan(Scheme.DISJOINT, subsets=10, tokens=16, shots=3)
    event = plan.compose(EVENT, {"a": 100}, 1e-5)
    assert [name for name, _ in event] == ["a 1", "a 2", "a 3"]
    assert all(events[0] == Gaussian(1.0) for _, events in event)
    assert plan.batches(100) == 10


def test_keyed_places_are_uniform_and_change_with_the_key():
    places = [[keyed_place(key, [f"row {i}"], "batch", 8) for i in range(4000)] for key in (b"k" * 32, b"l" * 32)]
    counts = np.bincount(places[0], minlength=8)
    assert ((counts - 500) ** 2 / 500).sum() < chi2.isf(1e-9, 7)
    assert np.mean(np.equal(*places)) < 0.2
