"""Perplexity: how surprised a second model is by each further token of the texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import LanguageModel, Tokens
from mechanisms.inference.prompts import first_tokens

MAX_TOKENS = 128
"""Of a text; the rest is not read."""


def perplexity(model: LanguageModel, texts: Sequence[str]) -> float:
    """exp of the mean negative log-probability of the texts' tokens after each text's first one, without a prompt.

    Raises:
        UsageError: no text has two tokens.
        ModelUnavailable: the model's logits are not finite.
    """
    rows = [first_tokens(model, text, MAX_TOKENS) for text in texts]
    longest_first = sorted((row for row in rows if len(row) > 1), key=len, reverse=True)
    if not longest_first:
        raise UsageError("Perplexity needs a text of at least two tokens.")
    size = model.rows_at_once(1, MAX_TOKENS)
    batches = (longest_first[i : i + size] for i in range(0, len(longest_first), size))
    total = sum(_log_probability(model, batch) for batch in batches)
    if not math.isfinite(total):
        raise ModelUnavailable("The model gives no usable logits for these texts: choose another --model.")
    return math.exp(-total / sum(len(row) - 1 for row in longest_first))


def _log_probability(model: LanguageModel, rows: list[list[int]]) -> float:
    """Of all rows together, side by side, a token further at each step; longest row first."""
    session, total = model.open(_line_break(model), [row[:1] for row in rows], 1, len(rows[0])), 0.0
    for place in range(1, len(rows[0])):
        left = sum(len(row) > place for row in rows)
        if left < len(rows):
            rows = rows[:left]
            session.keep(range(left))
        following = [row[place] for row in rows]
        with np.errstate(all="ignore"):  # what is not finite is refused once, at the end
            total += float(log_softmax(session.logits(), axis=1)[np.arange(left), following].sum())
        if place < len(rows[0]) - 1:
            session.advance(following)
    return total


def _line_break(model: LanguageModel) -> Tokens:
    return model.encode("\n")
