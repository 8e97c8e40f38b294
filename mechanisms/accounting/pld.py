"""Privacy loss distributions from dp-accounting: covers adding and removing a unit, and checks the claim."""

from __future__ import annotations

import functools

from dp_accounting import NeighboringRelation
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism, identity

from mechanisms.accounting.normal_form import NormalForm, Primitive

NAME = "pld"
_INTERVAL = 1e-4


@functools.lru_cache(maxsize=256)
def _distribution(primitive: Primitive, interval: float) -> PrivacyLossDistribution:
    return from_gaussian_mechanism(
        standard_deviation=primitive.noise_multiplier,
        sensitivity=1.0,
        value_discretization_interval=interval,
        sampling_prob=primitive.rate,
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
    )


def epsilon(form: NormalForm, delta: float, interval: float = _INTERVAL) -> float:
    """Epsilon at `delta`, discretised pessimistically at `interval` by connected dots (Doroshenko et al. 2022)."""
    total = identity(value_discretization_interval=interval)
    for primitive, count in form.primitives:
        single = _distribution(primitive, interval)
        total = total.compose(single.self_compose(count) if count > 1 else single)
    return float(total.get_epsilon_for_delta(delta))
