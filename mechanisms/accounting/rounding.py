"""Figures of a bound for people: with few digits, and never below the bound."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def rounded_up(bound: float, digits: int) -> str:
    """A bound on epsilon, delta or a factor in at most so many significant digits: the least such number above it.

    What is written is still true: an epsilon of 1.00049 is no epsilon of 1.
    """
    return _rounded(bound, digits, ROUND_CEILING)


def rounded_down(left: float, digits: int) -> str:
    """What is left of a cap, the same way: never more than there is."""
    return _rounded(left, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    # From the digits that a float is written with: what was typed as 0.1 stays 0.1.
    found = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(found):.{digits}g}"


def cost_in_words(epsilon: float, delta: float) -> str:
    """What something costs, never less than it does."""
    return f"epsilon {rounded_up(epsilon, 4)}, delta {rounded_up(delta, 2)}"
