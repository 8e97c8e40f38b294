"""How likely a model finds texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax

from mechanisms.inference import LanguageModel, Tokens
from mechanisms.noise import Floats


def log_likelihoods(model: LanguageModel, prefix: Tokens, rows: Sequence[Tokens], given: int) -> Floats:
    """Log-probability of each row's tokens behind its first `given`, at least one; 0 where there are none.

    Args:
        prefix: stands before every row.

    Returns:
        Shape (rows,); not finite where the model's logits are not.
    """
    order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
    held = max((len(row) for row in rows), default=given)
    size, found = model.rows_at_once(1, len(prefix) + held), np.zeros(len(rows))
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        found[batch] = _side_by_side(model, prefix, [rows[place] for place in batch], given)
    return found


def _side_by_side(model: LanguageModel, prefix: Tokens, rows: Sequence[Tokens], given: int) -> Floats:
    """A token further at each step; longest row first."""
    totals, longest = np.zeros(len(rows)), len(rows[0])
    if longest == given:
        return totals
    session = model.open(prefix, [row[:given] for row in rows], given, longest - given)
    left = len(rows)
    for place in range(given, longest):
        more = sum(len(row) > place for row in rows)
        if more < left:
            session.keep(range(more))
            left = more
        following = [row[place] for row in rows[:left]]
        with np.errstate(all="ignore"):  # what is not finite is the caller's to refuse
            totals[:left] += log_softmax(session.logits(), axis=1)[np.arange(left), following]
        if place < longest - 1:
            session.advance(following)
    return totals
