"""Privacy losses of pure and of Laplace releases, as the accountants compose them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from mechanisms.accounting.normal_form import SampledLaplace, SampledPure
from mechanisms.noise import Floats

# The pair of distributions that dominates pure releases: adaptive epsilon-DP steps, then the Poisson mixture.
#
# T adaptive epsilon-DP steps are dominated by T rounds of randomised response (Kairouz, Oh, Viswanath 2015), where
# only the number of rounds that tell the truth matters. Sampling mixes that pair (Zhu, Dong, Wang 2022, theorem 11),
# and is not symmetric afterwards: which direction costs more depends on epsilon, so both are kept.


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


# The privacy loss of a Laplace release on a Poisson sample: a smooth part, and an atom at each end.
#
# A unit moves the released value by at most 1, in units of the L1 sensitivity. Without sampling the loss l spans
# [-1/b, 1/b]; sampling turns it into `log(1 - q + q e^l)`. The pair is not symmetric then, so that both directions
# are kept, as with pure steps.

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PIECE = 1 / 8
"""Gauss's rule on pieces of this length is exact to 1e-8 and better for exponents up to 200 times the loss."""


def _quadrature(low: float, high: float) -> tuple[Floats, Floats]:
    """Places and weights that integrate smooth functions over [low, high], piece by piece."""
    edges = np.linspace(low, high, math.ceil((high - low) / _PIECE) + 1)
    half = np.diff(edges)[:, None] / 2
    places = edges[:-1, None] + half * (1 + _NODES)
    return places.ravel(), (half * _WEIGHTS).ravel()


@dataclass(frozen=True)
class LaplaceLoss:
    """The loss in one direction, as functions of the unsampled loss l, which grows with the released value."""

    release: SampledLaplace
    direction: Direction

    @property
    def _span(self) -> float:
        return 1 / self.release.scale

    def _mixed(self, loss: Floats) -> Floats:
        """The sampled loss of a release whose unsampled loss is `loss`, unit removed."""
        rate = self.release.rate
        return loss if rate == 1.0 else np.logaddexp(math.log1p(-rate), math.log(rate) + loss)

    def _unmixed(self, loss: Floats) -> Floats:
        """The inverse of `_mixed`, minus infinity below its range."""
        rate = self.release.rate
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            kept = np.log1p(-(1 - rate) * np.exp(-loss)) if rate < 1 else np.zeros_like(loss)
            return np.where(np.isnan(kept), -np.inf, loss + kept - math.log(rate))

    def _below(self, loss: Floats, *, atom: bool) -> Floats:
        """Probability, where the outcome is drawn from, that l lies below `loss`; with the atom that may sit there."""
        inside = np.clip(loss, -self._span, self._span)
        without = 1 - 0.5 * np.exp(-(self._span + inside) / 2)
        joined = 0.5 * np.exp((inside - self._span) / 2)
        rate = self.release.rate if self.direction is Direction.REMOVE else 0.0
        found = rate * joined + (1 - rate) * without
        over = loss >= self._span if atom else loss > self._span
        under = loss < -self._span if atom else loss <= -self._span
        return np.where(over, 1.0, np.where(under, 0.0, found))

    def cdf(self, at: Floats) -> Floats:
        """Probability that the loss is at most `at`."""
        if self.direction is Direction.REMOVE:
            return self._below(self._unmixed(np.asarray(at, dtype=np.float64)), atom=True)
        return 1 - self._below(self._unmixed(-np.asarray(at, dtype=np.float64)), atom=False)

    def _log_density(self, loss: Floats) -> Floats:
        """Of l between its atoms, where the outcome is drawn from."""
        without, joined = -(self._span + loss) / 2, (loss - self._span) / 2
        rate = self.release.rate if self.direction is Direction.REMOVE else 0.0
        with np.errstate(divide="ignore"):
            found = np.logaddexp(np.log(rate) + joined, np.log1p(-rate) + without) - math.log(4)
        return np.asarray(found, dtype=np.float64)

    def _log_masses(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Values of l in [low, high], and the logarithms of their masses: nodes of the smooth part, and the atoms."""
        span = self._span
        places, weights = _quadrature(max(low, -span), min(high, span))
        masses = np.log(weights) + self._log_density(places)
        ends = np.array([-span, span])
        atoms = np.log(2 * np.exp(self._log_density(ends)))
        inside = (low <= ends) & (ends <= high)
        return np.append(places, ends[inside]), np.append(masses, atoms[inside])

    def mean_within(self, low: float, high: float) -> float:
        """Mean of the loss, given that it lies in [low, high]."""
        sign = 1.0 if self.direction is Direction.REMOVE else -1.0
        ends = np.sort(self._unmixed(sign * np.array([low, high])))
        losses, masses = self._log_masses(float(ends[0]), float(ends[1]))
        weights = np.exp(masses - masses.max())
        return float(sign * np.dot(weights, self._mixed(losses)) / weights.sum())

    def renyi(self, order: float) -> float:
        """Renyi divergence of order `order` > 1, of where the outcome is drawn from, from the other."""
        span = self._span
        if self.release.rate == 1.0:  # Mironov 2017, proposition 6
            logs = [math.log(order) + (order - 1) * span, math.log(order - 1) - order * span]
            return float(logsumexp(logs) - math.log(2 * order - 1)) / (order - 1)
        sign = 1.0 if self.direction is Direction.REMOVE else -1.0
        losses, masses = self._log_masses(-span, span)
        return float(logsumexp(masses + (order - 1) * sign * self._mixed(losses))) / (order - 1)
