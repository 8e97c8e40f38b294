"""As many of each label."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from research.measures.matching import matching

LABELS = st.lists(st.sampled_from("abc"), max_size=30)


@given(LABELS, LABELS)
def test_as_many_of_each_label_or_all(labels, like):
    chosen = matching(labels, like)
    assert chosen == sorted(set(chosen))
    assert Counter(labels[place] for place in chosen) == Counter(labels) & Counter(like)


def test_they_are_spread_over_the_file():
    """The first rows of a file may all be of one day."""
    assert matching(["a"] * 100, ["a"] * 4) == [0, 25, 50, 75]
