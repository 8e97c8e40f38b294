"""The Gaussian mechanism on the sum of next-token distributions (Tang et al. 2024, algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.discovery import parameter, validate
from mechanisms.noise import Integers, Randomness
from mechanisms.privacy_events import Gaussian, Poisson, PrivacyEvent
from mechanisms.sampling import SamplingPlan, sensitivity
from mechanisms.steps.distributions import GRID, TokenDistributions, TokenRelease, lattice_sum
from mechanisms.steps.mechanism import Norm, Sensitivity
from mechanisms.steps.noisy_vector import NoisyVector


@dataclass(frozen=True)
class GaussianMechanism(NoisyVector):
    """Sum the rows' distributions, add Gaussian noise to every candidate, release the whole noisy vector.

    The noise's standard deviation is `sensitivity * noise_multiplier`. Rounding every probability down to the grid
    keeps each row inside the non-negative part of the unit ball, so it adds nothing to the sensitivity.
    """

    name: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "Gaussian noise on the sum of distributions"
    citation: ClassVar[str] = "Tang et al. 2024, algorithm 1"
    proof: ClassVar[str] = "docs/mechanisms.md#gaussian-tang-et-al-2024-algorithm-1"
    takes_transform: ClassVar[bool] = True
    calibrated: ClassVar[str | None] = "noise_multiplier"

    noise_multiplier: float = parameter(
        1.0,
        label="Noise multiplier",
        help="Standard deviation of the noise over the sensitivity, for each token.",
        low=1e-3,
        high=1e7,
        citation="Tang et al. 2024, table 9 (sigma)",
    )

    def __post_init__(self) -> None:
        validate(self)

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """One Gaussian release with the multiplier `noise_multiplier / sqrt(steps)`, on the sample.

        This release dominates the adaptive releases (Dong, Roth, Su 2019), and sampling mixes its dominating pair (Zhu,
        Dong, Wang 2022).
        """
        single = Gaussian(self.noise_multiplier / math.sqrt(steps))
        return single if rate == 1.0 else Poisson(rate, single)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        return plan.rows_per_token * math.sqrt(2) / (sensitivity(plan.unit_rows) * self.noise_multiplier)

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """L2: a unit adds its own distribution, or turns the distribution of its subset into another."""
        return Sensitivity(Norm.L2, sensitivity(unit_rows))

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """The sum of the rows, in units of 1 / GRID."""
        return lattice_sum(distributions)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        """`scores` is the noisy sum in units of rows."""
        noise = self.sensitivity(distributions.unit_rows).on_lattice * self.noise_multiplier
        scores = randomness.gaussian(self.aggregate(distributions), noise) / GRID
        return self.read(scores, distributions, noise / GRID, randomness)


MECHANISM = GaussianMechanism
