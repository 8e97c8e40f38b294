"""MAUVE on planted collections, where its package is installed."""

from __future__ import annotations

import numpy as np
import pytest

from research.measures import likeness

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not likeness.can_compare(), reason="requirements-mauve.txt is not installed"),
]


def collection(seed, centre):
    drawn = np.random.default_rng(seed).normal(size=(200, 8)) * 0.05 + np.eye(8)[centre]
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def test_the_same_is_alike_and_the_disjoint_is_not():
    first = collection(0, 0)
    assert likeness.mauve(first, first) == pytest.approx(1)
    assert likeness.mauve(first, collection(1, 0)) > 0.8
    assert likeness.mauve(first, collection(1, 1)) < 0.1


def test_half_of_a_kind_lies_between_and_the_figure_repeats():
    first = collection(0, 0)
    mixed = np.concatenate([collection(1, 0)[:100], collection(2, 1)[:100]])
    found = likeness.mauve(first, mixed)
    assert 0.1 < found < 0.8
    assert likeness.mauve(first, mixed) == found
