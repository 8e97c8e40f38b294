"""Figures of a bound for people: with few digits, and never below the bound."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal


def rounded_up(bound: float, digits: int) -> str:
    """A bound on epsilon, delta or a factor in at most so many significant digits: the least such number above it.

    What is written is still true: an epsilon of 1.00049 is no epsilon of 1.
    """
    if not math.isfinite(bound):
        return f"{bound:g}"
    # From the digits that a float is written with: what was typed as 0.1 stays 0.1.
    least = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(float(bound))))
    return f"{float(least):.{digits}g}"


def cost_in_words(epsilon: float, delta: float) -> str:
    """What something costs, never less than it does."""
    return f"epsilon {rounded_up(epsilon, 4)}, delta {rounded_up(delta, 2)}"
