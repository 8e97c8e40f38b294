"""The claim of a run: one accountant's upper bound, checked by another."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechanisms.accounting import pld, prv
from mechanisms.accounting.bounds import Bounds
from mechanisms.accounting.normal_form import NormalForm, normal_form
from mechanisms.errors import AccountingError, UsageError
from mechanisms.privacy_events import Composed

AGREEMENT = 0.02
"""Relative error allowed to the check, beside the claim's own error bounds."""


@dataclass(frozen=True)
class PrivacyTarget:
    """What a run may cost: (epsilon, delta) under add-or-remove of one unit."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise UsageError("Epsilon must be a positive number.")
        if not 0 < self.delta < 1:
            raise UsageError("Delta must lie strictly between 0 and 1.")


@dataclass(frozen=True)
class Claim:
    """Epsilon claimed at `delta`, the accountant that claims it, and the one that checked it."""

    epsilon: float
    delta: float
    accountant: str
    check: float
    check_accountant: str


def undominated(event: Composed) -> list[NormalForm]:
    """The lists of a composed event that can have the largest epsilon."""
    forms = list(dict.fromkeys(normal_form(events) for events in event.distinct()))
    return [form for form in forms if not any(other is not form and other.dominates(form) for other in forms)]


def _claim_list(form: NormalForm, delta: float) -> Claim:
    remaining = delta - form.failure
    if remaining <= 0:
        raise AccountingError("Failure probabilities use up all of delta: raise delta or lower the number of draws.")
    if not form.primitives:
        return Claim(0.0, delta, prv.NAME, 0.0, pld.NAME)
    bounds = prv.epsilon(form, remaining)
    check = pld.epsilon(form, remaining)
    slack = AGREEMENT * bounds.upper
    if not (bounds.lower - slack <= check <= bounds.upper + slack):
        raise AccountingError(
            f"Two accountants disagree: prv finds {bounds.lower:.4g} to {bounds.upper:.4g}, pld {check:.4g}. "
            "Nothing is claimed; change the noise or the rate."
        )
    return Claim(bounds.upper, delta, prv.NAME, check, pld.NAME)


def claim(event: Composed, delta: float) -> Claim:
    """Account a run whose events were all fixed before it: each list composes, the maximum is taken last.

    Raises:
        AccountingError: the accountants disagree beyond their error bounds, or cannot bound the event.
    """
    claims = [_claim_list(form, delta) for form in undominated(event)]
    return max(claims, key=lambda each: each.epsilon)


__all__ = ["Bounds", "Claim", "PrivacyTarget", "claim", "undominated"]
