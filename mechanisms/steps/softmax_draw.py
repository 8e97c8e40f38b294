"""The base of mechanisms that draw a token from softmax over an average of clipped rows, and the cost of a draw."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar, Self

from mechanisms.accounting import amplified
from mechanisms.discovery import validate
from mechanisms.errors import UsageError
from mechanisms.noise import Randomness
from mechanisms.privacy_events import ZCDP, Poisson, PrivacyEvent, Pure
from mechanisms.sampling import SamplingPlan
from mechanisms.steps.distributions import GRID, TokenDistributions, TokenRelease
from mechanisms.steps.mechanism import Norm, Sensitivity, TokenMechanism


def bounded_range_event(eta: float, steps: int, rate: float) -> PrivacyEvent:
    """The event of `steps` adaptive eta-bounded-range releases on one Poisson sample.

    A release is eta-bounded-range when the logits' change between neighbours spans at most eta over the candidates. It
    is then eta^2 / 8 zCDP (Cesar and Rogers 2021, lemma 3.4) and eta-DP.

    - Every unit joins: the rho of the steps adds up.
    - One step on a sample: given the other units' sample and the unit's row, the step is bounded-range with the
      amplified eta. Renyi divergences are jointly quasi-convex, so the mixture over both keeps the zCDP bound. (A
      unit's row is drawn independently of who joins, both with subsets and with unit rows.)
    - Several steps on one sample: pure steps, then the mixture. The mixture also keeps the zCDP bound, without
      amplification; this is the better bound from a rate of 1/2 on, where the cost of a pure bound (a rho four times as
      large) outweighs the amplification.
    """
    if rate == 1.0 or (steps > 1 and rate >= 0.5):
        return ZCDP(steps * eta**2 / 8)
    if steps == 1:
        return ZCDP(amplified(eta, rate) ** 2 / 8)
    return Poisson(rate, Pure(eta, steps))


class SoftmaxDraw(TokenMechanism):
    """A draw from softmax at a temperature, whose price follows from `span`, the temperature and the batch size.

    This base is not a dataclass: a mechanism declares these fields in its own order, which its flags and the form
    follow. A row is clipped to a range of twice `clip`; the rows' sum is divided by `batch`, the public batch size.
    """

    clip: float
    temperature: float
    batch: int
    logits_in_sum: ClassVar[int] = 1
    """The aggregate is `logits_in_sum` times M times the logits of the softmax."""

    def __post_init__(self) -> None:
        validate(self)

    @property
    @abstractmethod
    def span(self) -> float:
        """The range (largest minus smallest entry) of the logits' change by all rows together. One unit's part is 1 /
        `batch` of it."""

    def closed(self, plan: SamplingPlan) -> str | None:
        if plan.unit_rows:
            return None
        return (
            f"'{self.name}' is not available with subsets: a unit that turns one row into another moves the logits "
            "twice as far, which quadruples rho. Choose unit rows."
        )

    def for_plan(self, plan: SamplingPlan) -> Self:
        """The same mechanism with the plan's M as its batch size.

        Raises:
            UsageError: the plan has subsets.
        """
        return replace(super().for_plan(plan), batch=plan.rows_per_token)

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """The `bounded_range_event` for a unit's change of the logits.

        Raises:
            UsageError: the mechanism has no batch size yet.
        """
        if self.batch < 1:
            raise UsageError("The cost of this mechanism depends on M: give it the plan first.")
        return bounded_range_event(self.span / (self.batch * self.temperature), steps, rate)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        """sqrt(2) times the range of all rows over the standard deviation of the Gumbel noise that a draw is equivalent
        to."""
        return math.sqrt(2) * self.span / (math.pi / math.sqrt(6) * self.temperature)

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """Range: a unit adds its clipped row to the aggregate, which is a sum and not an average."""
        return Sensitivity(Norm.RANGE, 2 * self.clip)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        """Release only the drawn position."""
        scale = self.logits_in_sum * distributions.expected_rows * self.temperature * GRID
        return TokenRelease(randomness.gumbel_argmax(self.aggregate(distributions), scale), None)
