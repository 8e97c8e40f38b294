"""Prototypes: a noisy sum of embeddings for each label, which needs no language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.accounting import PrivacyTarget, calibrate_noise
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.privacy_events import ALL, Composed, Gaussian
from mechanisms.tallies.tally import LATTICE, Tally

_MARGIN = 1 + 2**-32
"""A factor that exceeds the rounding error of the norm of a million float64 numbers."""


@dataclass(frozen=True)
class Prototypes(Tally):
    """A unit adds its embedding, of L2 norm at most 1, to the row of its label; the noise is N(0, noise_multiplier^2)
    on every entry.

    Attributes:
        labels: the number of labels.
    """

    name: ClassVar[str] = "prototypes"
    proof: ClassVar[str] = "docs/tallies.md#prototypes"

    noise_multiplier: float
    labels: int

    def __post_init__(self) -> None:
        Gaussian(self.noise_multiplier)

    @classmethod
    def costing(cls, target: PrivacyTarget, labels: int) -> Prototypes:
        """The tally with the least noise whose release costs a unit at most the target.

        Raises:
            AccountingError: no noise meets the target.
        """
        noise = calibrate_noise(lambda noise: Composed("dataset", ((ALL, (Gaussian(noise),)),)), target)
        return cls(noise, labels)

    @staticmethod
    def contributions(labels: Integers, vectors: Floats) -> Floats:
        """The units' vectors, shape (units, 1 + d): a column of label positions, then the embeddings.

        Args:
            labels: the position of each unit's label, shape (units,).
            vectors: the units' embeddings, shape (units, d).
        """
        return np.column_stack([labels.astype(np.float64), vectors])

    @property
    def event(self) -> Gaussian:
        """The event of one unit: one Gaussian release."""
        return Gaussian(self.noise_multiplier)

    def release(self, contributions: Floats, randomness: Randomness) -> Floats:
        """The noisy sums, each divided by its length, shape (labels, d); a sum of length 0 stays zero.

        Args:
            contributions: the units' vectors, shape (units, 1 + d), from `contributions`.
        """
        noisy = self.sums(contributions, randomness)
        lengths = np.linalg.norm(noisy, axis=1, keepdims=True)
        return np.asarray(noisy / np.where(lengths > 0, lengths, 1.0), dtype=np.float64)

    def sums(self, contributions: Floats, randomness: Randomness) -> Floats:
        """The noisy sum of each label's embeddings, shape (labels, d).

        Args:
            contributions: the units' vectors, shape (units, 1 + d). Embeddings are clipped to L2 norm 1; a unit with a
                label position outside 0 to `labels - 1` adds nothing.
        """
        labels, vectors = contributions[:, 0], contributions[:, 1:]
        total = np.zeros((self.labels, vectors.shape[1]), dtype=np.int64)
        known = np.isin(labels, np.arange(self.labels))
        np.add.at(total, labels[known].astype(np.int64), within_ball(vectors[known]))
        noisy = randomness.gaussian(total.ravel(), LATTICE * self.noise_multiplier).reshape(total.shape)
        return np.asarray(noisy / LATTICE, dtype=np.float64)


def within_ball(vectors: Floats) -> Integers:
    """Vectors clipped to the unit ball and rounded towards zero, in units of 1 / LATTICE; same shape as `vectors`,
    (units, d).

    A vector with a value that is not finite counts as zero.
    """
    finite = np.isfinite(vectors).all(axis=1, keepdims=True)
    kept = np.clip(np.where(finite, vectors, 0.0).astype(np.float64), -1.0, 1.0)
    lengths = np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1.0)
    whole: Integers = np.trunc(kept / (lengths * _MARGIN) * LATTICE).astype(np.int64)
    assert ((whole**2).sum(axis=1) <= LATTICE**2).all()
    return whole


TALLY = Prototypes
