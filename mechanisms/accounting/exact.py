"""The accountant `exact` of a single release: delta in closed form, and an integral as its check."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import binom

from mechanisms.accounting.losses import Direction, masses
from mechanisms.accounting.normal_form import (
    Bounds,
    NormalForm,
    Primitive,
    SampledGaussian,
    SampledLaplace,
    SampledPure,
)

NAME, CHECK = "exact", "integral"
_ROUNDING = 1e-6
"""A relative error of delta that exceeds the float error of the distributions' tails."""


def single(form: NormalForm) -> Primitive | None:
    """The single release that costs as much as a list of events; None if no such release is known.

    Gaussian releases that all units join equal one Gaussian release (Dong, Roth, Su 2019). Equal pure steps that all
    units join equal the rounds of one randomised response.
    """
    gaussians = [(each, count) for each, count in form.primitives if isinstance(each, SampledGaussian)]
    if len(gaussians) == len(form.primitives) and all(each.rate == 1.0 for each, _ in gaussians):
        return SampledGaussian(1 / math.sqrt(sum(count / each.noise_multiplier**2 for each, count in gaussians)), 1.0)
    [(first, count), *others] = form.primitives
    if isinstance(first, SampledPure) and first.rate == 1.0 and not others:
        return SampledPure(first.epsilon, first.steps * count, 1.0)
    return first if count == 1 and not others else None


def _release(form: NormalForm) -> Primitive:
    if (found := single(form)) is None:
        raise ValueError("Several releases have no closed form.")
    return found


@functools.lru_cache(maxsize=512)
def epsilon(form: NormalForm, delta: float) -> Bounds:
    """Bounds on the epsilon of a single release at `delta`, which allow for rounding.

    Raises:
        ValueError: the form equals no single release.
    """
    release = _release(form)
    lower, upper = (_solved(release, delta * (1 + each * _ROUNDING)) for each in (1, -1))
    return Bounds(lower * (1 - _ROUNDING**2), upper * (1 + _ROUNDING**2))


def _log_delta(release: Primitive, epsilon: float) -> float:
    """Log of delta at an epsilon of at least 0, in closed form, if everybody joins."""
    match release:
        case SampledGaussian(multiplier):  # Balle and Wang 2018, theorem 8
            half, middle = 1 / (2 * multiplier), epsilon * multiplier
            joined, apart = float(log_ndtr(half - middle)), float(log_ndtr(-half - middle))
        case SampledLaplace(scale):  # 1 - e^((epsilon - 1 / b) / 2)
            return _log_difference(0.0, (epsilon - 1 / scale) / 2)
        case SampledPure(step, steps):  # the number of truthful rounds (Kairouz, Oh, Viswanath 2015)
            truths = math.floor((epsilon / step + steps) / 2)
            joined, apart = (float(binom.logsf(truths, steps, 1 / (1 + math.exp(side * step)))) for side in (-1, 1))
        case _:
            raise TypeError(f"{type(release).__name__} has no closed form.")
    return _log_difference(joined, epsilon + apart)


def _log_difference(larger: float, smaller: float) -> float:
    """Log of `e^larger - e^smaller`; minus infinity if the difference is lost in rounding."""
    return larger + math.log(-math.expm1(smaller - larger)) if smaller < larger else -math.inf


# Both directions of a sampled release follow from the unsampled release, which is symmetric.
def _solved(release: Primitive, delta: float) -> float:
    def excess(epsilon: float) -> float:
        return max(max(_removed(release, epsilon), _added(release, epsilon)) - math.log(delta), -1e9)

    low, high = 0.0, 1e-12
    if excess(low) <= 0:
        return 0.0
    while excess(high) > 0:
        low, high = high, 2 * high
    return float(brentq(excess, low, high, rtol=1e-14, xtol=1e-300))


def _removed(release: Primitive, epsilon: float) -> float:
    """The log of `q` times delta at `log(1 + (e^epsilon - 1) / q)`."""
    rate = release.rate
    if rate == 1.0:
        return _log_delta(release, epsilon)
    if epsilon < 1:
        return math.log(rate) + _log_delta(release, math.log1p(math.expm1(epsilon) / rate))
    unsampled = epsilon - math.log(rate) + math.log1p((rate - 1) * math.exp(-epsilon))
    return math.log(rate) + _log_delta(release, unsampled)


def _added(release: Primitive, epsilon: float) -> float:
    """The log of `l` times delta at `log(q e^epsilon / l)`, where `l = 1 - (1 - q) e^epsilon`; minus infinity for
    `l <= 0`."""
    rate = release.rate
    left = rate - (1 - rate) * math.expm1(min(epsilon, 700.0))
    return math.log(left) + _log_delta(release, epsilon + math.log(rate / left)) if left > 0 else -math.inf


@functools.lru_cache(maxsize=512)
def integral(form: NormalForm, delta: float) -> float:
    """The epsilon of a single release at `delta`, from the distribution of its privacy loss.

    Raises:
        ValueError: the form equals no single release.
    """
    release = _release(form)
    directions = (Direction.REMOVE,) if release.rate == 1.0 else tuple(Direction)
    return max(_integral(release, direction, delta) for direction in directions)


def _integral(release: Primitive, direction: Direction, delta: float) -> float:
    law = masses(release, direction, 1e-7 * delta)  # the part of delta for omitted losses
    order = np.argsort(law.losses)
    losses, log_upper = law.losses[order], law.log_masses[order]
    upper = np.cumsum(np.exp(log_upper)[::-1])[::-1]
    lower = np.cumsum(np.exp(log_upper - losses)[::-1])[::-1]
    # Delta at a loss depends on larger losses only, and is linear in e^epsilon between two losses.
    left = delta - law.beyond
    with np.errstate(over="ignore", invalid="ignore"):  # losses of many hundreds
        place = int(np.argmax(np.append(upper - np.exp(losses) * lower <= left, True)))
    if place == len(losses):  # so small a delta is lost in rounding
        return max(0.0, float(losses[-1]))
    return max(0.0, math.log((upper[place] - left) / lower[place])) if upper[place] > left else 0.0
