"""Renyi differential privacy at fixed orders: what the ledger's filter adds up over adaptively chosen runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

from mechanisms.accounting.losses import LaplaceLoss, directions, dominating_pair
from mechanisms.accounting.normal_form import (
    Concentrated,
    NormalForm,
    Primitive,
    SampledGaussian,
    SampledLaplace,
    SampledPure,
)


def _gaussian(primitive: SampledGaussian, order: float) -> float:
    mechanism = PoissonSubsampledGaussianMechanism(
        sampling_probability=primitive.rate, noise_multiplier=primitive.noise_multiplier
    )
    return float(mechanism.rdp(order))


def _pure(primitive: SampledPure, order: float) -> float:
    return max(dominating_pair(primitive, direction).renyi(order) for direction in directions(primitive))


def _laplace(primitive: SampledLaplace, order: float) -> float:
    return max(LaplaceLoss(primitive, direction).renyi(order) for direction in directions(primitive))


def _concentrated(primitive: Concentrated, order: float) -> float:
    return primitive.rho * order


_DIVERGENCES: dict[type[Primitive], Callable[[Any, float], float]] = {
    SampledGaussian: _gaussian,
    SampledLaplace: _laplace,
    SampledPure: _pure,
    Concentrated: _concentrated,
}


@functools.lru_cache(maxsize=16384)
def renyi_of_event(primitive: Primitive, order: float) -> float:
    """Renyi divergence of order `order` > 1 that one event allows."""
    return _DIVERGENCES[type(primitive)](primitive, order)


def renyi(form: NormalForm, order: float) -> float:
    """Renyi divergence of order `order` > 1 that the events allow.

    Sampled Gaussians: Mironov, Talwar, Zhang 2019. Laplace: Mironov 2017, integrated where it is sampled. Pure steps:
    exact, of their dominating pair. zCDP: its definition.
    """
    return sum(count * renyi_of_event(primitive, order) for primitive, count in form.primitives)


def to_epsilon(divergence: float, order: float, delta: float) -> float:
    """Epsilon at `delta` of a mechanism with that Renyi divergence (Canonne, Kamath, Steinke 2020, prop. 12)."""
    return max(0.0, divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))
