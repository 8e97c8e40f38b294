"""How sure an interval is: one level for all intervals, in figures, in sentences and in the files that hold them."""

from __future__ import annotations

from statistics import NormalDist

LEVEL = 0.95
"""With this probability the interval of an estimate holds what is estimated."""


def standard_errors() -> float:
    """Standard errors to either side of an estimate in an interval of the normal distribution."""
    return NormalDist().inv_cdf((1 + LEVEL) / 2)


def percent(level: float | None = None) -> str:
    """A level in words, the program's own if none is given: "95%"."""
    return f"{LEVEL if level is None else level:.0%}"
