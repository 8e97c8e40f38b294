"""A tally of vectors of L1 norm at most 1, released whole with discrete Laplace noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from mechanisms.noise import Floats, Randomness
from mechanisms.privacy_events import Laplace, Pure
from mechanisms.tallies.tally import LATTICE, Tally, check_epsilon, within_one


@dataclass(frozen=True)
class Histogram(Tally):
    """Sum, plus discrete Laplace noise of scale 1 / epsilon on every entry: epsilon-DP, since the L1 norm is at most 1.

    Among whole numbers a unit moves one entry by one, and the noise is randomised response to the bit: the event is
    `Pure`. On the lattice the exact curve is smaller, and the event is `Laplace`: docs/tallies.md has the proof.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    @abstractmethod
    def steps(self) -> int:
        """Lattice steps in 1: 1 where contributions are whole numbers."""

    @property
    def event(self) -> Pure | Laplace:
        """What a unit pays."""
        return Pure(self.epsilon) if self.steps == 1 else Laplace(1 / self.epsilon)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on one entry, in units that all say the same."""
        return 1 / (math.sqrt(2) * self.steps * math.sinh(self.epsilon / (2 * self.steps)))

    def release(self, contributions: Floats, randomness: Randomness) -> Floats:
        """The noisy sum, shape (k,).

        Args:
            contributions: a vector a unit, not negative and of L1 norm at most 1, shape (units, k).
            randomness: where the noise comes from.
        """
        total = within_one(contributions, self.steps).sum(axis=0)
        return np.asarray(randomness.laplace(total, self.steps / self.epsilon) / self.steps, dtype=np.float64)


def steps_of(by_user: bool) -> int:
    """Lattice steps in 1 where a record casts a whole vote, and a user a mean of whole votes."""
    return LATTICE if by_user else 1
