"""How often noise leaves a clear majority of the shards' votes its win: a closed form, of public values alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr

SHARE = Fraction(7, 10)
"""Of the shards, that agree in the scenario."""
_REACH, _POINTS = 9.0, 2001
"""Standard deviations to either side that are integrated over, and where: errors stay below 1e-9."""


@dataclass(frozen=True)
class ClearMajority:
    """The scenario: about 7 of 10 shards vote for one label, and all the others for one other.

    Attributes:
        leading, other: votes of the two labels; the remaining ones get none.
        chance: how often the noisy winner is the label that leads.
    """

    leading: int
    other: int
    chance: float


def clear_majority(shards: int, labels: int, noise: float) -> ClearMajority:
    """What noise does to it.

    Args:
        shards: S, votes in all.
        labels: how many there are, at least two.
        noise: standard deviation of the Gaussian noise on each label's votes.
    """
    leading = max(shards // 2 + 1, round(SHARE * shards))
    votes = [leading, shards - leading, *[0] * (labels - 2)]
    return ClearMajority(leading, shards - leading, chance_of_first(votes, noise))


def chance_of_first(votes: Sequence[float], noise: float) -> float:
    """Probability that the first entry is the largest when each gets independent Gaussian noise of that deviation."""
    at = np.linspace(-_REACH, _REACH, _POINTS)
    margins = (votes[0] - np.asarray(votes[1:], dtype=float)) / noise
    below = np.exp(log_ndtr(at[:, None] + margins).sum(axis=1))
    weights = np.exp(-(at**2) / 2)
    return float((weights * below).sum() / weights.sum())
