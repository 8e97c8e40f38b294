"""Perplexity in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechanisms.errors import ModelUnavailable, UsageError
from research.measures.perplexity import MAX_TOKENS, perplexity
from tests.toy_model import VOCABULARY, ToyModel

TEXTS = ["one red apple", "sky", "a longer text about nothing at all", "b"]


def test_a_model_that_knows_nothing_is_as_surprised_as_by_dice():
    assert perplexity(ToyModel(sharpness=0.0), TEXTS) == pytest.approx(VOCABULARY)


@pytest.mark.parametrize("busy", [1, 8, 1000])
def test_it_is_what_token_after_token_says(busy):
    """Side by side or alone: each token but the first of a text, after all that stands before it."""
    model = ToyModel(sharpness=1.5, busy=busy)
    total, count = 0.0, 0
    for text in TEXTS:
        tokens = model.encode(f" {text}")
        total += float(model.open(model.encode("\n"), [tokens[:1]], 1, len(tokens)).score(tokens[1:])[0])
        count += len(tokens) - 1
    assert perplexity(model, TEXTS) == pytest.approx(math.exp(-total / count))


def test_a_long_text_is_cut():
    model = ToyModel()
    text = "word " * MAX_TOKENS
    assert perplexity(model, [text]) == perplexity(model, [text[: MAX_TOKENS - 1]])


def test_no_tokens_have_no_perplexity():
    with pytest.raises(UsageError, match="two tokens"):
        perplexity(ToyModel(), [""])


def test_broken_logits_are_refused():
    with pytest.raises(ModelUnavailable):
        perplexity(ToyModel(sharpness=np.nan), TEXTS)
