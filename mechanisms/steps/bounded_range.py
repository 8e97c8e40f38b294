"""What a draw from softmax costs: the accounting that the exponential mechanisms share."""

from __future__ import annotations

from mechanisms.accounting import amplified
from mechanisms.privacy_events import ZCDP, Poisson, PrivacyEvent, Pure

_WORTH_SAMPLING = 0.5
"""Above this rate the price of a pure bound (rho four times as large) outweighs what sampling gives back."""

CLOSED_WITH_SUBSETS = (
    "'{name}' is closed with subsets: a unit that turns one row into another moves the logits twice as far, "
    "which quadruples rho. Choose unit rows."
)


def bounded_range_event(eta: float, steps: int, rate: float) -> PrivacyEvent:
    """The event of `steps` adaptive eta-bounded-range releases on one Poisson sample.

    A release is eta-bounded-range when the logits' change between neighbours spans at most eta over the candidates. It
    is then eta^2 / 8 zCDP (Cesar and Rogers 2021, lemma 3.4) and eta-DP.

    - Everybody joins: zCDP adds up.
    - One step on a sample: given the other units' sample, and the row where the unit would sit, it is bounded-range
      with the amplified eta, and Renyi divergences are jointly quasi-convex, so that zCDP survives the mixture over
      both. (A seat is drawn apart from who joins, with subsets as with unit rows.)
    - Several steps on one sample: pure steps, then the mixture. zCDP survives the mixture, though not amplified, and is
      the better bound at a high rate.
    """
    if rate == 1.0 or (steps > 1 and rate >= _WORTH_SAMPLING):
        return ZCDP(steps * eta**2 / 8)
    if steps == 1:
        return ZCDP(amplified(eta, rate) ** 2 / 8)
    return Poisson(rate, Pure(eta, steps))
