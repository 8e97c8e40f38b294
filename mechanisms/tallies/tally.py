"""What a tally is, and why it is private.

The alternatives are public, or were released before. A unit u casts a vector v_u of one entry an alternative, which
depends on u, on public things and on earlier releases, and on nothing else. Released is `sum_u v_u` plus noise, or only
the position of its largest entry.

Proof. Take neighbours that differ in the unit u. No other unit's vector depends on u, so the two sums differ by v_u. A
release's cost is therefore what its noise makes of the norms of a single vector, and those hold for whatever numbers
come in: here every vector is rounded to whole numbers of lattice steps, and brought under its norm in whole numbers, so
that neither rounding nor an odd value can exceed it. Sums of whole numbers are exact in any order, and the noise is
drawn on the same lattice. []

With users, v_u is the mean over some of the user's rows (`mean_contribution`); which ones must follow from the user
alone. A mean of vectors under a norm is under it.

Nothing that a unit holds raises an exception: numbers that are not finite count as no contribution.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import numpy as np

from mechanisms.accounting import PrivacyTarget
from mechanisms.errors import UsageError
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.privacy_events import PrivacyEvent

LATTICE = 2**30
"""Lattice steps in 1."""
_LEAST_EPSILON, _MOST_EPSILON = 1e-6, 100.0


class Tally(Protocol):
    """One question to the units, and one noisy release of what they say: a frozen dataclass of public values.

    A module that defines `TALLY` registers a class of these, and the tests' contract then holds for it: no unit moves
    what is under the noise further than `event` pays for.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @classmethod
    def costing(cls, target: PrivacyTarget, by_user: bool, alternatives: int) -> Self:
        """The tally with the least noise whose one release costs a unit no more than the target.

        Args:
            by_user: the unit is all records of one user.
            alternatives: how many public alternatives there are.

        Raises:
            UsageError: epsilon is out of range.
            AccountingError: no noise meets the target.
        """
        ...

    @property
    def event(self) -> PrivacyEvent:
        """What a unit pays."""
        ...

    def release(self, contributions: Floats, randomness: Randomness) -> Any:
        """The noisy sum, or what follows from it.

        Args:
            contributions: a vector a unit, shape (units, k).
            randomness: where the noise comes from.
        """
        ...


def check_epsilon(epsilon: float) -> None:
    """Refuse what no noise on the lattice stands for.

    Raises:
        UsageError: epsilon is out of range.
    """
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        raise UsageError(f"A tally's epsilon must lie between {_LEAST_EPSILON:g} and {_MOST_EPSILON:g}.")


def mean_contribution(rows: Floats) -> Floats:
    """A user's contribution: the mean over the rows that were taken, shape (rows, k), in float64; shape (k,).

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
