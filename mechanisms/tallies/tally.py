"""The protocol of a tally, the privacy proof that all tallies share, and the histogram, the base of most tallies."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import numpy as np

from mechanisms.errors import UsageError
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.privacy_events import Laplace, PrivacyEvent, Pure

# The privacy proof of tallies.
#
# The alternatives are public, or were released before. A unit u casts a vector v_u with one entry for each alternative,
# which depends only on u, on public values and on earlier releases. The tally releases `sum_u v_u` plus noise, or only
# the position of its largest entry.
#
# Proof. Take neighbours that differ in the unit u. No other unit's vector depends on u, so the two sums differ by v_u.
# A release's cost therefore follows from its noise and the norms of a single vector. These norms hold for any input:
# every vector is rounded to whole numbers of lattice steps, and scaled to its norm in whole numbers, so neither
# rounding nor an unusual value can exceed it. Sums of whole numbers are exact in any order, and the noise is drawn on
# the same lattice. []
#
# With users, v_u is the mean over some of the user's rows (`mean_contribution`); their choice must depend on the user
# alone. The mean of vectors within a norm bound is within it, too.
#
# No unit's content raises an exception: numbers that are not finite count as no contribution.

LATTICE = 2**30
"""Lattice steps in 1."""
_LEAST_EPSILON, _MOST_EPSILON = 1e-6, 100.0


class Tally(Protocol):
    """One noisy release of the sum of a vector from each unit: a frozen dataclass of public values.

    A module that defines `TALLY` registers a subclass. The tests then check that no unit moves the sum further than
    `event` pays for.
    """

    name: ClassVar[str]
    proof: ClassVar[str]
    """`FILE#HEADING` of the proof that `event` pays for a release."""

    @property
    def event(self) -> PrivacyEvent:
        """The event of one unit."""

    def release(self, contributions: Floats, randomness: Randomness) -> Any:
        """The noisy sum of the units' vectors, or a function of it.

        Args:
            contributions: the units' vectors, shape (units, k).
        """


def check_epsilon(epsilon: float) -> None:
    """Check that the lattice supports the noise for an epsilon.

    Raises:
        UsageError: epsilon is out of range.
    """
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        raise UsageError(f"A tally's epsilon must lie between {_LEAST_EPSILON:g} and {_MOST_EPSILON:g}.")


def mean_contribution(rows: Floats) -> Floats:
    """A user's contribution: the mean of its rows' vectors in float64, shape (k,); zeros for a user without rows.

    A number that is not finite counts as zero, and its row still counts.

    Args:
        rows: the vectors of the user's rows that take part, shape (rows, k).
    """
    finite = np.where(np.isfinite(rows), rows, 0.0).astype(np.float64)
    return np.asarray(finite.sum(axis=0) / max(1, len(finite)))


def within_one(contributions: Floats, steps: int) -> Integers:
    """Vectors rounded down to the lattice, each with an L1 norm of at most 1, in units of 1 / `steps`.

    A vector with a number that is negative or not finite counts as zero. A vector with a rounded norm above 1 (a
    softmax in float32 has exceeded it by 209 steps) is scaled down in whole numbers.

    Args:
        contributions: the units' vectors, shape (units, k); the result has the same shape.
        steps: lattice steps in 1.
    """
    valid = (np.isfinite(contributions) & (contributions >= 0)).all(axis=1, keepdims=True)
    kept = np.where(valid, np.minimum(contributions, 1.0), 0.0).astype(np.float64)
    whole = np.floor(kept * steps).astype(np.int64)
    norms = whole.sum(axis=1, keepdims=True)
    held = np.where(norms > steps, whole * steps // np.maximum(norms, 1), whole)
    assert (held.sum(axis=1) <= steps).all()
    return held


@dataclass(frozen=True)
class Histogram(Tally):
    """A tally that adds discrete Laplace noise of scale 1 / epsilon to every entry of the sum.

    It is epsilon-DP, since a unit's vector has an L1 norm of at most 1. A unit that moves one whole number by one is
    priced as randomised response (docs/tallies.md#laplace-noise-on-whole-numbers): the event is `Pure`. On the lattice
    the event is `Laplace`, which composes better (docs/tallies.md#laplace-noise-on-the-lattice).
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    @abstractmethod
    def steps(self) -> int:
        """Lattice steps in 1; 1 for a tally of whole numbers."""

    @property
    def event(self) -> Pure | Laplace:
        """The event of one unit."""
        return Pure(self.epsilon) if self.steps == 1 else Laplace(1 / self.epsilon)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on one entry, where 1 is the largest contribution of a unit."""
        return 1 / (math.sqrt(2) * self.steps * math.sinh(self.epsilon / (2 * self.steps)))

    def release(self, contributions: Floats, randomness: Randomness) -> Floats:
        """The noisy sum, shape (k,).

        Args:
            contributions: one vector per unit, shape (units, k), non-negative with an L1 norm of at most 1;
                `within_one` maps any other vector to this form.
        """
        return self.release_of([contributions], randomness)

    def release_of(self, chunks: Iterable[Floats], randomness: Randomness) -> Floats:
        """The noisy sum, shape (k,), of units in chunks, so that not all vectors are in memory at once.

        Args:
            chunks: at least one array like the `contributions` of `release`.
        """
        total = sum(within_one(chunk, self.steps).sum(axis=0) for chunk in chunks)
        noisy = randomness.laplace(np.asarray(total), self.steps / self.epsilon)
        return np.asarray(noisy / self.steps, dtype=np.float64)


@dataclass(frozen=True)
class WholeVotes(Histogram):
    """A histogram of votes: a row has at most one vote, a user the mean of its rows' votes.

    Attributes:
        by_user: True if the privacy unit is a user; the sum is then on the lattice.
    """

    by_user: bool

    @property
    def steps(self) -> int:
        return LATTICE if self.by_user else 1


# Weights of units in corrections and scores: equal for all rows, or equal in total for all labels.
#
# A unit's vector is multiplied by a weight of its own label. The weights are public: they depend on the public label
# sizes. None is above 1, so a weighted vector stays within the tally's norm, and the proof above holds unchanged.
# Users' vectors are means of weighted vectors of their rows.


class Weighing(StrEnum):
    """Whether every row has the same weight, or every label."""

    ROWS = "rows"
    LABELS = "labels"


LARGE = 2.0
"""If a label has more than `LARGE` times an even share of the units, all labels have the same weight unless the owner
chooses otherwise."""
_SMALL = 0.25
"""A label with less than this part of an even share has less weight than others, in proportion to its rows: otherwise a
handful of rows would have the weight of a whole label."""


def usual_weighing(sizes: Mapping[str, int]) -> Weighing:
    """The default weighing: by labels if the largest label has more than `LARGE` times an even share of the units, else
    by rows.

    Args:
        sizes: the public number of units of each label.
    """
    largest, total = max(sizes.values()), sum(sizes.values())
    return Weighing.LABELS if largest * len(sizes) > LARGE * total else Weighing.ROWS


def masses(sizes: Mapping[str, int], weighing: Weighing) -> dict[str, float]:
    """The total weight of each label's units, where one unit of weight 1 counts 1."""
    if weighing is Weighing.ROWS:
        return {label: float(size) for label, size in sizes.items()}
    most = max(float(min(sizes.values())), _SMALL * sum(sizes.values()) / len(sizes))
    return {label: min(float(size), most) for label, size in sizes.items()}


def weights(sizes: Mapping[str, int], weighing: Weighing) -> dict[str, float]:
    """The weight of one unit of each label, in (0, 1]."""
    return {label: mass / max(1, sizes[label]) for label, mass in masses(sizes, weighing).items()}
