"""The least noise that meets a privacy target."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from mechanisms.accounting.claims import PrivacyTarget, claim, estimate, undominated
from mechanisms.errors import AccountingError
from mechanisms.privacy_events import Composed

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
        worst = max(estimate(form, target.delta) for form in undominated(event))
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


def _confirmed(event_at: Callable[[float], Composed], target: PrivacyTarget, noise: float) -> float:
    """The next noise up whose claim meets the target."""
    for _ in range(_LEAPS):
        try:
            while claim(event_at(noise), target.delta).epsilon > target.epsilon:
                noise *= _STEP
            return noise
        except AccountingError:
            noise *= _LEAP  # the accountants have gaps where there is little noise; above them there is a claim
    raise AccountingError("The accountants cannot confirm any noise for this epsilon: choose a smaller one.")
