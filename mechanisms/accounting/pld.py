"""The accountant `pld`: dp-accounting's privacy loss distributions, for adding and for removing a unit."""

from __future__ import annotations

import functools

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld.pld_pmf import PLDPmf, create_pmf, create_pmf_pessimistic_connect_dots
from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_gaussian_mechanism,
    from_laplace_mechanism,
    identity,
)

from mechanisms.accounting.losses import Direction, Masses, Rounded, Total, masses
from mechanisms.accounting.normal_form import (
    Concentrated,
    NormalForm,
    Primitive,
    SampledGaussian,
    SampledLaplace,
    SampledPure,
)

NAME = "pld"
INTERVAL = 1e-4
_FINE = 1e-11
"""With a smaller interval for each release the rounding of deltas becomes visible in the masses of the grid."""
_CUT, _ROUNDING, _TAIL = 1e-13, 1e-14, 1e-22
"""Least delta beside the tails that a composition cuts off; least delta for each release; tail of one release."""
_QUICK_POINTS, _QUICK_TOGETHER, _DEVIATIONS = 1e5, 1e6, 16
"""Points of one release, and of all of them together over so many standard deviations, that take a second or two."""


def _connect_dots(law: Masses, interval: float) -> PLDPmf:
    # Delta is linear in e^epsilon between two losses, so that the grid points beside each loss carry all of it.
    scaled = law.losses / interval
    grid = np.unique(np.concatenate([np.floor(scaled), np.ceil(scaled)]).astype(np.int64))
    deltas = law.hockey_stick(np.asarray(grid * interval, dtype=np.float64))
    return create_pmf_pessimistic_connect_dots(interval, grid, np.minimum(deltas + law.beyond, 1.0))


def points(form: NormalForm, interval: float = INTERVAL) -> float:
    """The number of grid points between the least and the largest loss of one release, which time and memory follow."""
    return max(float(np.ptp(law.losses)) for law, _ in _whole(form).parts) / interval


def quick_interval(form: NormalForm, step: float) -> float:
    """The interval nearest to `step` at which grids have so few points that composing takes a second or two."""
    together = _DEVIATIONS * _whole(form).spread / step
    return step * max(1.0, points(form, step) / _QUICK_POINTS, together / _QUICK_TOGETHER)


def _whole(form: NormalForm) -> Total:
    return Total.of(form, Direction.REMOVE, _TAIL)


def within_reach(form: NormalForm, delta: float) -> bool:
    """True if delta is much larger than the rounding of transforms and the tails that are cut off."""
    return delta >= max(_CUT, _ROUNDING * form.count)


@functools.lru_cache(maxsize=256)
def _distribution(primitive: Primitive, interval: float) -> PrivacyLossDistribution:
    match primitive:
        case SampledGaussian(noise, rate):
            return from_gaussian_mechanism(
                standard_deviation=noise,
                sensitivity=1.0,
                value_discretization_interval=interval,
                sampling_prob=rate,
                neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
            )
        case SampledLaplace(scale, rate):  # sampled, it covers adding and removing as they are
            return from_laplace_mechanism(parameter=scale, value_discretization_interval=interval, sampling_prob=rate)
        case SampledPure():
            pmfs = [_connect_dots(masses(primitive, direction, _TAIL), interval) for direction in Direction]
            return PrivacyLossDistribution(*pmfs)
        case Concentrated():
            raise TypeError("zCDP has no privacy loss distribution.")


@functools.lru_cache(maxsize=256)
def _finely(primitive: Primitive, interval: float) -> PrivacyLossDistribution:
    """On a grid so fine that differences of deltas, from which the library has the masses, are rounding alone."""
    pmfs = []
    for direction in Direction:
        law = masses(primitive, direction, _TAIL, interval)
        grid = Rounded.of(law, interval)
        held = dict(zip(range(grid.first, grid.first + len(grid.masses)), grid.masses, strict=True))
        # Dense: of sparse masses the library takes the number to the power of the releases first.
        pmfs.append(create_pmf(held, interval, law.beyond, pessimistic_estimate=True).to_dense_pmf())
    return PrivacyLossDistribution(*pmfs)


@functools.lru_cache(maxsize=512)
def epsilon(form: NormalForm, delta: float, interval: float = INTERVAL) -> float:
    """An upper bound on epsilon at `delta`, by connected dots on a grid (Doroshenko et al. 2022).

    Args:
        interval: the distance of grid points.
    """
    total = identity(value_discretization_interval=interval)
    fine = interval < _FINE * form.count
    for primitive, count in form.primitives:
        single = _finely(primitive, interval) if fine else _distribution(primitive, interval)
        total = total.compose(single.self_compose(count) if count > 1 else single)
    return float(total.get_epsilon_for_delta(delta))
