"""Privacy costs in few digits, rounded to the side on which nothing is promised too much."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_DIGITS = 3


def spent(value: float) -> str:
    """A cost: no smaller than it is."""
    return _rounded(value, ROUND_CEILING)


def left(value: float) -> str:
    """What is left of a cap: no larger than it is."""
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, rounding: str) -> str:
    return f"{float(Context(prec=_DIGITS, rounding=rounding).plus(Decimal(value))):g}"
