"""Exact search: integers are the reference, and neither other rows nor extremes change a bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.queries.retrieval import GRID, on_grid, similarities

DIMENSIONS = 384


def unit_vectors(seed: int, rows: int, dimensions: int = DIMENSIONS):
    vectors = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def in_integers(rows, query):
    return (rows * GRID).astype(np.int64) @ (query * GRID).astype(np.int64) / GRID**2


@pytest.mark.parametrize("rows", [0, 1, 7, 5000])
def test_similarities_are_the_integers_ones(rows):
    points = on_grid(unit_vectors(1, rows + 1))
    assert np.array_equal(similarities(points[1:], points[0]), in_integers(points[1:], points[0]))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 200), st.floats(0, 12))
def test_no_bit_depends_on_the_other_rows(seed, place, others, spread):
    """Also for coordinates of very different sizes, where the order of a float sum shows."""
    scale = np.exp(np.random.default_rng(seed).uniform(-spread, 0, DIMENSIONS))
    vectors = unit_vectors(seed, others + 41) * scale
    points = on_grid((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))
    whole = similarities(points, points[0])
    kept = np.delete(np.arange(len(points)), [i for i in (place + 1, others) if i != place])
    assert np.array_equal(similarities(points[kept], points[0]), whole[kept])
    assert np.array_equal(whole, in_integers(points, points[0]))


@pytest.mark.parametrize("dimensions", [1, 4, 384, 4096])
def test_the_longest_partial_sums_fit_in_float32(dimensions):
    """All coordinates equal, so that every product has one sign; in 384 dimensions each is rounded up."""
    equal = on_grid(np.full((1, dimensions), dimensions**-0.5, np.float32))
    assert similarities(equal, equal[0]) == in_integers(equal, equal[0])
    assert np.sum((equal * GRID).astype(np.int64) ** 2) < 2**24


def test_rounding_moves_a_similarity_by_little():
    vectors = unit_vectors(3, 200)
    points = on_grid(vectors)
    # Each coordinate moves by at most half a step: Cauchy and Schwarz, twice.
    bound = 2 * np.sqrt(DIMENSIONS) / 2 / GRID + DIMENSIONS / 4 / GRID**2
    assert np.abs(similarities(points, points[0]) - vectors @ vectors[0]).max() <= bound


def test_coordinates_that_are_not_finite_count_as_zero():
    assert on_grid(np.array([[np.nan, np.inf, -np.inf, 1.0]], np.float32)).tolist() == [[0, 0, 0, 1]]
