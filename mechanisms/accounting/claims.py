"""The claim of a run, the least noise that meets a target, and the claim's figures for people."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.special import expit

from mechanisms.accounting import pld, prv, zcdp
from mechanisms.accounting.normal_form import Bounds, NormalForm, Primitive, normal_form
from mechanisms.errors import AccountingError, UsageError
from mechanisms.privacy_events import Composed
from mechanisms.rounding import rounded_up

# The claim of a run: one accountant's upper bound, checked by another.

AGREEMENT = 0.02
"""Relative error allowed to the check, beside the claim's own error bounds."""
PURE_SUM = "sum of pure epsilons"


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


@dataclass(frozen=True)
class _Method:
    """Two accountants that support the same primitives: one claims, the other checks.

    `estimate` is a quick accountant for calibration.
    """

    name: str
    check_name: str
    supports: Callable[[Primitive], bool]
    epsilon: Callable[[NormalForm, float], Bounds]
    check: Callable[[NormalForm, float], float]
    estimate: Callable[[NormalForm, float], float]


_METHODS = (
    _Method(
        name=prv.NAME,
        check_name=pld.NAME,
        supports=lambda primitive: prv.supports(primitive) and pld.supports(primitive),
        epsilon=prv.epsilon,
        check=pld.epsilon,
        estimate=lambda form, delta: pld.epsilon(form, delta, 1e-3),
    ),
    _Method(
        name=zcdp.NAME,
        check_name=zcdp.CHECK,
        supports=zcdp.supports,
        epsilon=zcdp.epsilon,
        check=zcdp.check,
        estimate=zcdp.check,
    ),
)


def undominated(event: Composed) -> list[NormalForm]:
    """The lists of a composed event that can have the largest epsilon."""
    forms = list(dict.fromkeys(normal_form(events) for events in event.distinct()))
    return [form for form in forms if not any(other is not form and other.dominates(form) for other in forms)]


def _parts(form: NormalForm, delta: float) -> tuple[list[tuple[_Method, NormalForm]], float]:
    """The events that each method accounts for, with the delta that each may use.

    zCDP events are not part of a privacy loss distribution. The groups therefore add up by basic composition, each at
    its equal share of the delta that failures leave.
    """
    remaining = delta - form.failure
    if remaining <= 0:
        raise AccountingError("Failure probabilities use up all of delta: raise delta or lower the number of draws.")
    parts = [(method, part) for method in _METHODS if (part := form.part(method.supports)).primitives]
    return parts, remaining / max(1, len(parts))


def estimate(form: NormalForm, delta: float) -> float:
    """Epsilon of one list of events at `delta` within about a percent, quickly."""
    parts, share = _parts(form, delta)
    return sum(method.estimate(part, share) for method, part in parts)


def _claim_part(method: _Method, form: NormalForm, delta: float) -> Claim:
    """One accountant's upper bound, or the plain sum of pure epsilons where that is smaller."""
    bounds, check = method.epsilon(form, delta), method.check(form, delta)
    slack = AGREEMENT * bounds.upper
    if not (bounds.lower - slack <= check <= bounds.upper + slack):
        raise AccountingError(
            f"Two accountants disagree: {method.name} finds {bounds.lower:.4g} to {bounds.upper:.4g}, "
            f"{method.check_name} {check:.4g}. Nothing is claimed; change the noise or the rate."
        )
    name = PURE_SUM if form.pure_epsilon < bounds.upper else method.name
    return Claim(_upper_part(method, form, delta), delta, name, check, method.check_name)


def _upper_part(method: _Method, form: NormalForm, delta: float) -> float:
    return min(form.pure_epsilon, method.epsilon(form, delta).upper)


def _claim_list(form: NormalForm, delta: float) -> Claim:
    parts, share = _parts(form, delta)
    if not parts:
        return Claim(0.0, delta, prv.NAME, 0.0, pld.NAME)
    claims = [_claim_part(method, part, share) for method, part in parts]
    return Claim(
        epsilon=sum(each.epsilon for each in claims),
        delta=delta,
        accountant=" + ".join(each.accountant for each in claims),
        check=sum(each.check for each in claims),
        check_accountant=" + ".join(each.check_accountant for each in claims),
    )


def _upper(form: NormalForm, delta: float) -> float:
    """The epsilon that `claim` gives one list, without the second accountant's check, which takes most of its time."""
    parts, share = _parts(form, delta)
    return sum(_upper_part(method, part, share) for method, part in parts)


def claim(event: Composed, delta: float) -> Claim:
    """Account for a run whose events were all fixed before it: each list composes, then the maximum is taken.

    Raises:
        AccountingError: the accountants disagree beyond their error bounds, or cannot bound the event.
    """
    claims = [_claim_list(form, delta) for form in undominated(event)]
    return max(claims, key=lambda each: each.epsilon)


# The least noise that meets a privacy target.

_LARGEST = 1e7
_STEP = 1.002
_LEAP, _LEAPS = 1.05, 12


def calibrate_noise(event_at: Callable[[float], Composed], target: PrivacyTarget, smallest: float = 1e-3) -> float:
    """The smallest noise parameter whose run claims at most `target.epsilon` at `target.delta`.

    Bisects on the fast accountant's epsilon, which falls as the parameter grows, then confirms with the claim's.

    Args:
        event_at: the run's event at a value of the noise parameter.
        target: what the run may cost.
        smallest: the parameter's lower end, returned where even that meets the target.

    Returns:
        The parameter; its claim lies within about 1.5% under the target.

    Raises:
        AccountingError: no parameter up to 1e7 meets the target.
    """

    def excess(log_noise: float) -> float:
        event = event_at(max(smallest, math.exp(log_noise)))
        worst = _largest(estimate, event, target.delta)
        return math.log(max(worst, 1e-9) / target.epsilon)

    low = high = 0.0
    while excess(high) > 0:
        low, high = high, high + 1.0
        if high > math.log(_LARGEST):
            raise AccountingError("No amount of noise meets this epsilon and delta with so many releases.")
    while excess(low) <= 0:
        if low == math.log(smallest):
            return smallest
        low, high = max(low - 1.0, math.log(smallest)), low
    noise = math.exp(brentq(excess, low, high, xtol=5e-4))
    return _confirmed(event_at, target, noise)


def _largest(epsilon: Callable[[NormalForm, float], float], event: Composed, delta: float) -> float:
    return max(epsilon(form, delta) for form in undominated(event))


def _confirmed(event_at: Callable[[float], Composed], target: PrivacyTarget, noise: float) -> float:
    """The first noise, from the estimate upwards, whose claim meets the target."""
    for _ in range(_LEAPS):
        try:
            while _largest(_upper, event_at(noise), target.delta) > target.epsilon:
                noise *= _STEP
            claim(event_at(noise), target.delta)  # raises where the two accountants disagree
            return noise
        except AccountingError:
            noise *= _LEAP  # the accountants have gaps where there is little noise; above them there is a claim
    raise AccountingError("The accountants cannot confirm any noise for this epsilon: choose a smaller one.")


def cost_in_words(epsilon: float, delta: float) -> str:
    """A cost in words, rounded up."""
    return f"epsilon {rounded_up(epsilon, 4)}, delta {rounded_up(delta, 2)}"


# What a claim means to somebody who guesses whether a unit took part.

_NEARLY = 0.99
"""A share of right guesses from which on one decimal would hide what is left to chance."""


def best_guess(epsilon: float, delta: float) -> float:
    """The largest accuracy of guesses whether a unit was included by a fair coin: `(e^eps + d) / (1 + e^eps)`.

    It is the mean of true positive and true negative rate where (epsilon, delta) allows their sum to be largest.
    """
    return float(expit(epsilon) + delta * expit(-epsilon))


def best_guess_in_percent(epsilon: float, delta: float) -> str:
    """`best_guess` in percent, rounded up, so that it stays a bound; one decimal, or three from 99 percent on."""
    right = best_guess(epsilon, delta)
    digits = 1 if right < _NEARLY else 3
    return f"{min(100.0, math.ceil(100 * right * 10**digits) / 10**digits):.{digits}f}"
