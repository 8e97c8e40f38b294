"""A unit's place is uniform, its own, and of that unit alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from mechanisms.sampling import keyed_place, role_place

KEY = b"k" * 32


def test_places_are_uniform_and_change_with_the_key():
    places = np.array([[role_place(key, [f"row {i}"]) for i in range(4000)] for key in (KEY, b"l" * 32)])
    assert places.min() >= 0
    assert places.max() < 1
    counts = np.histogram(places[0], bins=10, range=(0, 1))[0]
    assert ((counts - 400) ** 2 / 400).sum() < chi2.isf(1e-9, 9)
    assert abs(np.corrcoef(places)[0, 1]) < 0.1


def test_a_place_tells_nothing_of_those_of_other_purposes():
    roles = [role_place(KEY, [f"row {i}"]) for i in range(4000)]
    batches = [keyed_place(KEY, [f"row {i}"], "batch", 2**52) for i in range(4000)]
    assert abs(np.corrcoef(roles, batches)[0, 1]) < 0.1


def test_equal_rows_have_places_of_their_own():
    assert len({role_place(KEY, ["text", "label", str(copy)]) for copy in range(1000)}) == 1000


@given(*[st.lists(st.text("a1:,\x1f\0", max_size=4), max_size=3)] * 2)
def test_only_the_same_identity_has_the_same_place(one, other):
    assert (role_place(KEY, one) == role_place(KEY, other)) == (one == other)
