"""The protocol of a tally and its privacy proof, and the histogram that most tallies are."""

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
# The alternatives are public, or were released before. A unit u casts a vector v_u of one entry an alternative,
# which depends on u, on public things and on earlier releases, and on nothing else. Released is `sum_u v_u` plus
# noise, or only the position of its largest entry.
#
# Proof. Take neighbours that differ in the unit u. No other unit's vector depends on u, so the two sums differ by
# v_u. A release's cost is therefore what its noise makes of the norms of a single vector, and those hold for
# whatever numbers come in: here every vector is rounded to whole numbers of lattice steps, and brought under its
# norm in whole numbers, so that neither rounding nor an odd value can exceed it. Sums of whole numbers are exact in
# any order, and the noise is drawn on the same lattice. []
#
# With users, v_u is the mean over some of the user's rows (`mean_contribution`); which ones must follow from the
# user alone. A mean of vectors under a norm is under it.
#
# Nothing that a unit holds raises an exception: numbers that are not finite count as no contribution.

LATTICE = 2**30
"""Lattice steps in 1."""
_LEAST_EPSILON, _MOST_EPSILON = 1e-6, 100.0


class Tally(Protocol):
    """A vector from each unit, and one noisy release of their sum: a frozen dataclass of public values.

    A module that defines `TALLY` registers a subclass. The tests' contract then holds for it: no unit moves what the
    noise is added to further than `event` pays for.
    """

    name: ClassVar[str]
    proof: ClassVar[str]
    """`FILE#HEADING` of the proof that `event` pays for a release."""

    @property
    def event(self) -> PrivacyEvent:
        """The event of one unit."""

    def release(self, contributions: Floats, randomness: Randomness) -> Any:
        """The noisy sum of the vectors of units, shape (units, k), or what follows from it."""


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon for which the lattice has no noise.

    Raises:
        UsageError: epsilon is out of range.
    """
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        raise UsageError(f"A tally's epsilon must lie between {_LEAST_EPSILON:g} and {_MOST_EPSILON:g}.")


def mean_contribution(rows: Floats) -> Floats:
    """A user's contribution, shape (k,), in float64: the mean over the rows that were taken, shape (rows, k).

    A number that is not finite counts as zero, and its row still counts. No rows at all contribute nothing.
    """
    finite = np.where(np.isfinite(rows), rows, 0.0).astype(np.float64)
    return np.asarray(finite.sum(axis=0) / max(1, len(finite)))


def within_one(contributions: Floats, steps: int) -> Integers:
    """Vectors rounded down to the lattice, none of an L1 norm above 1; shape (units, k), in units of 1 / `steps`.

    A vector that holds a number that is negative or not finite counts as zero. One whose rounded norm is above 1 (a
    softmax in float32 was 209 steps over) is scaled down, in whole numbers.
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
        """The event of one unit."""
        return Pure(self.epsilon) if self.steps == 1 else Laplace(1 / self.epsilon)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on one entry, in units of one unit's whole contribution."""
        return 1 / (math.sqrt(2) * self.steps * math.sinh(self.epsilon / (2 * self.steps)))

    def release(self, contributions: Floats, randomness: Randomness) -> Floats:
        """The noisy sum, shape (k,), of a vector a unit, not negative and of L1 norm at most 1, shape (units, k)."""
        return self.release_of([contributions], randomness)

    def release_of(self, chunks: Iterable[Floats], randomness: Randomness) -> Floats:
        """The same for units that come in chunks, at least one, of shape (units, k) each: many need no memory then."""
        total = sum(within_one(chunk, self.steps).sum(axis=0) for chunk in chunks)
        noisy = randomness.laplace(np.asarray(total), self.steps / self.epsilon)
        return np.asarray(noisy / self.steps, dtype=np.float64)


@dataclass(frozen=True)
class WholeVotes(Histogram):
    """A histogram of whole votes: a one-hot vector a row, or none; the mean of its rows' vectors a user."""

    by_user: bool

    @property
    def steps(self) -> int:
        return LATTICE if self.by_user else 1


# Weights of units where they fit, choose and score: the same for every row, or for every label.
#
# A unit's vector is multiplied by a weight of its own label. The weights are public: they follow from the public
# label sizes. None is above 1, so a weighted vector keeps the norm that the tally pays for, and the proof in
# `tally.py` holds for it as it is. Users' vectors are means of weighted vectors of their rows.


class Weighing(StrEnum):
    """What has the same weight: every row, or every label."""

    ROWS = "rows"
    LABELS = "labels"


LARGE = 2.0
"""Of an even share: a label above it makes labels count the same, unless the owner says otherwise."""
_SMALL = 0.25
"""Of an even share: labels below it count by their rows. A handful of rows would else decide the weight of all."""


def usual_weighing(sizes: Mapping[str, int]) -> Weighing:
    """By labels where the largest one has more than twice an even share of the units."""
    largest, total = max(sizes.values()), sum(sizes.values())
    return Weighing.LABELS if largest * len(sizes) > LARGE * total else Weighing.ROWS


def masses(sizes: Mapping[str, int], weighing: Weighing) -> dict[str, float]:
    """The total weight of all units of each label, in units of weight 1."""
    if weighing is Weighing.ROWS:
        return {label: float(size) for label, size in sizes.items()}
    most = max(float(min(sizes.values())), _SMALL * sum(sizes.values()) / len(sizes))
    return {label: min(float(size), most) for label, size in sizes.items()}


def weights(sizes: Mapping[str, int], weighing: Weighing) -> dict[str, float]:
    """The weight of one unit of each label, in (0, 1]."""
    return {label: mass / max(1, sizes[label]) for label, mass in masses(sizes, weighing).items()}
