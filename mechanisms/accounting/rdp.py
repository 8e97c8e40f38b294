"""Renyi differential privacy at fixed orders: what the ledger's filter adds up over adaptively chosen runs."""

from __future__ import annotations

import functools
import math

from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

from mechanisms.accounting.normal_form import NormalForm, Primitive


@functools.lru_cache(maxsize=4096)
def _renyi(primitive: Primitive, order: float) -> float:
    mechanism = PoissonSubsampledGaussianMechanism(
        sampling_probability=primitive.rate, noise_multiplier=primitive.noise_multiplier
    )
    return float(mechanism.rdp(order))


def renyi(form: NormalForm, order: float) -> float:
    """Renyi divergence of order `order` > 1 that the events allow (sampled Gaussians: Mironov, Talwar, Zhang 2019)."""
    return sum(count * _renyi(primitive, order) for primitive, count in form.primitives)


def to_epsilon(divergence: float, order: float, delta: float) -> float:
    """Epsilon at `delta` of a mechanism with that Renyi divergence (Canonne, Kamath, Steinke 2020, prop. 12)."""
    return max(0.0, divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))
