"""Renyi differential privacy: at fixed orders what the ledger adds up over runs, at the best one a bound on epsilon."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism
from scipy.optimize import brentq

from mechanisms.accounting.losses import LaplaceLoss, Total, directions, dominating_pair
from mechanisms.accounting.normal_form import (
    Concentrated,
    NormalForm,
    Primitive,
    SampledGaussian,
    SampledLaplace,
    SampledPure,
)


@functools.lru_cache(maxsize=16384)
def renyi_of_event(primitive: Primitive, order: float) -> float:
    """Renyi divergence of order `order` > 1 that one event allows."""
    match primitive:
        case SampledGaussian(noise, rate):
            mechanism = PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=noise)
            return float(mechanism.rdp(order))
        case SampledLaplace():
            return max(LaplaceLoss(primitive, direction).renyi(order) for direction in directions(primitive))
        case SampledPure():
            return max(dominating_pair(primitive, direction).renyi(order) for direction in directions(primitive))
        case Concentrated(rho):
            return rho * order


def renyi(form: NormalForm, order: float) -> float:
    """Renyi divergence of order `order` > 1 that the events allow.

    Sampled Gaussians: Mironov, Talwar, Zhang 2019. Laplace: Mironov 2017, integrated where it is sampled. Pure steps:
    exact, of their dominating pair. zCDP: its definition.
    """
    return sum(count * renyi_of_event(primitive, order) for primitive, count in form.primitives)


def to_epsilon(divergence: float, order: float, delta: float) -> float:
    """Epsilon at `delta` of a mechanism with that Renyi divergence (Canonne, Kamath, Steinke 2020, prop. 12)."""
    return max(0.0, divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))


NAME = "rdp"
_LEFT_OUT = 1e-7
"""The part of delta for losses that are left out of an integral."""


def tail_of(form: NormalForm, delta: float) -> float:
    """The probability of a loss that may be left out of a list's laws."""
    return _LEFT_OUT * delta / form.count


def best(total: Total, delta: float) -> tuple[float, float]:
    """Order less 1, and the epsilon at `delta` that follows from its divergence, where that is least.

    Where losses that may be anything use up delta, no epsilon follows.
    """
    left = delta - total.beyond
    if left <= 0:
        return 1.0, math.inf

    def falling(tilt: float) -> float:
        """The slope of `to_epsilon`, but for its size."""
        return math.log(left) - total.cumulant(tilt) + tilt * total.mean(tilt) + math.log1p(tilt)

    tilt = root(falling)
    return tilt, to_epsilon(total.cumulant(tilt) / tilt, tilt + 1, left)


def tilt_at(total: Total, epsilon: float) -> float:
    """Order less 1 at which the divergence bounds delta at `epsilon` best."""
    return root(lambda tilt: total.mean(tilt) - math.log1p(1 / tilt) - epsilon)


def root(rising: Callable[[float], float]) -> float:
    """Where a function of a positive number rises above 0, within a relative 1e-4; or an end of those that matter."""

    def at(log: float) -> float:
        return rising(math.exp(log))

    low = high = 0.0
    while at(low) > 0 and low > _LOG_TILTS[0]:
        low, high = low - 1.0, low
    while at(high) <= 0 and high < _LOG_TILTS[1]:
        low, high = high, high + 1.0
    if not at(low) <= 0 < at(high):
        return math.exp(high if at(high) <= 0 else low)
    return math.exp(brentq(at, low, high, xtol=1e-4))


_LOG_TILTS = (-30.0, 30.0)


@functools.lru_cache(maxsize=512)
def epsilon(form: NormalForm, delta: float) -> float:
    """Epsilon at `delta` from the Renyi divergence of the best order, integrated; an upper bound, and not a close one.

    Of a Gaussian removing a unit has the larger divergence (Mironov, Talwar, Zhang 2019).
    """
    found = {direction for primitive in form.kinds for direction in directions(primitive)}
    totals = [Total.of(form, direction, tail_of(form, delta)) for direction in found]
    return max(best(total, delta)[1] for total in totals)
