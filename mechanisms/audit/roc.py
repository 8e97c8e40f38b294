"""How well a score tells members from others: points of its ROC curve, its area, and what a claim allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binomtest

from mechanisms import confidence
from mechanisms.errors import UsageError
from mechanisms.noise import Floats

LOW = 0.01
"""The false positive rate at which an attack is judged (Carlini et al. 2022): what it finds while it hardly errs."""
_RATES = (0.0, LOW, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
_LEAST = 2
_NEARLY = 1 - 1e-9

Interval = tuple[float, float]
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Roc:
    """What an attack reaches; exact values of private rows, for the curator alone.

    Attributes:
        members, others: how many were scored.
        points: (false positive rate, true positive rate) at some rates, each by the lowest threshold that keeps to it.
        curve: the same at every threshold, from (0, 0) to (1, 1); the area below it is `area`.
        area: probability that a member scores above another row, ties counted half.
        interval: of the area, at `confidence.LEVEL`.
        found: true positive rate at a false positive rate of `LOW`, and its interval.
    """

    members: int
    others: int
    points: Points
    curve: Points
    area: float
    interval: Interval
    found: float
    found_interval: Interval


def roc(members: Floats, others: Floats) -> Roc:
    """Compare the scores of members, shape (m,), with those of others, shape (n,); members should score higher.

    Raises:
        UsageError: fewer than two of either.
    """
    if min(len(members), len(others)) < _LEAST:
        raise UsageError("An attack needs at least two members and two other rows: give larger files.")
    below = np.sort(others)
    wins = np.searchsorted(below, members, "left") + np.searchsorted(below, members, "right")
    area = float(wins.mean()) / 2 / len(others)
    reached = [_above(members, below, rate) for rate in _RATES]
    found = reached[_RATES.index(LOW)]
    exact = binomtest(found, len(members)).proportion_ci(confidence.LEVEL, method="exact")
    return Roc(
        len(members),
        len(others),
        tuple((rate, count / len(members)) for rate, count in zip(_RATES, reached, strict=True)),
        _curve(members, others),
        area,
        _area_interval(area, len(members), len(others)),
        found / len(members),
        (float(exact.low), float(exact.high)),
    )


def _curve(members: Floats, others: Floats) -> Points:
    """Rates of all that score at least a threshold, for every score that was seen, highest first."""
    thresholds = np.unique(np.concatenate([members, others]))[::-1]
    wrong, right = (1 - np.searchsorted(np.sort(each), thresholds) / len(each) for each in (others, members))
    return ((0.0, 0.0), *zip(wrong.tolist(), right.tolist(), strict=True))


def _above(members: Floats, others: Floats, rate: float) -> int:
    """Members above the lowest threshold that at most a share `rate` of the others, sorted, lies above."""
    allowed = math.floor(rate * len(others))
    if allowed == len(others):
        return len(members)
    return int((members > others[len(others) - 1 - allowed]).sum())


def _area_interval(area: float, members: int, others: int) -> Interval:
    """By Newcombe 2006, method 5: Hanley and McNeil's variance at the bound, so that it is no point at an area of 1."""

    def lower(value: float) -> float:
        def gap(at: float) -> float:
            return value - at - confidence.standard_errors() * math.sqrt(_variance(at, members, others))

        end = value * _NEARLY
        return float(brentq(gap, 0.0, end)) if value > 0 and gap(end) < 0 else end

    return lower(area), 1.0 - lower(1.0 - area)


def _variance(area: float, members: int, others: int) -> float:
    balanced = (members + others) / 2 - 1
    spread = 1 + balanced * ((1 - area) / (2 - area) + area / (1 + area))
    return area * (1 - area) * spread / (members * others)


def allowed(epsilon: float, delta: float, rate: float) -> float:
    """The most true positives that (epsilon, delta)-DP allows at a false positive rate (Kairouz, Oh, Viswanath 2015).

    It bounds the rates over runs, of one row that is in the data or not.
    """
    if not math.isfinite(epsilon):
        return 1.0
    bounds = (rate * math.exp(min(epsilon, 700.0)) + delta, 1 - math.exp(-epsilon) * (1 - delta - rate))
    return max(0.0, min(1.0, *bounds))


def corners(epsilon: float, delta: float) -> Points:
    """The corners of `allowed` as (false positive rate, true positive rate), from left to right."""
    wrong, right = (float((1 - delta) * expit(sign * epsilon)) for sign in (-1, 1))
    return ((0.0, delta), (wrong, delta + right), (1 - delta, 1.0), (1.0, 1.0))


def allowed_area(epsilon: float, delta: float) -> float:
    """The largest area that `allowed` leaves: how often a row that was in is told from one that was not, at most."""
    rates, reached = zip(*corners(epsilon, delta), strict=True)
    return float(np.trapezoid(reached, rates))


def best_guess(epsilon: float, delta: float) -> float:
    """The largest share of right guesses whether a row is in, where a fair coin decides: `(e^eps + d) / (1 + e^eps)`.

    It is the mean of true positives and true negatives at the second corner of `allowed`, where their sum is largest.
    """
    return float(expit(epsilon) + delta * expit(-epsilon))
