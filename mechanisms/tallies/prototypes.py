"""A class's mean embedding: what can be had without a language model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.accounting import PrivacyTarget, calibrate_noise
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.privacy_events import Composed, Gaussian
from mechanisms.tallies.tally import LATTICE

_MARGIN = 1 + 2**-32
"""More than the norm of a vector of a million float64 numbers can be wrong by."""


@dataclass(frozen=True)
class Prototypes:
    """A unit adds its embedding, of L2 norm at most 1, to the row of its label; Gaussian noise on every entry."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        Gaussian(self.noise_multiplier)

    @classmethod
    def calibrated_for(cls, target: PrivacyTarget) -> Prototypes:
        """The least noise that meets a target.

        Raises:
            AccountingError: there is none.
        """
        return cls(calibrate_noise(lambda noise: Composed("dataset", (("all", (Gaussian(noise),)),)), target))

    @property
    def event(self) -> Gaussian:
        """What a unit pays."""
        return Gaussian(self.noise_multiplier)

    def release(self, vectors: Floats, labels: Integers, count: int, randomness: Randomness) -> Floats:
        """A direction of unit length for every label, shape (count, d).

        Args:
            vectors: a vector a unit, of L2 norm at most 1, shape (units, d).
            labels: the position of each unit's label, shape (units,); a unit with any other number adds nothing.
            count: number of labels.
            randomness: where the noise comes from.
        """
        total = np.zeros((count, vectors.shape[1]), dtype=np.int64)
        known = (labels >= 0) & (labels < count)
        np.add.at(total, labels[known], within_ball(vectors[known]))
        noisy = randomness.gaussian(total.ravel(), LATTICE * self.noise_multiplier).reshape(total.shape) / LATTICE
        lengths = np.linalg.norm(noisy, axis=1, keepdims=True)
        return np.asarray(noisy / np.where(lengths > 0, lengths, 1.0), dtype=np.float64)


def within_ball(vectors: Floats) -> Integers:
    """Vectors cut to the unit ball and rounded towards zero on the lattice; one that is not finite counts as zero."""
    finite = np.isfinite(vectors).all(axis=1, keepdims=True)
    kept = np.clip(np.where(finite, vectors, 0.0).astype(np.float64), -1.0, 1.0)
    lengths = np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1.0)
    whole: Integers = np.trunc(kept / (lengths * _MARGIN) * LATTICE).astype(np.int64)
    assert ((whole**2).sum(axis=1) <= LATTICE**2).all()
    return whole
