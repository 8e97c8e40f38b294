"""The radius of the ball that holds most rows at a token."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.records import Dataset, Record
from research.reproduction.radius import measured, radius
from research.runs import texts_written
from tests.runs.running import Speaking


@pytest.mark.parametrize("count", [2, 3, 10])
def test_corners_of_a_simplex_are_on_the_ball_around_their_middle(count):
    assert radius(np.eye(count), share=1.0) == pytest.approx(math.sqrt(1 - 1 / count), abs=1e-3)


def test_a_fifth_may_be_anywhere():
    points = np.zeros((10, 4))
    points[:8, 0] = [0.5, 0.52] * 4
    assert radius(points) == pytest.approx(0.01, abs=1e-3)
    points[7, 0] = 1.0
    assert radius(points) > 0.2


@given(st.integers(1, 12), st.integers(0, 2**31))
def test_it_is_between_the_smallest_ball_and_twice_that(count, seed):
    points = np.random.default_rng(seed).dirichlet([0.3] * 5, size=count)
    held, apart = math.ceil(0.8 * count), np.linalg.norm(points[:, None] - points[None], axis=2)
    least = np.sort(apart, axis=1)[:, held - 1].min() / 2  # a ball lies in one of twice its radius around its points
    assert least - 1e-12 <= radius(points) <= 2 * least + 1e-12


def test_every_token_of_the_gaussian_mechanism_is_measured_and_no_other():
    rows = [Record(f"Billing invoice {i}", "Billing") for i in range(40)]
    asked = {"shots": 1, "tokens": 3, "subsets": 10, "per_subset": 1, "max_record_tokens": 16, "epsilon": 8.0}
    data, model = Dataset("rows", ("Billing",), rows), Speaking()
    with measured() as found:
        texts_written(data, model, mechanism="gaussian", **asked)
    assert 1 <= len(found) <= 3
    assert all(0 <= each <= math.sqrt(2) for each in found)
    with measured() as none:
        texts_written(data, model, mechanism="non-private", **asked)
    assert none == []
