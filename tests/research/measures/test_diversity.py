"""Distinct-n by hand."""

from __future__ import annotations

import pytest

from research.measures.diversity import distinct


def test_by_hand():
    """a b a b, and b a: six words of two kinds, four pairs of two kinds, two triples of two kinds."""
    texts = ["A b a b", "b, a!"]
    assert [distinct(texts, n) for n in (1, 2, 3)] == [pytest.approx(2 / 6), pytest.approx(2 / 4), 1.0]


def test_no_run_goes_over_the_end_of_a_text():
    assert distinct(["a", "b"], 2) == 0.0
    assert distinct(["a b", "a b"], 2) == 0.5


def test_repetition_lowers_it():
    texts = ["one red apple", "two blue skies"]
    for n in (1, 2, 3):
        assert distinct(texts, n) == 1.0
        assert distinct(texts * 4, n) == 0.25


def test_nothing_is_not_diverse():
    assert distinct([], 1) == distinct([""], 1) == 0.0
