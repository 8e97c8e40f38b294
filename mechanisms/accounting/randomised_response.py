"""The pair of distributions that dominates pure releases: adaptive epsilon-DP steps, then the Poisson mixture.

T adaptive epsilon-DP steps are dominated by T rounds of randomised response (Kairouz, Oh, Viswanath 2015), where only
the number of rounds that tell the truth matters. Sampling mixes that pair (Zhu, Dong, Wang 2022, theorem
11), and is not symmetric afterwards: which direction costs more depends on epsilon, so both are kept.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from mechanisms.accounting.normal_form import SampledLaplace, SampledPure
from mechanisms.noise import Floats


class Direction(Enum):
    """Which of two neighbours the outcome is drawn from: the one with the unit, or the one without it."""

    REMOVE = "remove"
    ADD = "add"


@dataclass(frozen=True, eq=False)
class DiscretePair:
    """Two distributions over finitely many outcomes, in order of the privacy loss.

    Attributes:
        losses: log of upper over lower probability of each outcome, ascending, all finite; shape (n,).
        log_upper: log-probability of each outcome where it is drawn from, shape (n,).
    """

    losses: Floats
    log_upper: Floats

    @property
    def upper(self) -> Floats:
        """Probability of each outcome where it is drawn from."""
        return np.exp(self.log_upper)

    def hockey_stick(self, epsilons: Floats) -> Floats:
        """Delta at each epsilon, exactly: the sum of (upper - e^epsilon lower) over losses above epsilon."""
        above = np.searchsorted(self.losses, epsilons, side="right")
        upper = np.append(np.cumsum(self.upper[::-1])[::-1], 0.0)
        lower = np.append(np.cumsum(np.exp(self.log_upper - self.losses)[::-1])[::-1], 0.0)
        return np.asarray(np.clip(upper[above] - np.exp(epsilons) * lower[above], 0.0, 1.0), dtype=np.float64)

    def renyi(self, order: float) -> float:
        """Renyi divergence of upper from lower, of order `order` > 1."""
        return float(logsumexp(self.log_upper + (order - 1) * self.losses)) / (order - 1)


@functools.lru_cache(maxsize=1024)
def dominating_pair(primitive: SampledPure, direction: Direction) -> DiscretePair:
    """The pair for one direction, over the T + 1 possible numbers of truthful rounds."""
    truthful = np.arange(primitive.steps + 1)
    log_with = binom.logpmf(truthful, primitive.steps, 1 / (1 + np.exp(-primitive.epsilon)))
    log_without = binom.logpmf(truthful, primitive.steps, 1 / (1 + np.exp(primitive.epsilon)))
    loss = primitive.epsilon * (2.0 * truthful - primitive.steps)
    if primitive.rate < 1:
        keep, join = np.log1p(-primitive.rate), np.log(primitive.rate)
        log_with = np.logaddexp(keep + log_without, join + log_with)
        loss = np.logaddexp(keep, join + loss)
    losses, log_upper = (loss, log_with) if direction is Direction.REMOVE else (-loss[::-1], log_without[::-1])
    return DiscretePair(np.asarray(losses, dtype=np.float64), np.asarray(log_upper, dtype=np.float64))


def directions(primitive: SampledPure | SampledLaplace) -> tuple[Direction, ...]:
    """The directions that differ: a pair that is not mixed is symmetric."""
    return (Direction.REMOVE,) if primitive.rate == 1.0 else (Direction.REMOVE, Direction.ADD)
