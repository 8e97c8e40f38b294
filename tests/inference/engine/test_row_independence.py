"""A row of the real model is the same to the bit whatever the other rows hold, and wherever it sits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from mechanisms.inference.engine.transformers_model import TransformersModel, best_device, best_dtype
from mechanisms.inference.models.catalogue import converted
from mechanisms.inference.models.listing import gguf_in_wheel

pytestmark = pytest.mark.slow
CAP = 20
ROWS = 7
COLUMNS = np.array([9, 300, 17, 4_000, 28])

tokens = st.integers(200, 40_000)
row = st.lists(tokens, max_size=CAP)
others = st.lists(st.tuples(row, tokens), min_size=ROWS - 1, max_size=ROWS - 1)


OWN = best_dtype(best_device())
"""What this machine computes in; the other one is for the night."""
OTHER = torch.bfloat16 if OWN is torch.float32 else torch.float32


@pytest.fixture(scope="module", params=[OWN, pytest.param(OTHER, marks=pytest.mark.nightly)], ids=str)
def model(request, embedded_model):
    if request.param is embedded_model.model.dtype:
        return embedded_model
    loaded = AutoModelForCausalLM.from_pretrained(converted(gguf_in_wheel()), dtype=request.param)
    return TransformersModel("embedded", "0", loaded, embedded_model.tokenizer)


def seen(model, mine, next_token, beside, place):
    """Everything that a session says of one row, among others."""
    batch = [*beside[:place], (mine, next_token), *beside[place:]]
    session = model.open([5, 6, 7], [tokens for tokens, _ in batch], CAP, 3)
    first = session.logits(COLUMNS)[place]
    session.advance([token for _, token in batch])
    told = session.logits()[place], session.logits(COLUMNS)[place], session.score([300, 301])[place]
    return first, *told, session.scores([[300, 301], [300, 302, 303], [400]])[place]


@settings(max_examples=6, derandomize=True)
@given(mine=row, next_token=tokens, beside=others, elsewhere=others, places=st.tuples(*[st.integers(0, ROWS - 1)] * 2))
def test_a_row_is_its_own(model, mine, next_token, beside, elsewhere, places):
    here = seen(model, mine, next_token, beside, places[0])
    there = seen(model, mine, next_token, elsewhere, places[1])
    for a, b in zip(here, there, strict=True):
        assert np.array_equal(a, b)


def test_the_comparison_can_fail(model):
    """Two rows that differ in one token differ in what is compared."""
    a, b = (seen(model, [300, 301, last], 9, [([], 9)] * (ROWS - 1), 0) for last in (302, 303))
    assert not any(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
