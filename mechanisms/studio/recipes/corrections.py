"""Corrections of a model's label probabilities: what is added to each label's log-probability before it is read.

A small model prefers labels. Contextual calibration (Zhao et al. 2021) guesses the preference from three queries
without content; private rows measure it: the mean of their label probabilities, which add up to 1 for each of them. The
correction that is fitted makes that mean the labels' public shares, step by step: each measurement reads with the
correction so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
from scipy.special import softmax

from mechanisms.noise import Floats
from mechanisms.tallies import Weighing, masses

_LEAST_SHARE = 0.02
"""Of an even share of the probability: noise may leave less than nothing of it, and a logarithm needs something."""
_SMOOTHING = 0.5


class Correction(StrEnum):
    """How label probabilities are read."""

    NONE = "none"
    CONTEXTUAL = "contextual"
    PRIOR = "prior"
    """Fitted to equal shares of the labels."""
    SHARES = "shares"
    """Fitted to the shares that the labels' public sizes say."""


FITTED = (Correction.PRIOR, Correction.SHARES)


def fitted(sizes: Sequence[float]) -> Correction:
    """The fit that is made where none was chosen, for labels of these public sizes or masses."""
    return Correction.SHARES if len(set(sizes)) > 1 else Correction.PRIOR


def ways(sizes: Mapping[str, int], weighing: Weighing) -> int:
    """In how many ways each set of a choice is read: fitted to the labels' shares only where these are not equal."""
    unequal = len(set(masses(sizes, weighing).values())) > 1
    return len(Correction) - (not unequal)


def among_in_words(arms: int, sets: int) -> str:
    """What a choice is among: each arm is a set that is read in one way."""
    even = sets > 0 and arms % sets == 0
    return f"{arms}: {sets} sets, each read in {arms // sets} ways" if even else f"{arms} ways to read the sets"


def probabilities(scores: Floats, correction: Floats) -> Floats:
    """Label probabilities of rows, shape (rows, labels), under a correction; rows that are not finite stay so."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(softmax(scores + correction, axis=1), dtype=np.float64)


def targets(correction: Correction, sizes: Sequence[float]) -> Floats:
    """The mean probabilities that a fitted correction aims at, in the order of the labels."""
    wanted = np.ones(len(sizes)) if correction is Correction.PRIOR else np.array(sizes, dtype=np.float64)
    return np.asarray(wanted / wanted.sum())


def step(noisy: Floats, target: Floats, deviation: float = 0.0) -> Floats:
    """What a measurement adds to a correction: `log(target) - log(share)`, of mean 0.

    Half a deviation of the noise is added to each sum, in proportion to the target: where rows are few the step is a
    small one, where they are many it changes nothing (docs/worth.md).

    Args:
        noisy: noisy sums of label probabilities, shape (labels,); only their shares are used.
        target: mean probabilities to reach, shape (labels,).
        deviation: of the noise on each sum.
    """
    positive = np.maximum(noisy, 0.0) + _SMOOTHING * deviation * len(noisy) * target
    shares = np.maximum(positive / max(float(positive.sum()), 1.0), _LEAST_SHARE / len(noisy))
    found = np.log(target) - np.log(shares / shares.sum())
    return np.asarray(found - found.mean())
