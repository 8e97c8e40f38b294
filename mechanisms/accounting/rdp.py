"""The accountant `rdp`: Renyi differential privacy.

The ledger adds divergences of fixed orders over runs; the divergence of the best order bounds epsilon. zCDP bounds the
divergence of every order, so that releases of which only a zCDP bound is known are claimed and checked here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from dp_accounting import ZCDpEvent
from dp_accounting.rdp import RdpAccountant
from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism
from scipy.optimize import brentq, minimize_scalar

from mechanisms.accounting.losses import (
    FINE_RULE,
    Direction,
    Total,
    directions,
    dominating_pair,
    laplace_masses,
    log_sum,
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

NAME, ZCDP_NAME = "rdp", "zcdp"


@functools.lru_cache(maxsize=16384)
def divergence(primitive: Primitive, direction: Direction, order: float) -> float:
    """The largest Renyi divergence that one event allows in one direction.

    Sources: Mironov, Talwar, Zhang 2019 for Gaussian releases; Mironov 2017, proposition 6, for Laplace releases, as an
    integral if they are sampled; the dominating pair for pure steps, exactly; the definition for zCDP.

    Args:
        order: above 1.
    """
    match primitive:
        case SampledGaussian(noise, rate):
            mechanism = PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=noise)
            return float(mechanism.rdp(order))
        case SampledLaplace(scale, 1.0):
            logs = [math.log(order) + (order - 1) / scale, math.log(order - 1) - order / scale]
            return (log_sum(np.array(logs)) - math.log(2 * order - 1)) / (order - 1)
        case SampledLaplace():
            return laplace_masses(primitive, direction, rule=FINE_RULE).cumulant(order - 1) / (order - 1)
        case SampledPure():
            return dominating_pair(primitive, direction).cumulant(order - 1) / (order - 1)
        case Concentrated(rho):
            return rho * order


def renyi(form: NormalForm, order: float) -> float:
    """The largest Renyi divergence of an order above 1 that the events allow together."""
    return sum(
        count * max(divergence(primitive, direction, order) for direction in directions(primitive))
        for primitive, count in form.primitives
    )


def to_epsilon(divergence: float, order: float, delta: float) -> float:
    """An epsilon at `delta` that follows from a Renyi divergence (Canonne, Kamath, Steinke 2020, proposition 12)."""
    return max(0.0, divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))


def tail_of(form: NormalForm, delta: float) -> float:
    """The probability of the outcomes that may be left out of each loss of a list."""
    return 1e-7 * delta / form.count


def best(total: Total, delta: float) -> tuple[float, float]:
    """The best order less 1, and the epsilon at `delta` that follows from its divergence.

    The epsilon is infinity if the outcomes that are left out of the loss use up delta.
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
    """The order less 1 whose divergence gives the smallest bound on delta at `epsilon`."""
    return root(lambda tilt: total.mean(tilt) - math.log1p(1 / tilt) - epsilon)


def root(rising: Callable[[float], float]) -> float:
    """The positive number at which a function rises above 0, to a relative 1e-4; else an end of the search range."""

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
    """An upper bound on epsilon at `delta`, from the Renyi divergence of the best order; it is not close.

    For Gaussian releases removing a unit has the larger divergence (Mironov, Talwar, Zhang 2019).
    """
    found = {direction for primitive in form.kinds for direction in directions(primitive)}
    totals = [Total.of(form, direction, tail_of(form, delta)) for direction in found]
    return max(best(total, delta)[1] for total in totals)


# No sampling amplifies zCDP, and a list's rho adds up.
def _rho(form: NormalForm) -> float:
    return sum(count * primitive.rho for primitive, count in form.primitives if isinstance(primitive, Concentrated))


def zcdp_epsilon(form: NormalForm, delta: float) -> Bounds:
    """The epsilon at `delta` of releases with zCDP bounds, by the best order of the conversion."""
    rho = _rho(form)
    found = _converted(rho, delta) if rho else 0.0
    return Bounds(found, found)


def _converted(rho: float, delta: float) -> float:
    def at(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return to_epsilon(rho * order, order, delta)

    low, high = math.log(1e-3), math.log(1e6)
    while True:
        found = minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        if found.x < high - 1 or high > 60.0:
            return float(found.fun)
        low, high = high - 2, high + 10  # so little rho that the best order lies there


def largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho, to a relative 1e-9, whose epsilon at `delta` is at most `epsilon`."""
    low, high = 0.0, epsilon
    while _converted(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _converted(middle, delta) <= epsilon else (low, middle)
    return low


def zcdp_check(form: NormalForm, delta: float) -> float:
    """The epsilon at `delta` of releases with zCDP bounds by dp-accounting, at orders around the best one."""
    rho = _rho(form)
    if rho == 0:
        return 0.0
    centre = max(1e-3, math.sqrt(math.log(1 / delta) / rho))
    orders = [1 + centre * 1.02**step for step in range(-120, 121)]
    return float(RdpAccountant(orders).compose(ZCDpEvent(rho)).get_epsilon(delta))
