"""Plausible token amplification: equation 13, its limits, and that a row stays its unit's own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from mechanisms.errors import UsageError
from mechanisms.steps.transforms.pta import PlausibleTokenAmplification
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


@given(row=finite, public=public_rows)
@BOUNDED
def test_alpha_zero_ignores_the_private_row(row, public):
    step = a_step(row[None], public)
    np.testing.assert_allclose(
        PlausibleTokenAmplification(alpha=0.0).apply(step).probabilities()[0], softmax(step.base), atol=1e-12
    )
    without = PlausibleTokenAmplification(alpha=0.0, base=False).apply(step).probabilities()[0]
    np.testing.assert_allclose(without, 1 / CANDIDATES)


@given(public=public_rows, alpha=st.floats(0, 10))
@BOUNDED
def test_a_row_that_says_nothing_new_gives_the_base(public, alpha):
    step = a_step(public[None] + 3.0, public)
    found = PlausibleTokenAmplification(alpha=alpha).apply(step).probabilities()[0]
    np.testing.assert_allclose(found, softmax(step.base), atol=1e-9)


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
