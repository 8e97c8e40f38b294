"""The epsilon = infinity baseline: the private rows' most likely token, without noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.noise import Integers, Randomness
from mechanisms.privacy_events import Approximate, PrivacyEvent
from mechanisms.sampling import SamplingPlan, sensitivity
from mechanisms.steps.distributions import TokenDistributions, TokenRelease, lattice_sum
from mechanisms.steps.mechanism import Norm, Sensitivity, TokenMechanism


@dataclass(frozen=True)
class NonPrivate(TokenMechanism):
    """Select the most likely token of the rows' sum without noise: for the curator's own screen, never for a private
    export."""

    name: ClassVar[str] = "non-private"
    title: ClassVar[str] = "No privacy (epsilon infinite)"
    citation: ClassVar[str] = "Tang et al. 2024, section 4 (epsilon = infinity)"
    proof: ClassVar[str] = "docs/mechanisms.md#non-private-tang-et-al-2024-epsilon-infinity"
    takes_transform: ClassVar[bool] = True
    not_private: ClassVar[str | None] = "written from the private rows without noise: a yardstick, not for release"

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """A failure with probability 1, for which no accountant finds a finite epsilon."""
        return Approximate(1.0)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        return float("inf")

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """L2 sensitivity of a sum of distributions, which no noise covers here."""
        return Sensitivity(Norm.L2, sensitivity(unit_rows))

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """The sum of the rows, in units of 1 / GRID."""
        return lattice_sum(distributions)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        return TokenRelease(int(np.argmax(self.aggregate(distributions))), None)


MECHANISM = NonPrivate
