"""Perplexity: how surprised a second model is by each further token of texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import LanguageModel
from mechanisms.inference.prompts import first_tokens
from research.texts import log_likelihoods

MAX_TOKENS = 128
"""The most tokens of a text; the rest is ignored."""


def perplexity(model: LanguageModel, texts: Sequence[str]) -> float:
    """exp of the mean negative log-probability of the texts' tokens after each text's first one, without a prompt.

    Raises:
        UsageError: no text has two tokens.
        ModelUnavailable: the model's logits are not finite.
    """
    rows = [first_tokens(model, text, MAX_TOKENS) for text in texts]
    counted = sum(len(row) - 1 for row in rows if len(row) > 1)
    if not counted:
        raise UsageError("Perplexity needs a text of at least two tokens.")
    total = float(log_likelihoods(model, model.encode("\n"), [row for row in rows if row], 1).sum())
    if not math.isfinite(total):
        raise ModelUnavailable("The model gives no usable logits for these texts: choose another --model.")
    return math.exp(-total / counted)
