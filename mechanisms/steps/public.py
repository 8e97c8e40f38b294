"""The epsilon = 0 baseline: demonstrations from the public prompt alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.noise import Integers, Randomness
from mechanisms.privacy_events import Approximate, PrivacyEvent
from mechanisms.sampling import SamplingPlan
from mechanisms.steps.distributions import GRID, TokenDistributions, TokenRelease
from mechanisms.steps.mechanism import Norm, Sensitivity, TokenMechanism


@dataclass(frozen=True)
class PublicText(TokenMechanism):
    """Draw the next token from the model's public distribution; no private row is read."""

    name: ClassVar[str] = "public"
    title: ClassVar[str] = "Public text only (epsilon 0)"
    citation: ClassVar[str] = "Tang et al. 2024, section 4 (epsilon = 0)"
    proof: ClassVar[str] = "docs/mechanisms.md#public-tang-et-al-2024-epsilon-0"
    uses_private_rows: ClassVar[bool] = False

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """An event without cost: epsilon 0, delta 0."""
        return Approximate(0.0)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        """0, since no private row is read."""
        return 0.0

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """0, since no unit can move the public distribution."""
        return Sensitivity(Norm.L2, 0.0)

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """The public distribution, in units of 1 / GRID."""
        return np.floor(distributions.public_probabilities * GRID).astype(np.int64)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        probabilities = distributions.public_probabilities
        draw = randomness.uniform(1)[0] * probabilities.sum()
        index = int(np.searchsorted(np.cumsum(probabilities), draw))
        return TokenRelease(min(index, len(probabilities) - 1), probabilities, free=True)


MECHANISM = PublicText
