"""Noise of the right scale, samples that are drawn as they are accounted, and what a plan's public numbers cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2, kstest, norm

from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.privacy_events import Approximate, Gaussian, Poisson, Repeat
from mechanisms.sampling import CAPACITY_SHARE, SamplingPlan, Scheme, role_place, seat_in_slots, seat_in_subsets
from mechanisms.steps.gaussian import GaussianMechanism

DRAWS = 4000
FALSE_ALARM = 1e-9


def test_discrete_gaussian_has_the_scale_asked_for():
    scale = 1000.0
    noise = SecureRandomness().gaussian(np.zeros(20_000, dtype=np.int64), scale)
    assert kstest(noise / scale, norm.cdf).pvalue > FALSE_ALARM


def test_noise_is_added_to_the_values():
    values = np.array([10**12, -(10**12), 0], dtype=np.int64)
    noisy = SecureRandomness().gaussian(values, 5.0)
    assert (np.abs(noisy - values) < 100).all()


def test_noise_is_never_reused():
    zeros = np.zeros(64, dtype=np.int64)
    first, second = (SecureRandomness().gaussian(zeros, 2.0**30) for _ in range(2))
    assert (first != second).all()


def test_uniform_draws_are_uniform_and_open():
    draws = SecureRandomness().uniform(20_000)
    assert kstest(draws, "uniform").pvalue > FALSE_ALARM
    assert draws.min() > 0
    assert draws.max() < 1


# The sample that is drawn is the sample that is accounted.


@pytest.mark.parametrize(("population", "rate"), [(40, 0.5), (40, 0.05), (3, 0.9), (1, 0.3)])
def test_every_unit_joins_independently_with_the_rate(population, rate):
    randomness = SecureRandomness()
    joined = np.zeros((DRAWS, population), dtype=bool)
    for row in joined:
        row[randomness.poisson_sample(population, rate)] = True
    expected = DRAWS * rate
    statistic = ((joined.sum(axis=0) - expected) ** 2 / (expected * (1 - rate))).sum()
    assert statistic < chi2.isf(FALSE_ALARM, population)
    sizes = np.bincount(joined.sum(axis=1), minlength=population + 1)
    probabilities = binom.pmf(np.arange(population + 1), population, rate)
    likely = DRAWS * probabilities > 5
    deviation = ((sizes - DRAWS * probabilities) ** 2 / (DRAWS * probabilities))[likely].sum()
    assert deviation < chi2.isf(FALSE_ALARM, int(likely.sum()))


@given(st.integers(0, 500), st.floats(1e-6, 1.0), st.integers(0, 2**32))
def test_positions_are_distinct_sorted_and_in_range(population, rate, seed):
    sample = SeededRandomness(seed).poisson_sample(population, rate)
    assert (np.diff(sample) > 0).all()
    assert len(sample) == 0 or (sample[0] >= 0 and sample[-1] < population)


def test_rate_one_takes_everybody_and_no_population_nobody():
    assert SecureRandomness().poisson_sample(7, 1.0).tolist() == list(range(7))
    assert SecureRandomness().poisson_sample(0, 0.5).tolist() == []


def test_the_cost_is_that_of_the_sample():
    class Counting(SeededRandomness):
        drawn = 0

        def uniform(self, count):
            self.drawn += count
            return super().uniform(count)

    randomness = Counting(3)
    randomness.poisson_sample(10**8, 1e-6)
    assert randomness.drawn < 1000


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=30), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=50)
def test_unit_rows_hold_one_unit_each_or_overflow(units, capacity, seed):
    seating = seat_in_slots(np.array(units, dtype=np.int64), capacity, SeededRandomness(seed))
    assert len(seating.rows) == capacity
    assert seating.overflow == (len(units) > capacity)
    if not seating.overflow:
        assert sorted(unit for row in seating.rows for unit in row) == sorted(units)
        assert all(len(row) <= 1 for row in seating.rows)


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=30), st.integers(1, 10), st.integers(0, 2**32))
@settings(max_examples=50)
def test_subsets_seat_every_unit_exactly_once(units, subsets, seed):
    seating = seat_in_subsets(np.array(units, dtype=np.int64), subsets, SeededRandomness(seed))
    assert len(seating.rows) == subsets
    assert sorted(unit for row in seating.rows for unit in row) == sorted(units)


def test_seats_are_uniform():
    counts = np.zeros(8)
    for _ in range(DRAWS):
        seating = seat_in_slots(np.array([5]), 8, SecureRandomness())
        counts[next(i for i, row in enumerate(seating.rows) if row)] += 1
    assert ((counts - DRAWS / 8) ** 2 / (DRAWS / 8)).sum() < chi2.isf(FALSE_ALARM, 7)


# A unit's place is uniform, its own, and of that unit alone.

KEY = b"k" * 32


def test_places_are_uniform_and_change_with_the_key():
    places = np.array([[role_place(key, [f"row {i}"]) for i in range(4000)] for key in (KEY, b"l" * 32)])
    assert places.min() >= 0
    assert places.max() < 1
    counts = np.histogram(places[0], bins=10, range=(0, 1))[0]
    assert ((counts - 400) ** 2 / 400).sum() < chi2.isf(1e-9, 9)
    assert abs(np.corrcoef(places)[0, 1]) < 0.1


def test_equal_rows_have_places_of_their_own():
    assert len({role_place(KEY, ["text", "label", str(copy)]) for copy in range(1000)}) == 1000


@given(*[st.lists(st.text("a1:,\x1f\0", max_size=4), max_size=3)] * 2)
def test_only_the_same_identity_has_the_same_place(one, other):
    assert (role_place(KEY, one) == role_place(KEY, other)) == (one == other)


# The plan's events and capacities follow from its public numbers.

EVENT = GaussianMechanism(4.0).event


def test_per_token_composes_tokens_times_shots():
    plan = SamplingPlan(Scheme.PER_TOKEN, rows_per_token=10, per_subset=2, unit_rows=False, tokens=30, written=3)
    assert plan.label_events(EVENT, 0.1) == (Repeat(90, Poisson(0.1, Gaussian(4.0))),)
    assert plan.demonstration_events(EVENT, 0.1) == (Repeat(30, Poisson(0.1, Gaussian(4.0))),)


def test_per_demonstration_samples_a_stronger_gaussian_once_a_shot():
    plan = SamplingPlan(Scheme.PER_DEMONSTRATION, tokens=16, written=3)
    assert plan.label_events(EVENT, 0.1) == (Repeat(3, Poisson(0.1, Gaussian(1.0))),)


def test_labels_are_parallel_for_records_and_sequential_for_users():
    plan = SamplingPlan(rows_per_token=10)
    sizes = {"a": 100, "b": 200}
    parallel, sequence = plan.compose(EVENT, sizes, 1e-5), plan.compose(EVENT, sizes, 1e-5, labels_in_parallel=False)
    assert [name for name, _ in parallel] == ["a", "b"]
    assert sum(len(events) for _, events in parallel) == len(sequence.lists[0][1])


@given(st.integers(1, 5000), st.integers(1, 400), st.floats(1e-8, 1e-3), st.integers(1, 5))
def test_capacity_is_the_least_that_its_share_of_delta_pays_for(size, subsets, delta, shots):
    plan = SamplingPlan(rows_per_token=subsets, written=shots)
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
        {"rows_per_token": 0},
        {"tokens": 0},
        {"written": 0},
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
    plan = SamplingPlan(scheme, rows_per_token=subsets, tokens=3, written=shots, share=share)
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
    plan, size, delta = SamplingPlan(rows_per_token=80, share=0.1), 1000, 1e-5
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
    plan = SamplingPlan(rows_per_token=200, share=0.1)
    capacity, overflow = plan.capacity(1000, 1e-5)
    assert plan.rate(1000) == 1
    assert 100 < capacity < 200
    assert 0 < overflow <= CAPACITY_SHARE * 1e-5
    assert plan.overflow_allowed(1.0, 1e-5) == (Approximate(CAPACITY_SHARE * 1e-5),)
    assert SamplingPlan(rows_per_token=200).overflow_allowed(1.0, 1e-5) == ()


def test_a_share_of_the_units_is_sampled_like_a_label_of_that_size():
    part, whole = SamplingPlan(rows_per_token=10, written=2, share=0.25), SamplingPlan(rows_per_token=10, written=2)
    assert part.rate(1000) == whole.rate(250)
    assert part.rate(20) == 1
    assert SamplingPlan(rows_per_token=10, unit_rows=False, share=0.25).capacity(1000, 1e-5) == (10, 0.0)
