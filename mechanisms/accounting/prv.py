"""prv-accountant (Gopi, Lee, Wutschitz 2021): two-sided numerical bounds; its upper bound is what is claimed."""

from __future__ import annotations

import functools

from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import (
    GaussianMechanism,
    PoissonSubsampledGaussianMechanism,
    PrivacyRandomVariable,
)

from mechanisms.accounting.bounds import Bounds
from mechanisms.accounting.normal_form import NormalForm, Primitive
from mechanisms.errors import AccountingError

NAME = "prv"
_COARSE = 0.1


def _random_variable(primitive: Primitive) -> PrivacyRandomVariable:
    if primitive.rate == 1.0:
        return GaussianMechanism(noise_multiplier=primitive.noise_multiplier)
    return PoissonSubsampledGaussianMechanism(
        noise_multiplier=primitive.noise_multiplier, sampling_probability=primitive.rate
    )


def _bounds(form: NormalForm, delta: float, error: float) -> Bounds:
    counts = [count for _, count in form.primitives]
    accountant = PRVAccountant(
        prvs=[_random_variable(primitive) for primitive, _ in form.primitives],
        max_self_compositions=counts,
        eps_error=error,
        delta_error=delta / 1000,
    )
    lower, _, upper = accountant.compute_epsilon(delta, counts)
    return Bounds(max(0.0, float(lower)), float(upper))


@functools.lru_cache(maxsize=512)
def epsilon(form: NormalForm, delta: float) -> Bounds:
    """Bounds on epsilon at `delta`, at most min(.005, epsilon / 100) wide to either side.

    Raises:
        AccountingError: the noise is too small for a numerical answer (epsilon in the hundreds).
    """
    try:
        # A coarse pass finds the size of epsilon, from which the error to ask for follows.
        rough = _bounds(form, delta, _COARSE)
        if rough.upper > 2 * _COARSE:
            return _bounds(form, delta, min(0.005, 0.01 * rough.lower) if rough.lower > 0.1 else 0.001)
        return _bounds(form, delta, 0.0005)
    except (RuntimeError, ValueError, AssertionError) as error:
        message = "The noise is too small for an accountant to bound epsilon: raise the noise or lower the rate."
        raise AccountingError(message) from error
