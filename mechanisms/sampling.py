"""The sampling plan: which units join a step, its cost, and the places of sampled units in a batch."""

from __future__ import annotations

import hmac
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.stats import binom

from mechanisms.errors import UsageError
from mechanisms.noise import Integers, Randomness
from mechanisms.privacy_events import ALL, Approximate, Composed, PrivacyEvent, Repeat


def copy_numbers(contents: Iterable[Hashable]) -> list[int]:
    """For each unit the number of earlier units with the same content, which gives equal rows different identities.

    Adding or removing a row adds or removes one pair (content, copy number), whichever of equal rows it is.
    """
    seen: Counter[Hashable] = Counter()
    copies = []
    for content in contents:
        copies.append(seen[content])
        seen[content] += 1
    return copies


_PLACES = 2**52
"""Places in [0, 1): a float holds each multiple of 2**-52 exactly."""


def role_place(key: bytes, identity: Sequence[str]) -> float:
    """The pseudo-random place of a unit in [0, 1), which determines its role in a run.

    The place depends on the unit alone, not on its position: otherwise removing a row would shift all later rows, and
    neighbouring data sets would differ everywhere.

    Args:
        key: the installation's secret for roles, so that a unit has the same role in every run and under every name.
        identity: the user's id, or the record's text, label and copy number.
    """
    # With their lengths, so that no two sequences give the same message.
    message = "".join(f"{len(part)}:{part}" for part in ("role", *identity)).encode()
    return int.from_bytes(hmac.digest(key, message, "sha256")[:16], "big") % _PLACES / _PLACES


# The sampling plan: who joins a token step, and the privacy events that follow from it.
#
# Sampling and accounting are one object, so the accountant uses the sampling that the code does.

CAPACITY_SHARE = 1e-3
"""The part of delta that pays for overflow, when more units join than the batch has rows."""
_LARGEST_SAMPLE = 100_000
"""The most units of a sample: every sum on the lattice then stays far within 64 bits."""
_LARGEST_SIZE = 10**12

EventOfSteps = Callable[[int, float], PrivacyEvent]
"""(steps, rate) -> the event of `steps` adaptive token steps on one Poisson sample of rate `rate`."""

Compose = Callable[[EventOfSteps], Composed]
"""Gives the event of a whole run from the event of its mechanism."""


class Scheme(StrEnum):
    """Whether a new sample is drawn for every token or for every demonstration."""

    PER_TOKEN = "per-token"
    PER_DEMONSTRATION = "per-demonstration"


ADJACENCY = "add-or-remove"
"""Neighbouring data sets differ by one unit, which is added or removed, everywhere in this project."""


@dataclass(frozen=True)
class SamplingPlan:
    """The public numbers that define the sampling of a run.

    Attributes:
        scheme: whether a new sample is drawn for every token or for every demonstration.
        rows_per_token: M: the expected number of single units with unit rows, otherwise the exact number of subsets,
            each of which is a row.
        per_subset: N, the expected number of units of a row; 1 with unit rows.
        unit_rows: True if each sampled unit is a row of the batch, so that a neighbour has one row more or less.
        tokens: T, the number of token steps that a demonstration is charged for.
        written: the number of demonstrations of each label that are written token by token.
        share: the part of the units that may join at all, in (0, 1]; a keyed digest of each unit decides it
            permanently.

    Raises:
        UsageError: a number is out of range, or the numbers are incompatible.
    """

    scheme: Scheme = Scheme.PER_DEMONSTRATION
    rows_per_token: int = 100
    per_subset: int = 1
    unit_rows: bool = True
    tokens: int = 24
    written: int = 1
    share: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rows_per_token", "per_subset", "tokens", "written"):
            if not 1 <= getattr(self, name) <= _LARGEST_SAMPLE:
                raise UsageError(f"{name.replace('_', ' ')} must lie between 1 and {_LARGEST_SAMPLE}.")
        if self.expected_sample > _LARGEST_SAMPLE:
            raise UsageError(f"A sample of more than {_LARGEST_SAMPLE} units is not supported: lower M or N.")
        if self.unit_rows and self.per_subset != 1:
            raise UsageError("With unit rows every sampled unit is a row: leave --per-subset at 1.")
        if not 0 < self.share <= 1:
            raise UsageError("The share of the units that may join must lie in (0, 1].")

    @property
    def expected_sample(self) -> int:
        """M N, the expected number of units that join a sample."""
        return self.rows_per_token * self.per_subset

    @property
    def draws_per_label(self) -> int:
        """The number of samples that a run draws for one label."""
        return self.written * (self.tokens if self.scheme is Scheme.PER_TOKEN else 1)

    def rate(self, size: int) -> float:
        """The sampling rate q of the units of a label that may join: `M N / (share n)`, at most 1.

        It depends on the declared size n, because the actual number of units that may join is private.

        Args:
            size: n, the declared number of units of the label.

        Raises:
            UsageError: the size is out of range.
        """
        if not 1 <= size <= _LARGEST_SIZE:
            raise UsageError(f"A label's declared size must lie between 1 and {_LARGEST_SIZE}.")
        return min(1.0, self.expected_sample / (self.share * size))

    def capacity(self, size: int, delta: float) -> tuple[int, float]:
        """The number of rows of the batch, and the probability that a run overflows them.

        With subsets there are exactly M rows. With unit rows it is the smallest C with an overflow probability of at
        most `CAPACITY_SHARE * delta` over all draws of the run; `P[Bin(n, q) >= C]` also covers the neighbour with one
        more unit. With a share, n is an upper bound on the units that may join, and the failure probability of this
        bound is added.

        Args:
            size: the declared number of units of the label.
            delta: the delta of the run's claim.
        """
        if not self.unit_rows:
            return self.rows_per_token, 0.0
        members, failure = self._members(size, delta)
        rate = self.rate(size)
        if rate == 1.0:
            return members + 1, failure
        allowed = (CAPACITY_SHARE * delta - failure) / self.draws_per_label
        capacity = int(binom.isf(allowed, members, rate)) + 1
        return capacity, failure + self.draws_per_label * float(binom.sf(capacity - 1, members, rate))

    def _members(self, size: int, delta: float) -> tuple[int, float]:
        """An upper bound on the units that may join, and the probability that it fails.

        The bound includes the unit by which neighbours differ. The units that may join are the same in every draw and
        every run, so their number needs its own bound: a quantile of Bin(n, share q) would be valid for draws from new
        roles, but not for many draws from one large role.
        """
        if self.share == 1:
            return size, 0.0
        # Half of this part of delta is for a role with more units than the bound; the draws get the rest.
        most = int(binom.isf(CAPACITY_SHARE / 2 * delta, size, self.share))
        return min(size, most + 1), float(binom.sf(most, size, self.share))

    def overflow_allowed(self, rate: float, delta: float) -> tuple[PrivacyEvent, ...]:
        """The failure event of a label with a known rate and an unknown size: the most that `capacity` may use."""
        everybody = rate == 1.0 and self.share == 1
        return () if not self.unit_rows or everybody else (Approximate(CAPACITY_SHARE * delta),)

    def label_events(self, event: EventOfSteps, rate: float) -> tuple[PrivacyEvent, ...]:
        """The events of one unit of a label over the whole run.

        Args:
            event: gives the event of the mechanism's steps on one sample.
            rate: the sampling rate of the label.
        """
        steps = 1 if self.scheme is Scheme.PER_TOKEN else self.tokens
        return (Repeat(self.draws_per_label, event(steps, rate)),)

    def demonstration_events(self, event: EventOfSteps, rate: float) -> tuple[PrivacyEvent, ...]:
        """The events of one demonstration, which are charged before its first token."""
        if self.scheme is Scheme.PER_TOKEN:
            return (Repeat(self.tokens, event(1, rate)),)
        return (event(self.tokens, rate),)

    def compose(
        self, event: EventOfSteps, sizes: Mapping[str, int], delta: float, labels_in_parallel: bool = True
    ) -> Composed:
        """The event of the whole run, including overflow, for which a part of the claim's delta pays.

        Args:
            event: gives the event of the mechanism's steps on one sample.
            sizes: the declared number of units of each public label.
            delta: the delta of the run's claim.
            labels_in_parallel: False with a user column, because a user may have rows of several labels.
        """
        lists = {}
        for label, size in sizes.items():
            overflow = self.capacity(size, delta)[1]
            failure = (Approximate(overflow),) if overflow > 0 else ()
            lists[label] = self.label_events(event, self.rate(size)) + failure
        if labels_in_parallel:
            return Composed("label", tuple(lists.items()))
        return Composed("dataset", ((ALL, tuple(event for events in lists.values() for event in events)),))


def sensitivity(unit_rows: bool) -> float:
    """The L2 sensitivity of a sum of the rows' distributions, if a unit is added or removed.

    With unit rows a unit adds or removes its own vector, of norm at most 1. With subsets it turns one row's
    distribution into another, and two distributions are at most sqrt(2) apart.
    """
    return 1.0 if unit_rows else math.sqrt(2.0)


@dataclass(frozen=True)
class Seating:
    """The places of sampled units in the rows of the batch.

    Attributes:
        rows: for each row the positions of its units.
        overflow: True if more units joined than there are rows, which can happen only with unit rows. Delta covers its
            probability; the caller then takes the public step.
    """

    rows: tuple[tuple[int, ...], ...]
    overflow: bool = False


def seat_in_slots(sampled: Integers, capacity: int, randomness: Randomness) -> Seating:
    """The seating with unit rows: each sampled unit has its own row, at a uniformly random place.

    Args:
        sampled: positions of the units that joined, shape (units,).
        capacity: the number of rows.
    """
    if len(sampled) > capacity:
        return Seating(rows=((),) * capacity, overflow=True)
    rows: list[tuple[int, ...]] = [()] * capacity
    for unit, slot in zip(sampled, randomness.permutation(capacity), strict=False):
        rows[slot] = (int(unit),)
    return Seating(rows=tuple(rows))


def seat_in_subsets(sampled: Integers, subsets: int, randomness: Randomness) -> Seating:
    """The seating with subsets: each sampled unit is in one of the rows, drawn independently and uniformly.

    The units of a row are in random order, so the cut at the row's public length drops random ones.

    Args:
        sampled: positions of the units that joined, shape (units,).
        subsets: the number of rows.
    """
    rows: list[list[int]] = [[] for _ in range(subsets)]
    choices = np.minimum((randomness.uniform(len(sampled)) * subsets).astype(np.int64), subsets - 1)
    for place in randomness.permutation(len(sampled)):
        rows[choices[place]].append(int(sampled[place]))
    return Seating(rows=tuple(tuple(row) for row in rows))
