"""Privacy loss distributions from dp-accounting: covers adding and removing a unit, and checks the claim."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld.pld_pmf import PLDPmf, create_pmf_pessimistic_connect_dots
from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_gaussian_mechanism,
    from_laplace_mechanism,
    identity,
)

from mechanisms.accounting.losses import Direction, DiscretePair, dominating_pair
from mechanisms.accounting.normal_form import NormalForm, Primitive, SampledGaussian, SampledLaplace, SampledPure
from mechanisms.errors import AccountingError

NAME = "pld"
_INTERVAL = 1e-4
_MOST_POINTS = 4e6
"""Between the least and the largest loss of one primitive: losses of hundreds, which no claim comes near."""


def supports(primitive: Primitive) -> bool:
    """Whether a dominating pair is known; it is not for zCDP, which is weaker than a Gaussian's guarantee."""
    return type(primitive) in _DISTRIBUTIONS


def _gaussian(primitive: SampledGaussian, interval: float) -> PrivacyLossDistribution:
    return from_gaussian_mechanism(
        standard_deviation=primitive.noise_multiplier,
        sensitivity=1.0,
        value_discretization_interval=interval,
        sampling_prob=primitive.rate,
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
    )


def _laplace(primitive: SampledLaplace, interval: float) -> PrivacyLossDistribution:
    return from_laplace_mechanism(  # sampled, it covers adding and removing as they are
        parameter=primitive.scale, value_discretization_interval=interval, sampling_prob=primitive.rate
    )


def _pure(primitive: SampledPure, interval: float) -> PrivacyLossDistribution:
    pmfs = [_connect_dots(dominating_pair(primitive, direction), interval) for direction in Direction]
    return PrivacyLossDistribution(*pmfs)


def _connect_dots(pair: DiscretePair, interval: float) -> PLDPmf:
    # Delta is linear in e^epsilon between two losses, so that the grid points beside each loss carry all of it.
    scaled = pair.losses / interval
    if np.ptp(scaled) > _MOST_POINTS:
        raise AccountingError("The noise is too small for an accountant to bound epsilon: lower a step's epsilon.")
    grid = np.unique(np.concatenate([np.floor(scaled), np.ceil(scaled)]).astype(np.int64))
    return create_pmf_pessimistic_connect_dots(
        interval, grid, pair.hockey_stick(np.asarray(grid * interval, dtype=np.float64))
    )


_DISTRIBUTIONS: dict[type[Primitive], Callable[[Any, float], PrivacyLossDistribution]] = {
    SampledGaussian: _gaussian,
    SampledLaplace: _laplace,
    SampledPure: _pure,
}


@functools.lru_cache(maxsize=256)
def _distribution(primitive: Primitive, interval: float) -> PrivacyLossDistribution:
    return _DISTRIBUTIONS[type(primitive)](primitive, interval)


@functools.lru_cache(maxsize=512)
def epsilon(form: NormalForm, delta: float, interval: float = _INTERVAL) -> float:
    """Epsilon at `delta`, discretised pessimistically at `interval` by connected dots (Doroshenko et al. 2022)."""
    total = identity(value_discretization_interval=interval)
    for primitive, count in form.primitives:
        single = _distribution(primitive, interval)
        total = total.compose(single.self_compose(count) if count > 1 else single)
    return float(total.get_epsilon_for_delta(delta))
