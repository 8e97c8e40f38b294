"""The claim of a run, the least noise that meets a target, and the claim in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from scipy.optimize import brentq
from scipy.special import expit

from mechanisms.accounting import exact, pld, prv, rdp, tilted
from mechanisms.accounting.normal_form import Bounds, Concentrated, NormalForm, normal_form
from mechanisms.errors import AccountingError, UsageError
from mechanisms.privacy_events import Composed
from mechanisms.rounding import rounded_up

AGREEMENT = 0.02
"""The relative difference of two accountants, beyond the claiming one's own error, up to which there is no remark."""
_ALIKE = 1e-4
"""The relative difference of two accountants that may come from floats, or from a grid of orders."""
PURE_SUM = "sum of pure epsilons"
_LARGEST_EPSILON = 300.0
_LEAST_DELTA = 1e-100
_TOO_LITTLE_NOISE = "Epsilon is above 300, which promises nothing: raise the noise, or lower the rate or the tokens."


@dataclass(frozen=True)
class PrivacyTarget:
    """The largest cost of a run: (epsilon, delta) under addition or removal of one unit."""

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

    @property
    def accountants(self) -> list[tuple[str, str]]:
        """For each kind of events, the claiming and the checking accountant."""
        return list(zip(self.accountant.split(_PLUS), self.check_accountant.split(_PLUS), strict=False))

    @property
    def remark(self) -> str | None:
        """A remark that the accountants differ and the larger bound is claimed; None if they agree."""
        by_check = any(claimed in (pld.NAME, rdp.NAME, exact.CHECK) for claimed, _ in self.accountants)
        if not by_check or self.epsilon <= (1 + AGREEMENT) * self.check + 1e-9:
            return None
        return (
            f"The accountants differ: '{self.accountant}' finds {rounded_up(self.epsilon, 4)}, "
            f"'{self.check_accountant}' {rounded_up(self.check, 4)}. Both are upper bounds; the larger is claimed."
        )


_PLUS = " + "


@dataclass(frozen=True)
class _Method:
    """Two accountants for the same events: one claims, the other checks; both compute upper bounds.

    If the claiming accountant returns None, another method has to be used; `estimate` is a quick approximation of the
    larger of the two.
    """

    name: str
    check_name: str
    epsilon: Callable[[NormalForm, float], Bounds | None]
    check: Callable[[NormalForm, float], float]
    estimate: Callable[[NormalForm, float], float]


def _exact(form: NormalForm, delta: float) -> float:
    return exact.epsilon(form, delta).upper


def _tilted(form: NormalForm, delta: float) -> float:
    return tilted.epsilon(form, delta).upper


def _on_tilted_grid(form: NormalForm, delta: float) -> float:
    return pld.epsilon(form, delta, pld.quick_interval(form, tilted.epsilon(form, delta).step))


def _tilted_or_renyi(form: NormalForm, delta: float) -> float:
    return max(_tilted(form, delta), rdp.epsilon(form, delta))


_CONCENTRATED = _Method(rdp.ZCDP_NAME, rdp.NAME, rdp.zcdp_epsilon, rdp.zcdp_check, rdp.zcdp_check)
_PRV = _Method(prv.NAME, pld.NAME, prv.epsilon, pld.epsilon, partial(pld.epsilon, interval=1e-3))
_EXACT = _Method(exact.NAME, exact.CHECK, exact.epsilon, exact.integral, _exact)
_TILTED = _Method(tilted.NAME, pld.NAME, tilted.epsilon, _on_tilted_grid, _tilted)
_SMALL_DELTA = _Method(tilted.NAME, rdp.NAME, tilted.epsilon, rdp.epsilon, _tilted_or_renyi)


def _methods(form: NormalForm, delta: float) -> Iterator[_Method]:
    """The methods for events of one kind, the preferred one first; the last one always answers."""
    if any(isinstance(each, Concentrated) for each in form.kinds):
        yield _CONCENTRATED
        return
    single, transforms = exact.single(form) is not None, pld.within_reach(form, delta)
    about = _exact(form, delta) if single else _tilted(form, delta)
    if transforms and prv.within_reach(form, delta, about) and pld.points(form) <= 2e5:  # about a second
        yield _PRV
    if single:
        yield _EXACT
    else:
        yield _TILTED if transforms else _SMALL_DELTA


def undominated(event: Composed) -> list[NormalForm]:
    """The lists of a composed event that can have the largest epsilon."""
    forms = list(dict.fromkeys(normal_form(events) for events in event.distinct()))
    return [form for form in forms if not any(other is not form and other.dominates(form) for other in forms)]


def _parts(form: NormalForm, delta: float) -> tuple[list[NormalForm], float]:
    """The events by kind, with the delta that each kind may use.

    zCDP events are not part of a privacy loss distribution. So the kinds add up by basic composition, each with an
    equal share of the delta that remains after failures.
    """
    remaining = delta - form.failure
    if remaining <= 0:
        raise AccountingError("Failure probabilities use up all of delta: raise delta or lower the number of draws.")
    kinds = (form.part(concentrated=False), form.part(concentrated=True))
    parts = [part for part in kinds if part.primitives]
    share = remaining / max(1, len(parts))
    if share < _LEAST_DELTA:
        raise AccountingError(
            f"Delta is too small for the arithmetic of the accountants: choose {_LEAST_DELTA:g} or more."
        )
    return parts, share


def estimate(form: NormalForm, delta: float) -> float:
    """A quick approximation of the epsilon of one list of events at `delta`, to about a percent."""
    parts, share = _parts(form, delta)
    return sum(next(_methods(part, share)).estimate(part, share) for part in parts)


def _claim_part(form: NormalForm, delta: float) -> Claim:
    """The claim of events of one kind.

    The larger of the two upper bounds is claimed. If the check is below the claiming accountant's proven lower
    bound, one of them is wrong, and nothing is claimed.
    """
    method, bounds = _bounds(form, delta)
    if min(bounds.upper, form.pure_epsilon) > _LARGEST_EPSILON:
        raise AccountingError(_TOO_LITTLE_NOISE)
    check = method.check(form, delta)
    if not check >= bounds.lower - AGREEMENT * bounds.upper - 1e-9:
        raise AccountingError(
            f"Two accountants disagree: {method.name} finds {bounds.lower:.4g} to {bounds.upper:.4g}, "
            f"{method.check_name} {check:.4g}. One of them is wrong, and nothing is claimed: please report this."
        )
    found = Claim(bounds.upper, delta, method.name, check, method.check_name)
    if check > (1 + _ALIKE) * bounds.upper + 1e-8:
        found = Claim(check, delta, method.check_name, bounds.upper, method.name)
    if form.pure_epsilon < found.epsilon:
        found = Claim(form.pure_epsilon, delta, PURE_SUM, check, method.check_name)
    if found.epsilon > _LARGEST_EPSILON:
        raise AccountingError(_TOO_LITTLE_NOISE)
    return found


def _bounds(form: NormalForm, delta: float) -> tuple[_Method, Bounds]:
    found = ((method, method.epsilon(form, delta)) for method in _methods(form, delta))
    return next((method, bounds) for method, bounds in found if bounds is not None)


def _claim_list(form: NormalForm, delta: float) -> Claim:
    parts, share = _parts(form, delta)
    if not parts:
        return Claim(0.0, delta, prv.NAME, 0.0, pld.NAME)
    claims = [_claim_part(part, share) for part in parts]
    return Claim(
        epsilon=sum(each.epsilon for each in claims),
        delta=delta,
        accountant=_PLUS.join(each.accountant for each in claims),
        check=sum(each.check for each in claims),
        check_accountant=_PLUS.join(each.check_accountant for each in claims),
    )


def _upper(form: NormalForm, delta: float) -> float:
    """A quick lower bound on the claim of one list: it omits the check, which takes most of the time."""
    parts, share = _parts(form, delta)
    return sum(min(part.pure_epsilon, _bounds(part, share)[1].upper) for part in parts)


def claim(event: Composed, delta: float) -> Claim:
    """The claim for a run whose events are fixed beforehand: each list composes, and the maximum over lists is taken
    last.

    Raises:
        AccountingError: epsilon is above 300, delta is too small, or the accountants contradict each other.
    """
    claims = [_claim_list(form, delta) for form in undominated(event)]
    return max(claims, key=lambda each: each.epsilon)


_STEP, _STEPS = 1.002, 12


def calibrate_noise(
    event_at: Callable[[float], Composed], target: PrivacyTarget, smallest: float = 1e-3, largest: float = 1e7
) -> float:
    """The smallest noise parameter whose run claims at most `target.epsilon` at `target.delta`.

    Bisection on a quick estimate of epsilon, which falls as the parameter grows, is confirmed by the claim. The claim
    is at most about 1.5% below the target unless even the smallest parameter meets it.

    Raises:
        AccountingError: no parameter meets the target.
    """

    def excess(log_noise: float) -> float:
        event = event_at(min(largest, max(smallest, math.exp(log_noise))))
        worst = _largest(estimate, event, target.delta)
        return math.log(min(max(worst, 1e-9), 1e9) / target.epsilon)

    low, high = _bracket(excess, math.log(smallest), math.log(largest))
    if low == high:
        return smallest
    noise = math.exp(brentq(excess, low, high, xtol=5e-4)) if excess(high) <= 0 else math.inf
    return _confirmed(event_at, target, noise, largest)


def _bracket(falling: Callable[[float], float], lowest: float, highest: float) -> tuple[float, float]:
    """The neighbouring whole numbers nearest to 0 between which a falling function reaches 0, or an end of the range.

    If the function is never above 0, both are the lowest. If it is always above 0, it is so at the second one, too.
    """
    low = high = 0.0
    stride = 1.0
    if falling(0.0) > 0:
        while high < highest and falling(high) > 0:
            low, high, stride = high, min(highest, high + stride), 2 * stride
    else:
        while low > lowest and falling(low) <= 0:
            low, high, stride = max(lowest, low - stride), low, 2 * stride
        if falling(low) <= 0:
            return lowest, lowest
    while high - low > 1:
        middle = max(math.floor((low + high) / 2), math.floor(low) + 1.0)
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low, high


def _largest(epsilon: Callable[[NormalForm, float], float], event: Composed, delta: float) -> float:
    return max(epsilon(form, delta) for form in undominated(event))


def _confirmed(event_at: Callable[[float], Composed], target: PrivacyTarget, noise: float, largest: float) -> float:
    """The first noise, from the estimate upwards, whose claim meets the target."""
    for tried in range(_STEPS):
        while noise <= largest and _largest(_upper, event_at(noise), target.delta) > target.epsilon:
            noise *= _STEP
        if noise > largest:
            break
        if claim(event_at(noise), target.delta).epsilon <= target.epsilon:
            return noise
        noise *= _STEP**2**tried  # the check exceeds the claim
    raise AccountingError(
        f"No amount of noise meets epsilon {target.epsilon:g} at delta {target.delta:g} with so many releases: raise "
        "epsilon, or lower the rows per token or the number of tokens."
    )


def cost_in_words(epsilon: float, delta: float) -> str:
    """A cost in words, rounded up."""
    return f"epsilon {rounded_up(epsilon, 4)}, delta {rounded_up(delta, 2)}"


def best_guess(epsilon: float, delta: float) -> float:
    """The largest probability of guessing rightly whether a fair coin included a unit: `(e^eps + d) / (1 + e^eps)`.

    It is the largest mean of true positive and true negative rate that (epsilon, delta) allows.
    """
    return float(expit(epsilon) + delta * expit(-epsilon))


def best_guess_in_percent(epsilon: float, delta: float) -> str:
    """`best_guess` in percent, rounded up, so that it stays a bound; one decimal, or three from 99 percent on."""
    right = best_guess(epsilon, delta)
    digits = 1 if right < 0.99 else 3  # one decimal could round to 100
    return f"{min(100.0, math.ceil(100 * right * 10**digits) / 10**digits):.{digits}f}"
