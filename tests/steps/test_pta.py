"""Plausible token amplification: equation 13, its limits, and that a row stays its unit's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax
from scipy.stats import chi2

from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.steps.distributions import choose, project_to_simplex
from mechanisms.steps.transforms import PlausibleTokenAmplification
from tests.steps.inputs import CANDIDATES, a_step, public_rows, rows

finite = st.lists(st.floats(-20, 20), min_size=CANDIDATES, max_size=CANDIDATES).map(np.array)
BOUNDED = settings(max_examples=60)


@given(row=finite, public=public_rows, alpha=st.floats(0, 3), base=st.booleans())
@BOUNDED
def test_it_is_equation_13_renormalised_for_each_row(row, public, alpha, base):
    step = a_step(row[None], public)
    [found] = PlausibleTokenAmplification(alpha=alpha, base=base).apply(step).probabilities()
    wanted = (softmax(step.base) if base else 1) * (softmax(row) / softmax(public)) ** alpha
    np.testing.assert_allclose(found, wanted / wanted.sum(), atol=1e-9)
    assert found.sum() == pytest.approx(1)


@given(several=st.lists(rows, min_size=2, max_size=5), public=public_rows, other=rows)
@BOUNDED
def test_a_row_is_transformed_from_itself_and_public_text_alone(several, public, other):
    transform, logits = PlausibleTokenAmplification(alpha=1.5), np.stack(several)
    changed = logits.copy()
    changed[-1] = other
    one, two = (transform.apply(a_step(each, public)).rows[:-1] for each in (logits, changed))
    np.testing.assert_array_equal(one, two)


def test_an_impossible_token_of_the_base_makes_no_row_infinite():
    step = a_step(np.zeros((1, 3)))
    step.base[0] = -np.inf
    assert np.isfinite(PlausibleTokenAmplification().apply(step).rows).all()


@given(public=public_rows, share=st.floats(0.05, 1))
@BOUNDED
def test_the_public_nucleus_is_the_smallest_that_holds_its_share(public, share):
    kept = PlausibleTokenAmplification(pta_top_p=share).narrow(public)
    probabilities = softmax(public)
    assert (np.diff(kept) > 0).all()
    assert probabilities[kept].sum() >= share - 1e-9
    # Added up in another order than the product's: where the least is below 1e-16, the others come to the whole share.
    assert probabilities[kept].sum() - probabilities[kept].min() < share + 1e-12
    assert set(probabilities[kept]) >= {probabilities.max()}


def test_the_base_row_is_asked_for_and_missed():
    assert PlausibleTokenAmplification().needs_base
    assert not PlausibleTokenAmplification(base=False).needs_base
    step = a_step(np.zeros((1, 3)))
    object.__setattr__(step, "base", None)
    with pytest.raises(UsageError, match="base row"):
        PlausibleTokenAmplification().apply(step)


# Decoding a released vector: projection against its definition, draws against their distribution.

VECTORS = arrays(np.float64, st.integers(1, 12), elements=st.floats(-5, 5))


@given(VECTORS, st.integers(0, 2**32))
def test_the_projection_is_the_nearest_probability_vector(vector, seed):
    projected = project_to_simplex(vector)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    distance = np.linalg.norm(projected - vector)
    others = np.random.default_rng(seed).dirichlet(np.ones(len(vector)), size=50)
    assert (np.linalg.norm(others - vector, axis=1) >= distance - 1e-9).all()


@given(VECTORS, st.integers(0, 2**32))
def test_temperature_zero_and_a_tiny_nucleus_take_the_largest(vector, seed):
    randomness = SeededRandomness(seed)
    assert choose(vector, 0.0, 1.0, randomness) == int(np.argmax(vector))
    assert vector[choose(vector, 1.0, 1e-9, randomness)] == pytest.approx(vector.max(), abs=1e-9)


def test_draws_follow_the_projected_distribution():
    shares, draws = np.array([0.5, 0.3, 0.2, -0.4]), 6000
    randomness = SeededRandomness(4)
    counts = np.bincount([choose(shares, 1.0, 1.0, randomness) for _ in range(draws)], minlength=4)
    assert counts[3] == 0
    expected = draws * shares[:3]
    assert ((counts[:3] - expected) ** 2 / expected).sum() < chi2.isf(1e-9, 2)


def test_a_nucleus_leaves_the_tail_out():
    shares = np.array([0.5, 0.3, 0.2])
    chosen = {choose(shares, 1.0, 0.7, SeededRandomness(i)) for i in range(200)}
    assert chosen == {0, 1}
