"""Report noisy max with exponential noise (Tang et al. 2024, section 3.2), which is permute-and-flip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.discovery import parameter, validate
from mechanisms.noise import Integers, Randomness
from mechanisms.privacy_events import Poisson, PrivacyEvent, Pure
from mechanisms.sampling import SamplingPlan
from mechanisms.steps.distributions import TokenDistributions, TokenRelease, to_lattice
from mechanisms.steps.mechanism import Norm, Sensitivity, TokenMechanism


@dataclass(frozen=True)
class NoisyMax(TokenMechanism):
    """Scale every row so that its most likely token has 1, sum the rows, add exponential noise, and release only the
    winner.

    A candidate wins if its noise exceeds a threshold, so a step with noise of mean `range / epsilon_0` is epsilon_0-DP.
    `range` bounds how far a unit moves a threshold: 1 if it only adds to the sum, 2 if it turns one row into another.
    The step is pure: the zCDP bound epsilon^2 / 8 does not hold for it.
    """

    name: ClassVar[str] = "noisy-max"
    title: ClassVar[str] = "Report noisy max"
    citation: ClassVar[str] = "Tang et al. 2024, section 3.2; McKenna and Sheldon 2020 (permute-and-flip)"
    proof: ClassVar[str] = "docs/mechanisms.md#noisy-max-tang-et-al-2024-section-32"
    takes_transform: ClassVar[bool] = True
    calibrated: ClassVar[str | None] = "step_epsilon"
    is_noise: ClassVar[bool] = False

    step_epsilon: float = parameter(
        0.1,
        label="Epsilon of a step",
        help="Pure epsilon of one token, before sampling amplifies it.",
        low=1e-7,
        high=50.0,
        citation="Tang et al. 2024, section 3.2",
    )

    def __post_init__(self) -> None:
        validate(self)

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """Pure releases of `step_epsilon` each; the sample mixes the dominating pair of all of them."""
        pure = Pure(self.step_epsilon, steps)
        return pure if rate == 1.0 else Poisson(rate, pure)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        """The signal-to-noise ratio for exponential noise, whose standard deviation is its mean."""
        return plan.rows_per_token * math.sqrt(2) * self.step_epsilon / self.sensitivity(plan.unit_rows).bound

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """Range: a unit that adds its row moves each entry by 0 to 1; with subsets it moves each by -1 to 1."""
        return Sensitivity(Norm.RANGE, 1.0 if unit_rows else 2.0)

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """The sum of `p_i / max p_i`, in units of 1 / GRID."""
        rows = distributions.probabilities()
        scaled = rows / rows.max(axis=1, keepdims=True, initial=0.0)
        return np.asarray(to_lattice(scaled).sum(axis=0), dtype=np.int64)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        """Release the position of the largest noisy score; the scores themselves are not released."""
        scale = self.sensitivity(distributions.unit_rows).on_lattice / self.step_epsilon
        return TokenRelease(randomness.exponential_argmax(self.aggregate(distributions), scale), None)


MECHANISM = NoisyMax
