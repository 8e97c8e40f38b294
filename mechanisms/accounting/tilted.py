"""The accountant `tilted`: privacy losses composed under an exponential tilt, for any delta and number of releases.

Each loss is rounded to a grid so that the two points beside it keep both its probabilities (connect the dots:
Doroshenko et al. 2022), which can only raise delta. All masses are then weighted by `e^(tilt loss)`, so that the sum of
the losses lies near epsilon, and not around zero: a Fourier transform is exact where delta is decided, however small
delta is. The weights are taken back at the end.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import lfilter

from mechanisms.accounting import rdp
from mechanisms.accounting.losses import Direction, Rounded, Total
from mechanisms.accounting.normal_form import Bounds, NormalForm, Primitive, pure_epsilon
from mechanisms.noise import Floats

NAME = "tilted"
_INFLATION = 1e-3
"""The relative amount by which rounding to the grid raises delta, unless `_MOST_POINTS` makes the grid coarser."""
_LEAST_POINTS, _MOST_POINTS = 2**15, 2**19
_LOST = 1e-6
"""The part of delta that pays for sums above the grid."""
_WRAPPED = math.log(1e-9)
"""The log of the probability that the tilted sum lies beyond either end of the grid."""
_ABOVE, _BELOW = (1.0, 1.05, 1.1, 1.2, 1.4, 1.7, 2.0, 3.0, 5.0), (0.96, 0.9, 0.75, 0.5, 0.25, 0.0, -0.5, -1.0)
"""Other tilts, as multiples of the one in use, that bound the tails (Chernoff)."""
_TILTS = (0.9, 0.75, 0.5, 0.25)
"""Tilts to try, as multiples of the tilt that decides delta: a smaller one keeps sums of rare large losses on the
grid."""
_ROUNDS, _ENOUGH, _MOST_EPSILON = 5, 0.8, 1e4
"""The number of tilts that are tried, while each falls below `_ENOUGH` times the last; the largest Renyi bound that is
improved."""
_RANGE = 300.0
"""Weights differ by at most e to this power, so that their squares do not overflow."""
_ROUNDING = 4 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class EpsilonBounds(Bounds):
    """Bounds on epsilon: the upper one includes what rounding adds, the lower one subtracts it.

    Attributes:
        step: the distance of grid points.
    """

    step: float


@functools.lru_cache(maxsize=512)
def epsilon(form: NormalForm, delta: float) -> EpsilonBounds:
    """Bounds on epsilon at `delta`, in the direction with the larger cost."""
    removed = _one_direction(form, Direction.REMOVE, delta)
    most_added = sum(count * _most_added(primitive) for primitive, count in form.primitives)
    if most_added <= removed.upper or all(primitive.rate == 1.0 for primitive in form.kinds):
        return removed
    added = _one_direction(form, Direction.ADD, delta)
    return EpsilonBounds(max(removed.lower, added.lower), max(removed.upper, added.upper), removed.step)


def _most_added(primitive: Primitive) -> float:
    """A bound on the loss of adding a unit: `log 1 / (1 - q)`, or a bound for both directions."""
    return pure_epsilon(primitive) if primitive.rate == 1.0 else -math.log1p(-primitive.rate)


def _one_direction(form: NormalForm, direction: Direction, delta: float) -> EpsilonBounds:
    total = Total.of(form, direction, rdp.tail_of(form, delta))
    tilt, bound = rdp.best(total, delta)
    if bound == math.inf:
        return EpsilonBounds(math.inf, math.inf, math.inf)
    best = EpsilonBounds(0.0, bound, _Grid.of(total, tilt, delta).step)
    for _ in range(_ROUNDS if 0 < bound < _MOST_EPSILON else 0):
        found = _Composition.of(form, direction, total, tilt, delta).solved(delta)
        if found.upper >= best.upper:
            break
        best = found
        # The tilt of where delta is decided; that of the Renyi bound lies higher.
        before, tilt = tilt, rdp.tilt_at(total, best.upper)
        if tilt >= _ENOUGH * before:
            break
    return best


@dataclass(frozen=True, eq=False)
class _Grid:
    """A grid of values of the composed privacy loss: `points` multiples of `step`, the first `start` times `step`.

    Attributes:
        tilt: the exponential tilt of the probabilities on the grid.
        above: the tilt whose Chernoff bound limits the part of delta above the grid.
    """

    start: int
    points: int
    step: float
    tilt: float
    above: float

    @classmethod
    def of(cls, total: Total, decisive: float, delta: float) -> _Grid:
        """The grid with the tilt that decides delta, or the nearest one below that needs no more points."""
        count = sum(each for _, each in total.parts)
        finest = math.sqrt(12 * _INFLATION / (count * decisive * (decisive + 1)))
        widest = max(float(np.ptp(law.losses)) for law, _ in total.parts)
        for share in itertools.chain(_TILTS, (_TILTS[-1] / 4**each for each in itertools.count())):
            tilt = decisive * share
            bottom, top, above = _window(total, tilt, delta)
            width = max(top - bottom, widest)
            # The last tilt that is tried suffices if a float can hold its effect on one step.
            if width <= finest * _MOST_POINTS or (share <= _TILTS[-1] and tilt * width <= _MOST_POINTS):
                break
        step = max(min(finest, width / _LEAST_POINTS), width / _MOST_POINTS)
        points = next_fast_len(math.ceil((top - bottom) / step) + 2, real=True)
        return cls(math.floor(bottom / step), points, step, tilt, above)

    @property
    def losses(self) -> Floats:
        return np.asarray((self.start + np.arange(self.points)) * self.step, dtype=np.float64)


def _window(total: Total, tilt: float, delta: float) -> tuple[float, float, float]:
    """Ends of the tilted sum, with 0 between them, and the tilt that shows how little of delta lies above them."""
    whole = total.cumulant(tilt)
    steeper = {tilt * each: total.cumulant(tilt * each) for each in _ABOVE}
    tops = {each: (found - math.log(_LOST * delta)) / each for each, found in steeper.items()}
    wrapped = [(found - whole - _WRAPPED) / (each - tilt) for each, found in steeper.items() if each > tilt]
    bottoms = [(_WRAPPED + whole - total.cumulant(tilt * each)) / (tilt - tilt * each) for each in _BELOW]
    above = min(tops, key=lambda each: tops[each])
    return min(0.0, max(bottoms)), max(0.0, tops[above], min(wrapped)), above


@dataclass(frozen=True, eq=False)
class _Composition:
    """The tilted sum on its grid.

    Attributes:
        masses: shape (n,).
        log_total: log of their sum before they were scaled to sum to 1.
        lost: a bound on delta from what is not on the grid.
        inflation: the factor by which rounding may have raised delta.
    """

    grid: _Grid
    masses: Floats
    log_total: float
    lost: float
    inflation: float
    count: int

    @classmethod
    def of(cls, form: NormalForm, direction: Direction, total: Total, decisive: float, delta: float) -> _Composition:
        """The sum, for the tilt that decides delta."""
        grid = _Grid.of(total, decisive, delta)
        whole = Total.of(form, direction, rdp.tail_of(form, delta), grid.step)
        parts = [(Rounded.of(law, grid.step, grid.tilt), count) for law, count in whole.parts]
        above = sum(count * part.cumulant(grid.above) for part, count in parts)
        count = sum(each for _, each in parts)
        return cls(
            grid,
            _convolved(parts, grid),
            sum(each * part.cumulant(grid.tilt) for part, each in parts),
            math.exp(min(0.0, above - grid.above * float(grid.losses[-1]))) + whole.beyond,
            math.exp(min(_RANGE, count * decisive * (decisive + 1) * grid.step**2)),
            count,
        )

    def solved(self, delta: float) -> EpsilonBounds:
        """Epsilon at `delta`."""
        # Weights relative to the loss at which one mass would be delta; far below it they overflow and decide nothing.
        losses = self.grid.losses
        logs = self.log_total - math.log(delta) - self.grid.tilt * losses
        kept = logs < _RANGE
        losses, weights, masses = losses[kept], np.exp(logs[kept]), self.masses[kept]
        found = self._least(losses, masses * weights, 1 - self.lost / delta)
        # Solve again, with what the transforms may have lost.
        excess = np.where(losses > found, -weights * np.expm1(np.minimum(found - losses, 0.0)), 0.0)
        noise = _ROUNDING * (self.count + 1) * math.log2(len(self.masses))
        noise *= float(np.linalg.norm(self.masses) * np.linalg.norm(excess))
        upper = self._least(losses, masses * weights, 1 - self.lost / delta - noise)
        return EpsilonBounds(self._least(losses, masses * weights, self.inflation), upper, self.grid.step)

    def _least(self, losses: Floats, masses: Floats, most: float) -> float:
        """The least epsilon on the grid, and not below 0, at which delta is at most `most`."""
        upper, kept = np.cumsum(masses[::-1])[::-1], math.exp(-self.grid.step)
        # At a point only larger losses count; delta there follows from delta at the next one, without a difference.
        deltas = lfilter([-math.expm1(-self.grid.step)], [1.0, -kept], np.append(upper[1:], 0.0)[::-1])[::-1]
        place = int(np.argmax(deltas <= most))
        if not deltas[place] <= most:
            return math.inf
        if place == 0:
            return max(0.0, float(losses[0]))
        # From the point before it on delta is linear in e^epsilon.
        return max(0.0, float(losses[place]) + math.log1p((deltas[place] - most) / (upper[place] - deltas[place])))


def _convolved(parts: list[tuple[Rounded, int]], grid: _Grid) -> Floats:
    """Masses of the sum on the grid; what lies elsewhere is wrapped around."""
    transform, offset = np.ones(grid.points // 2 + 1, dtype=np.complex128), 0
    for part, count in parts:
        places = (np.arange(len(part.masses)) + (part.first - part.middle)) % grid.points
        transform *= rfft(np.bincount(places, part.masses, minlength=grid.points)) ** count
        offset += count * part.middle
    masses = np.roll(irfft(transform, grid.points), offset - grid.start)
    return np.asarray(np.maximum(masses, 0.0), dtype=np.float64)
