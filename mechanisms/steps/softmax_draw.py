"""What mechanisms share that draw a token from softmax over an average of clipped rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Self

from mechanisms.errors import UsageError
from mechanisms.parameters import validate
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.sampling import SamplingPlan
from mechanisms.steps.bounded_range import CLOSED_WITH_SUBSETS, bounded_range_event
from mechanisms.steps.mechanism import Norm, Sensitivity, TokenMechanism

_GUMBEL_DEVIATION = math.pi / math.sqrt(6)


class SoftmaxDraw(TokenMechanism):
    """A draw from softmax at a temperature, whose price follows from `span`, the temperature and the batch size.

    It is no dataclass: a mechanism declares these fields in its own order, which its flags and the form follow.

    Attributes:
        clip: a row is clipped to values that span twice this.
        temperature: of the softmax.
        batch: the public batch size, by which the rows' sum is divided; set by `for_plan`.
    """

    clip: float
    temperature: float
    batch: int

    def __post_init__(self) -> None:
        validate(self)

    @property
    @abstractmethod
    def span(self) -> float:
        """How far the rows together can move the logits: largest less smallest change. A unit has 1 / `batch` of it."""

    def closed(self, plan: SamplingPlan) -> str | None:
        """See `TokenMechanism.closed`."""
        return None if plan.unit_rows else CLOSED_WITH_SUBSETS.format(name=self.name)

    def for_plan(self, plan: SamplingPlan) -> Self:
        """See `TokenMechanism.for_plan`; the batch size is M."""
        return replace(super().for_plan(plan), batch=plan.subsets)

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """See `TokenMechanism.event` and `bounded_range_event`."""
        if self.batch < 1:
            raise UsageError("The cost of this mechanism depends on M: give it the plan first.")
        return bounded_range_event(self.span / (self.batch * self.temperature), steps, rate)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        """See `TokenMechanism.signal_to_noise`: the rows' whole span over the Gumbel noise that a draw amounts to."""
        return math.sqrt(2) * self.span / (_GUMBEL_DEVIATION * self.temperature)

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """See `TokenMechanism.sensitivity`; the aggregate is a sum of clipped rows, and not yet their average."""
        return Sensitivity(Norm.RANGE, 2 * self.clip)
