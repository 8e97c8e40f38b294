"""The public arm that serves the units best: report noisy max with exponential noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.accounting import PrivacyTarget
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.privacy_events import Pure
from mechanisms.tallies.tally import LATTICE, Tally, check_epsilon


@dataclass(frozen=True)
class Choice(Tally):
    """Each unit gives every arm a number from 0 to 1 (whether its label is found).

    Proof (McKenna and Sheldon 2020; Ding et al. 2021). Let s be the sums and E_j the noise of mean 1 / epsilon, and fix
    the noise of all arms but j. Arm j wins if `E_j > t`, where `t = max_(i != j) (s_i + E_i) - s_j`. A unit only adds,
    at most 1 an arm, so t moves by at most 1, up or down. `P[E_j > t] = exp(-epsilon max(t, 0))` changes by at most the
    factor e^epsilon. Entries from -1 to 1 would move t by 2, and cost twice. []
    """

    name: ClassVar[str] = "choice"
    title: ClassVar[str] = "The arm that serves the units best"

    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @classmethod
    def costing(cls, target: PrivacyTarget, by_user: bool, alternatives: int) -> Choice:
        return cls(target.epsilon)

    @property
    def event(self) -> Pure:
        """The event of one unit."""
        return Pure(self.epsilon)

    def release(self, contributions: Floats, randomness: Randomness) -> int:
        """Position of the winning arm; nothing else of the sums is released.

        Args:
            contributions: a vector a unit, every entry in [0, 1], shape (units, arms).
            randomness: where the noise comes from.
        """
        return randomness.exponential_argmax(from_zero_to_one(contributions).sum(axis=0), LATTICE / self.epsilon)


def from_zero_to_one(contributions: Floats) -> Integers:
    """Entries cut to [0, 1] and rounded down to the lattice, in lattice steps; one that is not finite counts as 0."""
    finite = np.where(np.isfinite(contributions), contributions, 0.0).astype(np.float64)
    return np.floor(np.clip(finite, 0.0, 1.0) * LATTICE).astype(np.int64)


TALLY = Choice
