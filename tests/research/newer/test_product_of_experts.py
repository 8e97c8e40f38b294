"""A token from a product of experts: how far a unit moves the draw, and what it costs; its name is for research."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax

import mechanisms.steps
from mechanisms.discovery import defined
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import ZCDP
from mechanisms.steps import TokenDistributions, mechanism_class, mechanism_names
from mechanisms.steps.distributions import GRID
from research.newer.steps import register
from research.newer.steps.product_of_experts import ProductOfExperts

TOKENS, ROWS = 4, 5
NUMBERS = st.floats(-40, 40) | st.sampled_from([math.nan, math.inf, -math.inf])
LOGITS = arrays(float, (ROWS, TOKENS), elements=NUMBERS)
EXPERTS = ProductOfExperts(temperature=0.3, clip=2.0, batch=ROWS)
ETA = EXPERTS.span / (ROWS * EXPERTS.temperature)


def seen(rows, public=(0.0,) * TOKENS):
    return TokenDistributions(np.array(rows), np.ones(len(rows), dtype=bool), np.array(public), ROWS, True)


def outcomes(distributions):
    """The exact logarithms of the probabilities with which the tokens are drawn."""
    return log_softmax(EXPERTS.aggregate(distributions) / (ROWS * EXPERTS.temperature * GRID))


@given(LOGITS)
def test_a_unit_moves_the_draw_by_no_more_than_it_costs(rows):
    losses = outcomes(seen(rows)) - outcomes(seen(rows[1:]))
    assert np.ptp(losses) <= ETA + 1e-9
    assert EXPERTS.event(1, 1.0) == ZCDP(ETA**2 / 8)


def test_a_unit_can_move_it_so_far_and_a_public_row_moves_nothing():
    sure = [[40.0, 0.0, 0.0, 0.0]]
    losses = outcomes(seen(sure)) - outcomes(seen(np.empty((0, TOKENS))))
    assert np.ptp(losses) == pytest.approx(ETA, rel=1e-6)
    rows = np.arange(TOKENS * ROWS, dtype=float).reshape(ROWS, TOKENS) % 7
    assert np.array_equal(outcomes(seen(rows)), outcomes(seen(rows, public=(9.0, 0.0, 3.0, 1.0))))


def test_without_noise_the_token_is_the_one_with_the_largest_product_of_probabilities():
    """Where nothing is clipped, sums of logits order tokens as products of the rows' own probabilities do."""
    rows = np.random.default_rng(5).uniform(-0.9, 0.9, (ROWS, TOKENS))
    sure = replace(EXPERTS, temperature=1e-6)
    drawn = sure.step(seen(rows), SeededRandomness(3)).index
    assert drawn == int(log_softmax(rows, axis=1).sum(axis=0).argmax())


def test_its_name_is_known_once_research_asks_for_it(monkeypatch):
    with pytest.raises(UsageError, match="no mechanism"):
        mechanism_class(ProductOfExperts.name)
    monkeypatch.setattr(mechanisms.steps, "__path__", list(mechanisms.steps.__path__))
    register()
    register()
    assert mechanism_names().count(ProductOfExperts.name) == 1
    monkeypatch.undo()
    defined.cache_clear()
    assert ProductOfExperts.name not in mechanism_names()
