"""Privacy losses of pure, Laplace and Gaussian releases, as the accountants compose them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from mechanisms.accounting.normal_form import (
    Concentrated,
    NormalForm,
    Primitive,
    SampledGaussian,
    SampledLaplace,
    SampledPure,
)
from mechanisms.noise import Floats

# The pair of distributions that dominates pure releases: adaptive epsilon-DP steps, then the Poisson mixture.
#
# T adaptive epsilon-DP steps are dominated by T rounds of randomised response (Kairouz, Oh, Viswanath 2015); only the
# number of truthful rounds matters. Sampling mixes that pair (Zhu, Dong, Wang 2022, theorem 11), and is not symmetric
# afterwards, so both directions are kept.


class Direction(Enum):
    """The neighbour that generates the outcome: `REMOVE` is the one with the unit, `ADD` the one without it."""

    REMOVE = "remove"
    ADD = "add"


@dataclass(frozen=True, eq=False)
class Masses:
    """A privacy loss as point masses.

    Attributes:
        losses: the log of the outcome's probability over that under the other neighbour, shape (n,).
        log_masses: the logs of the losses' probabilities, shape (n,).
        beyond: the probability of the omitted outcomes, whose losses may be unbounded.
    """

    losses: Floats
    log_masses: Floats
    beyond: float = 0.0

    def hockey_stick(self, epsilons: Floats) -> Floats:
        """The exact delta at each epsilon, shape of `epsilons`, without the part `beyond`; losses must ascend.

        It is the sum of (upper - e^epsilon lower) over the losses above epsilon, where upper and lower are the
        probabilities of an outcome under the two neighbours.
        """
        above = np.searchsorted(self.losses, epsilons, side="right")
        upper = np.append(np.cumsum(np.exp(self.log_masses)[::-1])[::-1], 0.0)
        lower = np.append(np.cumsum(np.exp(self.log_masses - self.losses)[::-1])[::-1], 0.0)
        return np.asarray(np.clip(upper[above] - np.exp(epsilons) * lower[above], 0.0, 1.0), dtype=np.float64)

    def cumulant(self, tilt: float) -> float:
        """The log of the mean of `e^(tilt loss)`, which is `tilt` times the Renyi divergence of order `tilt + 1`."""
        return log_sum(self.log_masses + tilt * self.losses)

    def mean(self, tilt: float = 0.0) -> float:
        """The mean loss if masses are weighted by `e^(tilt loss)`; it grows with the tilt."""
        logs = self.log_masses + tilt * self.losses
        weights = np.exp(logs - logs.max())
        return float(weights @ self.losses / weights.sum())


_REACH = 20.0
"""Multiples of the root of the number of rounds beyond which a number of truthful rounds has probability 0 in floats:
e^-800 (Hoeffding)."""


@functools.lru_cache(maxsize=1024)
def dominating_pair(primitive: SampledPure, direction: Direction) -> Masses:
    """The loss of the pair that dominates pure steps, in one direction; losses ascend.

    Each loss belongs to one number of truthful rounds of randomised response with a probability above 0 in floats.
    """
    share, reach = 1 / (1 + math.exp(primitive.epsilon)), _REACH * math.sqrt(primitive.steps)
    least, most = (primitive.steps * each for each in (share, 1 - share))
    truthful = np.arange(max(0, math.floor(least - reach)), min(primitive.steps, math.ceil(most + reach)) + 1)
    log_with = binom.logpmf(truthful, primitive.steps, 1 / (1 + np.exp(-primitive.epsilon)))
    log_without = binom.logpmf(truthful, primitive.steps, 1 / (1 + np.exp(primitive.epsilon)))
    loss = primitive.epsilon * (2.0 * truthful - primitive.steps)
    if primitive.rate < 1:
        keep, join = np.log1p(-primitive.rate), np.log(primitive.rate)
        log_with = np.logaddexp(keep + log_without, join + log_with)
        loss = np.logaddexp(keep, join + loss)
    losses, log_upper = (loss, log_with) if direction is Direction.REMOVE else (-loss[::-1], log_without[::-1])
    return Masses(np.asarray(losses, dtype=np.float64), np.asarray(log_upper, dtype=np.float64))


def directions(primitive: Primitive) -> tuple[Direction, ...]:
    """The directions that can have the largest cost in a list with this release.

    Without sampling both directions cost the same. A single release on a sample costs at least as much where a unit is
    removed, but in a list neither direction dominates (Lebeda et al. 2024): beside unsampled pure steps, adding a unit
    can cost more, even for a sampled Gaussian.
    """
    return (Direction.REMOVE,) if primitive.rate == 1.0 else tuple(Direction)


_LARGE, _MOST_LOSS = 30.0, 3000.0
"""Above the first loss e^-loss is only a correction; losses above the second are omitted."""
_RULE, FINE_RULE = np.polynomial.legendre.leggauss(3), np.polynomial.legendre.leggauss(16)
_PIECE = 1 / 8
"""On pieces of this length the fine rule is exact to 1e-8 and better for exponents up to 200 times the loss."""


def sampled(loss: Floats, rate: float) -> Floats:
    """The loss of removing a unit on a sample, `log(1 - q + q e^loss)`, from the loss without sampling."""
    if rate == 1.0:
        return loss
    small, large = np.minimum(loss, _LARGE), np.maximum(loss, _LARGE)
    return np.where(loss < _LARGE, np.log1p(rate * np.expm1(small)), large + np.log(rate + (1 - rate) * np.exp(-large)))


def unsampled(loss: Floats, rate: float) -> Floats:
    """The inverse of `sampled`; minus infinity for losses below its range."""
    if rate == 1.0:
        return loss
    small, large = np.minimum(loss, _LARGE), np.maximum(loss, _LARGE)
    with np.errstate(divide="ignore"):
        low = np.log1p(np.maximum(np.expm1(small) / rate, -1.0))
    return np.where(loss < _LARGE, low, large - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-large)))


def masses(primitive: Primitive, direction: Direction, tail: float, step: float = math.inf) -> Masses:
    """The loss of a primitive in one direction.

    Args:
        tail: the probability that may be omitted, up to a few times, in addition to losses above `_MOST_LOSS`.
        step: the step of the grid to which the loss will be rounded; no piece of the integral crosses a multiple of it.

    Raises:
        TypeError: the primitive is a zCDP bound, which has no loss.
    """
    match primitive:
        case SampledGaussian():
            return _gaussian_masses(primitive, direction, tail, step)
        case SampledLaplace():
            return laplace_masses(primitive, direction, step)
        case SampledPure():
            pair = dominating_pair(primitive, direction)
            return _truncated(pair.losses, pair.log_masses, tail)
        case Concentrated():
            raise TypeError("zCDP has no privacy loss distribution.")


def _truncated(losses: Floats, log_masses: Floats, tail: float, beyond: float = 0.0) -> Masses:
    """The masses without those at each end with a total of at most `tail`, and without losses beyond `_MOST_LOSS`."""
    weights = np.exp(log_masses)
    above, below = np.cumsum(weights[::-1])[::-1], np.cumsum(weights)
    kept = (above > tail) & (below > tail) & (np.abs(losses) <= _MOST_LOSS)
    return Masses(losses[kept], log_masses[kept], beyond + float(weights[~kept].sum()))


def _pieces(low: float, high: float, cuts: Floats, rule: tuple[Floats, Floats] = _RULE) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss's rule on the pieces of [low, high]; no piece crosses a cut."""
    nodes, weights = rule
    even = np.linspace(low, high, math.ceil((high - low) / _PIECE) + 1)
    edges = np.unique(np.concatenate([even, cuts[(cuts > low) & (cuts < high)]]))
    half = np.diff(edges)[:, None] / 2
    places = edges[:-1, None] + half * (1 + nodes)
    return places.ravel(), (half * weights).ravel()


def _multiples(ends: Floats, rate: float, step: float) -> Floats:
    """The unsampled losses between two `ends` at which the sampled loss is a multiple of `step`."""
    if step == math.inf:
        return np.empty(0)
    low, high = np.clip(sampled(ends, rate), -_MOST_LOSS, _MOST_LOSS) / step
    return unsampled(np.arange(math.ceil(low), math.floor(high) + 1) * step, rate)


def _gaussian_masses(release: SampledGaussian, direction: Direction, tail: float, step: float) -> Masses:
    # Outcomes in standard deviations: N(0, 1) without the unit, N(shift, 1) with it; outcomes far from both are left
    # out.
    shift, reach = 1 / release.noise_multiplier, -float(ndtri(tail))
    ranges = [(-reach, shift + reach)] if shift <= 2 * reach else [(-reach, reach), (shift - reach, shift + reach)]
    found = []
    for ends in ranges:
        losses = shift * (np.array(ends) - shift / 2)
        cuts = _multiples(losses, release.rate, step) / shift + shift / 2
        found.append(_pieces(*ends, cuts))
    outcomes, weights = (np.concatenate(each) for each in zip(*found, strict=True))
    without = np.log(weights) - outcomes**2 / 2 - math.log(2 * math.pi) / 2
    losses = sampled(shift * (outcomes - shift / 2), release.rate)
    if direction is Direction.REMOVE:
        return _truncated(losses, without + losses, 0.0, 4 * tail)
    return _truncated(-losses, without, 0.0, 4 * tail)


def laplace_masses(
    release: SampledLaplace,
    direction: Direction,
    step: float = math.inf,
    rule: tuple[Floats, Floats] = _RULE,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Masses:
    """The loss of a Laplace release: a smooth part, and an atom at either end.

    Without sampling the loss spans [-1/b, 1/b], where b is the scale over the L1 sensitivity.

    Args:
        step: as in `masses`.
        rule: nodes and weights of Gauss's rule on [-1, 1].
        within: the range of unsampled losses to keep, with the atoms inside it.
    """
    ends = np.array([-1.0, 1.0]) / release.scale
    low, high = np.clip(within, *ends)
    places, weights = _pieces(low, high, _multiples(ends, release.rate, step), rule)
    inside = (within[0] <= ends) & (ends <= within[1])
    atoms = np.array([-math.log(2), -math.log(2) - ends[1]])[inside]
    without = np.append(np.log(weights / 4) - (places + ends[1]) / 2, atoms)
    losses = sampled(np.append(places, ends[inside]), release.rate)
    return Masses(losses, without + losses) if direction is Direction.REMOVE else Masses(-losses, without)


@dataclass(frozen=True, eq=False)
class Rounded:
    """A loss rounded to a grid: the two neighbouring points preserve its probabilities, which can only raise delta.

    This is connect-the-dots (Doroshenko et al. 2022). Masses are tilted: weighted by `e^(tilt loss)`, and scaled to sum
    to 1.

    Attributes:
        step: the distance of grid points.
        first: the place of the first mass, in steps.
        masses: the tilted masses, shape (n,).
        log_scale: the log of the sum of the weighted masses.
    """

    step: float
    tilt: float
    first: int
    masses: Floats
    log_scale: float

    @classmethod
    def of(cls, law: Masses, step: float, tilt: float = 0.0) -> Rounded:
        """The loss on multiples of `step`."""
        place = np.floor(law.losses / step)
        # `p = a + b` and `p e^-loss = a e^-low + b e^-high`: the share of b, exact also for a tiny step.
        share = np.clip(np.expm1(place * step - law.losses) / math.expm1(-step), 0.0, 1.0)
        first = int(place.min())
        logs = law.log_masses + tilt * step * place
        largest = float(logs.max())
        weights, index = np.exp(logs - largest), (place - first).astype(np.int64)
        high = np.bincount(index, weights * share) * math.exp(tilt * step)
        found = np.append(np.bincount(index, weights * (1 - share)), 0.0) + np.insert(high, 0, 0.0)
        whole = float(found.sum())
        return cls(step, tilt, first, found / whole, largest + math.log(whole))

    @property
    def middle(self) -> int:
        """The place of the mean of the tilted loss."""
        return self.first + round(float(self.masses @ np.arange(len(self.masses))))

    def cumulant(self, tilt: float) -> float:
        held = self.masses > 0
        places = self.first + np.flatnonzero(held)
        return self.log_scale + log_sum(np.log(self.masses[held]) + (tilt - self.tilt) * self.step * places)


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of the independent losses of a list's releases: each distinct loss with its count."""

    parts: tuple[tuple[Masses, int], ...]

    @classmethod
    def of(cls, form: NormalForm, direction: Direction, tail: float, step: float = math.inf) -> Total:
        """The total loss of a list of events; the arguments are those of `masses`."""
        return cls(tuple((masses(primitive, direction, tail, step), count) for primitive, count in form.primitives))

    @property
    def beyond(self) -> float:
        """A bound on the probability of outcomes with omitted losses."""
        return sum(count * law.beyond for law, count in self.parts)

    @property
    def spread(self) -> float:
        """The root of the sum of second moments: about the standard deviation if the means are small."""
        return math.sqrt(sum(count * float(np.exp(law.log_masses) @ law.losses**2) for law, count in self.parts))

    def cumulant(self, tilt: float) -> float:
        return sum(count * law.cumulant(tilt) for law, count in self.parts)

    def mean(self, tilt: float) -> float:
        return sum(count * law.mean(tilt) for law, count in self.parts)


def log_sum(logs: Floats) -> float:
    """The log of the sum of `e^log` over all `logs`, shape (n,)."""
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))
