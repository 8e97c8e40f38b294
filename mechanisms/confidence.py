"""The one confidence level of all intervals, in figures, sentences and files."""

from __future__ import annotations

from statistics import NormalDist

LEVEL = 0.95
"""The probability that the interval of an estimate contains the true value."""


def standard_errors() -> float:
    """The half-width of a normal interval, in standard errors."""
    return NormalDist().inv_cdf((1 + LEVEL) / 2)


def percent(level: float | None = None) -> str:
    """A level in words, by default the program's own: "95%"."""
    return f"{LEVEL if level is None else level:.0%}"
