"""The bound of one-run auditing: what correct guesses about canaries prove of epsilon (Steinke, Nasr, Jagielski 2023).

Every canary is in the data or not by a fair coin of its own. Whoever sees the output of an (epsilon, delta)-DP run and
guesses about some of them is right no more often than randomised response would be, but for a term in delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom

from mechanisms import confidence
from mechanisms.noise import Floats

_RULES = tuple((share, out) for share in (1 / 2, 1 / 4, 1 / 8, 1 / 16) for out in (share, 0.0))
"""Shares of the canaries, by score: the highest are guessed to be in, the lowest to be out, none about the others."""
_LARGEST = 50.0
_STEPS = 24

Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Guesses:
    """The guesses that prove most.

    Attributes:
        lower_bound: with probability `confidence.LEVEL`, epsilon is at least this.
        made, correct: how many guesses, and how many of them right.
    """

    lower_bound: float
    made: int
    correct: int


def best_guesses(included: Coins, scores: Floats, delta: float) -> Guesses:
    """Guess by the scores, shape (canaries,), and hold the guesses against the coins, of the same shape.

    A few rules for how many guesses are made share the error among them, so that the best of them may be taken.
    """
    order = np.argsort(-scores, kind="stable")
    error = (1 - confidence.LEVEL) / len(_RULES)
    found = []
    for share, share_out in _RULES:
        inside, outside = (int(each * len(order)) for each in (share, share_out))
        correct = int(included[order[:inside]].sum() + (~included[order[len(order) - outside :]]).sum())
        bound = epsilon_proved(len(order), inside + outside, correct, delta, error)
        found.append(Guesses(bound, inside + outside, correct))
    return max(found, key=lambda each: each.lower_bound)


def epsilon_proved(canaries: int, made: int, correct: int, delta: float, error: float) -> float:
    """The largest epsilon that so many correct guesses refute, but with probability `error`; 0 where they refute none.

    Args:
        canaries: all of them, each in or out by a fair coin.
        made: guesses.
        correct: of these.
        delta: of the claim.
        error: probability that the bound is wrong.
    """
    low, high = 0.0, _LARGEST
    if _chance(canaries, made, correct, low, delta) >= error:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _chance(canaries, made, correct, middle, delta) < error:
            low = middle
        else:
            high = middle
    return low


def _chance(canaries: int, made: int, correct: int, epsilon: float, delta: float) -> float:
    """How likely so many correct guesses are, or more, at most: the paper's theorem 5.2.

    `P[W >= v] <= P[B >= v] + 2 m delta max_i P[v > B >= v - i] / i`, B binomial, right with e^eps / (1 + e^eps).
    """
    right = float(expit(epsilon))
    tail = float(binom.sf(correct - 1, made, right))
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), made, right))
    worst = float((below / np.arange(1, correct + 1)).max()) if correct else 0.0
    return math.fsum((tail, 2 * canaries * delta * worst))
