"""The sample that is drawn is the sample that is accounted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.sampling import role_place, seat_in_slots, seat_in_subsets

DRAWS = 4000
FALSE_ALARM = 1e-9


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
