"""The accountant `prv`: numerical bounds on epsilon by prv-accountant (Gopi, Lee, Wutschitz 2021)."""

from __future__ import annotations

import functools
import itertools
import math
from abc import abstractmethod

import numpy as np
from prv_accountant import PRVAccountant
from prv_accountant.accountant import compute_safe_domain_size
from prv_accountant.composers import Heterogeneous
from prv_accountant.discretisers import CellCentred
from prv_accountant.domain import Domain
from prv_accountant.privacy_random_variables import (
    GaussianMechanism,
    PoissonSubsampledGaussianMechanism,
    PrivacyRandomVariable,
    PrivacyRandomVariableTruncated,
)
from scipy.stats import norm

from mechanisms.accounting import rdp
from mechanisms.accounting.losses import (
    FINE_RULE,
    Direction,
    directions,
    dominating_pair,
    laplace_masses,
    unsampled,
)
from mechanisms.accounting.normal_form import (
    Bounds,
    Concentrated,
    NormalForm,
    Primitive,
    SampledGaussian,
    SampledLaplace,
    SampledPure,
)
from mechanisms.noise import Floats

NAME = "prv"
_COARSE, _FINEST = 0.1, 1e-4
_MOST_POINTS, _MOST_STEPS, _MARGIN = 2e5, 10_000, 3.3
"""The most points of all grids, and the most pure steps, that take a second or two; what the library adds to epsilon
for its grid."""
_TAIL = 40.0
"""Standard deviations beyond which a Gaussian has no mass that a float could add, and losses beyond which 1 is not."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
"""Gauss-Legendre, for pieces of one standard deviation."""


class _Loss(PrivacyRandomVariable):
    """A privacy loss that computes its own mean: the library's integral over the cdf misses sudden steps."""

    def __init__(self, primitive: Primitive, direction: Direction) -> None:
        self._primitive, self._direction = primitive, direction

    def rdp(self, alpha: float) -> float:
        """Renyi divergence, computed once for the passes from a coarse mesh to a fine one."""
        return rdp.divergence(self._primitive, self._direction, float(alpha))

    @abstractmethod
    def mean_within(self, low: float, high: float) -> float:
        """The mean of the loss, given that it lies between `low` and `high`."""


class _PureLoss(_Loss):
    """The privacy loss of pure steps; the library's own has a wrong `rdp`, and therefore too small a domain."""

    def __init__(self, primitive: SampledPure, direction: Direction) -> None:
        super().__init__(primitive, direction)
        pair = dominating_pair(primitive, direction)
        self._losses, self._upper = pair.losses, np.exp(pair.log_masses)
        self._cumulative = np.concatenate([[0.0], np.minimum(np.cumsum(self._upper), 1.0)])
        self._cumulative[-1] = 1.0

    def cdf(self, t: Floats) -> Floats:
        return np.asarray(self._cumulative[np.searchsorted(self._losses, t, side="right")])

    def mean_within(self, low: float, high: float) -> float:
        inside = (self._losses > low) & (self._losses <= high)
        weights = self._upper[inside]
        return float(np.dot(weights, self._losses[inside]) / weights.sum())


class LaplaceLoss(_Loss):
    """The privacy loss of a Laplace release; the library's own has neither sampling nor an exact mean.

    On a sample the two directions differ, as for pure steps, so that both are computed.
    """

    def __init__(self, release: SampledLaplace, direction: Direction) -> None:
        super().__init__(release, direction)
        self._release, self._span = release, 1 / release.scale

    def _below(self, loss: Floats, *, atom: bool) -> Floats:
        """The probability that the unsampled loss is below `loss`, with an atom at `loss` itself if `atom` is True."""
        inside = np.clip(loss, -self._span, self._span)
        without = 1 - 0.5 * np.exp(-(self._span + inside) / 2)
        joined = 0.5 * np.exp((inside - self._span) / 2)
        rate = self._release.rate if self._direction is Direction.REMOVE else 0.0
        found = rate * joined + (1 - rate) * without
        over = loss >= self._span if atom else loss > self._span
        under = loss < -self._span if atom else loss <= -self._span
        return np.where(over, 1.0, np.where(under, 0.0, found))

    def cdf(self, t: Floats) -> Floats:
        at = np.asarray(t, dtype=np.float64)
        if self._direction is Direction.REMOVE:
            return self._below(unsampled(at, self._release.rate), atom=True)
        return 1 - self._below(unsampled(-at, self._release.rate), atom=False)

    def mean_within(self, low: float, high: float) -> float:
        sign = 1.0 if self._direction is Direction.REMOVE else -1.0
        least, most = np.sort(unsampled(sign * np.array([low, high]), self._release.rate))
        return laplace_masses(self._release, self._direction, rule=FINE_RULE, within=(least, most)).mean()


class SampledGaussianLoss(_Loss, PoissonSubsampledGaussianMechanism):  # type: ignore[misc]
    """The privacy loss of a Gaussian release on a sample, with an exact mean, in both directions; the library has
    removal alone, and beside unsampled pure steps adding a unit can cost more.

    Where a unit is removed no loss is below log(1 - rate), and much of the mass lies just above. For rates over about
    .1 the library's integral misses that mass, and its own check then refuses the grid.
    """

    def __init__(self, release: SampledGaussian, direction: Direction) -> None:
        _Loss.__init__(self, release, direction)
        self._noise, self._rate = release.noise_multiplier, release.rate
        PoissonSubsampledGaussianMechanism.__init__(self, self._rate, self._noise)

    def cdf(self, t: Floats) -> Floats:
        if self._direction is Direction.REMOVE:
            return np.asarray(super().cdf(t))
        return np.asarray(norm.sf(self._output(-np.asarray(t, dtype=np.float64)) / self._noise))

    def mean_within(self, low: float, high: float) -> float:
        removed = self._direction is Direction.REMOVE
        first, last = self._output(np.array([low, high] if removed else [-high, -low]))
        start, end = max(first, -_TAIL * self._noise), min(last, 1.0 + _TAIL * self._noise)
        pieces = np.linspace(start, end, math.ceil((end - start) / self._noise) + 1)
        half = np.diff(pieces)[:, None] / 2
        outputs = pieces[:-1, None] + half * (1.0 + _NODES)
        exponents = (outputs - 0.5) / self._noise**2
        losses = np.logaddexp(math.log1p(-self._rate), math.log(self._rate) + exponents)
        rate = self._rate if removed else 0.0
        density = rate * norm.pdf(outputs, 1.0, self._noise) + (1 - rate) * norm.pdf(outputs, 0.0, self._noise)
        mass = half * _WEIGHTS * density
        return float((mass * losses).sum() / mass.sum()) * (1 if removed else -1)

    def _output(self, loss: Floats) -> Floats:
        """The outputs with these losses of the mixture of N(0, noise^2) and N(1, noise^2) against N(0, noise^2)."""
        over = np.maximum(np.expm1(np.minimum(loss, _TAIL)) + self._rate, 0.0)
        with np.errstate(divide="ignore"):
            exponent = np.log(over / self._rate) + np.maximum(0.0, loss - _TAIL)
        return np.asarray(exponent * self._noise**2 + 0.5)


class _Truncated(PrivacyRandomVariableTruncated):
    """The library's truncated loss, with the exact mean of `_Loss`."""

    def mean(self) -> float:
        if isinstance(self.prv, _Loss):
            return self.prv.mean_within(self.t_min, self.t_max)
        return float(super().mean())


class _Accountant(PRVAccountant):
    """`PRVAccountant` with `_Truncated` losses; mesh and domain are the library's (theorem 5.5, remark 5.6)."""

    def __init__(self, prvs: list[PrivacyRandomVariable], counts: list[int], eps_error: float, delta_error: float):
        self.eps_error, self.delta_error = eps_error, delta_error
        self.prvs, self.max_self_compositions = prvs, counts
        size = compute_safe_domain_size(prvs, counts, eps_error=eps_error, delta_error=delta_error)
        mesh = eps_error / np.sqrt(sum(counts) / 2 * np.log(12 / delta_error))
        domain = Domain.create_aligned(-size, size, mesh)
        truncated = [_Truncated(prv, domain.t_min(), domain.t_max()) for prv in prvs]
        self.composer = Heterogeneous([CellCentred().discretise(each, domain) for each in truncated])


def _variable(primitive: Primitive, direction: Direction) -> PrivacyRandomVariable:
    match primitive:
        case SampledGaussian(noise, 1.0):
            return GaussianMechanism(noise_multiplier=noise)
        case SampledGaussian():
            return SampledGaussianLoss(primitive, direction)
        case SampledPure():
            return _PureLoss(primitive, direction)
        case SampledLaplace():
            return LaplaceLoss(primitive, direction if primitive.rate < 1 else Direction.REMOVE)
        case Concentrated():
            raise TypeError("zCDP has no privacy loss.")


def _bounds(form: NormalForm, delta: float, error: float) -> Bounds:
    counts = [count for _, count in form.primitives]
    found = []
    for direction in dict.fromkeys(itertools.chain(*map(directions, form.kinds))):
        variables = [_variable(primitive, direction) for primitive, _ in form.primitives]
        lower, _, upper = _Accountant(variables, counts, error, delta / 1000).compute_epsilon(delta, counts)
        found.append(Bounds(max(0.0, float(lower)), max(0.0, float(upper))))
    return Bounds(max(each.lower for each in found), max(each.upper for each in found))


def within_reach(form: NormalForm, delta: float, epsilon: float) -> bool:
    """True if the library can answer in a second or two with an error of at most a hundredth of epsilon.

    Args:
        epsilon: an estimate of the answer.
    """
    error = _error(epsilon)
    points = 2 * (_MARGIN + epsilon) / error * math.sqrt(form.count / 2 * math.log(12e3 / delta))
    steps = max((each.steps for each in form.kinds if isinstance(each, SampledPure)), default=1)
    return error > _FINEST and points * len(form.kinds) <= _MOST_POINTS and steps <= _MOST_STEPS


def _error(epsilon: float) -> float:
    return max(_FINEST, min(0.005, 0.01 * epsilon))


@functools.lru_cache(maxsize=512)
def epsilon(form: NormalForm, delta: float) -> Bounds | None:
    """Bounds on epsilon at `delta`; None if the library's own checks refuse its grid.

    Each bound is within min(.005, epsilon / 100) of the library's estimate, or within 1e-4 for epsilon below .01.
    """
    error = _COARSE
    try:
        # Coarse passes find the size of epsilon, from which the error to ask for follows.
        while True:
            found = _bounds(form, delta, error)
            wanted = _error(found.lower)
            if error <= wanted:
                return found
            error = max(wanted, error / 20)
    except (RuntimeError, ValueError, AssertionError):
        return None
