"""The Gaussian mechanism on the sum of next-token distributions (Tang et al. 2024, algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mechanisms.accounting import PrivacyTarget, calibrate_noise
from mechanisms.noise import Integers, Randomness
from mechanisms.privacy_events import Gaussian, Poisson, PrivacyEvent
from mechanisms.sampling import Compose, SamplingPlan, sensitivity
from mechanisms.steps.distributions import TokenDistributions, TokenRelease
from mechanisms.steps.parameters import parameter, validate

GRID = 2.0**30
"""Probabilities are counted in units of 1 / GRID, so that sums are exact and do not depend on their order."""


@dataclass(frozen=True)
class GaussianMechanism:
    """Sum the rows' distributions, add Gaussian noise to every candidate, release the whole noisy vector.

    The noise's standard deviation is `sensitivity * noise_multiplier`. Rounding every probability down to the grid
    keeps each row inside the non-negative part of the unit ball, so it adds nothing to the sensitivity.
    """

    name: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "Gaussian noise on the sum of distributions"
    citation: ClassVar[str] = "Tang et al. 2024, algorithm 1"
    uses_private_rows: ClassVar[bool] = True

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
        """See `TokenMechanism.event`; adaptive Gaussian releases on one sample are dominated by a single one with
        multiplier / sqrt(steps) (Dong, Roth, Su 2019), and sampling acts on that pair (Zhu, Dong, Wang 2022)."""
        single = Gaussian(self.noise_multiplier / math.sqrt(steps))
        return single if rate == 1.0 else Poisson(rate, single)

    def calibrate(self, compose: Compose, target: PrivacyTarget) -> GaussianMechanism:
        """See `TokenMechanism.calibrate`; solves for the noise multiplier."""
        noise = calibrate_noise(lambda noise: compose(replace(self, noise_multiplier=noise).event), target)
        return replace(self, noise_multiplier=noise)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        """See `TokenMechanism.signal_to_noise`."""
        return plan.subsets * math.sqrt(2) / (sensitivity(plan.unit_rows) * self.noise_multiplier)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        """See `TokenMechanism.step`; `scores` is the noisy sum in units of rows."""
        noise = distributions.sensitivity * self.noise_multiplier * GRID
        scores = randomness.gaussian(lattice_sum(distributions), noise) / GRID
        return TokenRelease(int(np.argmax(scores)), scores)


def lattice_sum(distributions: TokenDistributions) -> Integers:
    """Sum of the rows' probabilities, each rounded down to the grid; shape (K,), in units of 1 / GRID."""
    counted = np.floor(distributions.probabilities() * GRID).astype(np.int64)
    return np.asarray(counted.sum(axis=0), dtype=np.int64)


MECHANISM = GaussianMechanism
