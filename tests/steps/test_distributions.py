"""What mechanisms share: an order of candidates."""

from __future__ import annotations

from itertools import islice

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.steps.distributions import descending

_VALUES = st.lists(st.sampled_from([-np.inf, 0.0, 0.5, 1.0, 2.0]), max_size=40)  # many are equal


@given(_VALUES, st.integers(1, 50))
def test_the_largest_come_first_and_of_equal_ones_the_earlier(values, first):
    order = list(descending(np.array(values), first))
    assert order == sorted(range(len(values)), key=lambda place: (-values[place], place))


@given(_VALUES, st.integers(1, 50))
def test_some_are_the_beginning_of_all(values, first):
    given = np.array(values)
    assert list(islice(descending(given, first), 3)) == list(descending(given))[:3]
