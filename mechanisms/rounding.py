"""Figures for people: few digits, rounded towards the worse value, so that a bound stays a bound; and durations."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def rounded_up(bound: float, digits: int) -> str:
    """A cost, a rate or an upper bound with `digits` significant digits, rounded up.

    An epsilon of 1.00049 is not an epsilon of 1.
    """
    return _rounded(bound, digits, ROUND_CEILING)


def rounded_down(left: float, digits: int) -> str:
    """A remainder of a cap, a noise or a gain with `digits` significant digits, rounded down."""
    return _rounded(left, digits, ROUND_FLOOR)


def percent_up(share: float, decimals: int = 0) -> str:
    """A share in percent with `decimals` decimals, rounded up; below 1% with two significant digits.

    A quarter of a percent is not 0%.
    """
    percent = 100 * share
    if 0 < percent < 1 and not decimals:
        return f"{rounded_up(percent, 2)}%"
    return _percent(percent, decimals, ROUND_CEILING)


def percent_down(share: float, decimals: int = 0) -> str:
    """A share in percent with `decimals` decimals, rounded down."""
    return _percent(100 * share, decimals, ROUND_FLOOR)


def duration(seconds: float) -> str:
    """A rough duration in words. Minutes (half minutes for short durations) are rounded up, because the browser and
    other work also take time."""
    if seconds < 50:
        return f"about {max(5, 5 * round(seconds / 5))} seconds"
    if seconds < 75:
        return "about a minute"
    if seconds >= 5400:
        return f"about {seconds / 3600:.1f} hours"
    minutes = math.ceil(seconds / 30) / 2 if seconds <= 300 else math.ceil(seconds / 60)
    return f"about {minutes:g} minutes"


def exactly(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return "1 second" if whole == 1 else f"{whole} seconds"
    if whole >= 3600:
        return f"{whole / 3600:.1f} hours"
    rest = f" {exactly(whole % 60)}" if whole % 60 else ""
    return f"{whole // 60} minutes{rest}"


def _percent(percent: float, decimals: int, rounding: str) -> str:
    # Round to twelve digits first: 100 * .29 is slightly less than 29.
    stated = Context(prec=12).create_decimal(Decimal(repr(percent)))
    return f"{stated.quantize(Decimal(1).scaleb(-decimals), rounding=rounding):f}%"


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    # From the printed digits of a float, so that 0.1 stays 0.1.
    found = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(found):.{digits}g}"
