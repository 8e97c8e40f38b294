"""The sampling plan: who joins a step and what that costs, and the places of sampled units in a batch."""

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
from mechanisms.privacy_events import Approximate, Composed, PrivacyEvent, Repeat


def copy_numbers(contents: Iterable[Hashable]) -> list[int]:
    """The number of earlier units with the same content, for each unit: equal rows need coins and payments of their
    own.

    One row more or less adds or removes one pair (content, copy), whichever of the equal rows it is.
    """
    seen: Counter[Hashable] = Counter()
    copies = []
    for content in contents:
        copies.append(seen[content])
        seen[content] += 1
    return copies


_PLACES = 2**52
"""As many as the numbers in [0, 1) that every float holds exactly."""


def role_place(key: bytes, identity: Sequence[str]) -> float:
    """The place in [0, 1) that decides which part of a run a unit takes part in: pseudo-random, of the unit alone.

    Never by position: removing a row would shift everybody after it, and neighbouring data sets would differ
    everywhere. The key is the installation's secret for roles, so that a role is the same in every run and under every
    name; the identity is the user's id, or the record's text, its label and its copy number.
    """
    # With their lengths, so that no two sequences make one message, whatever the texts hold.
    message = "".join(f"{len(part)}:{part}" for part in ("role", *identity)).encode()
    return int.from_bytes(hmac.digest(key, message, "sha256")[:16], "big") % _PLACES / _PLACES


# The sampling plan: who joins a token step, and the privacy events that follow from it.
#
# Sampling and accounting are one object, so that the accountant sees the sampling that the code does.

CAPACITY_SHARE = 1e-3
"""The part of delta that pays for the event that more units join than the batch has rows."""
_LARGEST_SAMPLE = 100_000
"""Keeps every sum on the lattice far inside 64 bits."""
_LARGEST_SIZE = 10**12

EventOfSteps = Callable[[int, float], PrivacyEvent]
"""(steps, rate) -> the event of `steps` adaptive token steps on one Poisson sample of rate `rate`."""

Compose = Callable[[EventOfSteps], Composed]
"""A whole run's event, from the event of its mechanism."""


class Scheme(StrEnum):
    """How often a new sample is drawn."""

    PER_TOKEN = "per-token"
    PER_DEMONSTRATION = "per-demonstration"


ADJACENCY = "add-or-remove"
"""The neighbouring relation, of one unit; there is one for the whole project."""


@dataclass(frozen=True)
class SamplingPlan:
    """Public numbers that fix the sampling of a run.

    Attributes:
        scheme: a new sample for every token, or for every demonstration.
        subsets: M. With unit rows the expected number of rows, otherwise their exact number.
        per_subset: N, the expected number of units a row; 1 with unit rows.
        unit_rows: each sampled unit is one row of the batch (add-or-remove changes one row's presence).
        tokens, shots: T, token steps charged for a demonstration; demonstrations for each label.
        share: the part of the units that may join at all, in (0, 1]: which, a secret digest has fixed for good.
    """

    scheme: Scheme = Scheme.PER_DEMONSTRATION
    subsets: int = 100
    per_subset: int = 1
    unit_rows: bool = True
    tokens: int = 24
    shots: int = 1
    share: float = 1.0

    def __post_init__(self) -> None:
        for name in ("subsets", "per_subset", "tokens", "shots"):
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
        """M N, the expected number of units that join."""
        return self.subsets * self.per_subset

    @property
    def draws_per_label(self) -> int:
        """How many samples are drawn for one label in a run."""
        return self.shots * (self.tokens if self.scheme is Scheme.PER_TOKEN else 1)

    def rate(self, size: int) -> float:
        """The sampling rate of a label of declared size `n` units, for those that may join.

        `q = M N / (share n)`, clipped at 1: never by how many may join in fact, which is private.
        """
        if not 1 <= size <= _LARGEST_SIZE:
            raise UsageError(f"A label's declared size must lie between 1 and {_LARGEST_SIZE}.")
        return min(1.0, self.expected_sample / (self.share * size))

    def capacity(self, size: int, delta: float) -> tuple[int, float]:
        """Rows of the batch for a label of declared size `size`, and the probability of overflowing them in a run.

        With subsets there are exactly M rows. With unit rows it is the smallest C whose overflow, over all draws of the
        run, has probability at most `CAPACITY_SHARE * delta`; `P[Bin(n, q) >= C]` also covers the neighbour with one
        unit more. With a share, n is an upper bound on the units that may join, and the probability that it fails is
        counted too.
        """
        if not self.unit_rows:
            return self.subsets, 0.0
        members, failure = self._members(size, delta)
        rate = self.rate(size)
        if rate == 1.0:
            return members + 1, failure
        allowed = (CAPACITY_SHARE * delta - failure) / self.draws_per_label
        capacity = int(binom.isf(allowed, members, rate)) + 1
        return capacity, failure + self.draws_per_label * float(binom.sf(capacity - 1, members, rate))

    def _members(self, size: int, delta: float) -> tuple[int, float]:
        """An upper bound on the units that may join, including the unit that neighbours differ by, and its failure
        probability.

        Who may join is drawn once and is the same in every draw and every run, so it is bounded by itself. A quantile
        of Bin(n, share q) would hold for draws that each have a new role, not for many draws from one large role.
        """
        if self.share == 1:
            return size, 0.0
        # Half of the part of delta is for a role with more units than expected; the draws get the rest.
        most = int(binom.isf(CAPACITY_SHARE / 2 * delta, size, self.share))
        return min(size, most + 1), float(binom.sf(most, size, self.share))

    def overflow_allowed(self, rate: float, delta: float) -> tuple[PrivacyEvent, ...]:
        """The failure event of a label of known rate and unknown size: the most that `capacity` may use."""
        everybody = rate == 1.0 and self.share == 1
        return () if not self.unit_rows or everybody else (Approximate(CAPACITY_SHARE * delta),)

    def label_events(self, event: EventOfSteps, rate: float) -> tuple[PrivacyEvent, ...]:
        """The events of one unit of a label, at sampling rate `rate`."""
        steps = 1 if self.scheme is Scheme.PER_TOKEN else self.tokens
        return (Repeat(self.draws_per_label, event(steps, rate)),)

    def demonstration_events(self, event: EventOfSteps, rate: float) -> tuple[PrivacyEvent, ...]:
        """The events of one demonstration, charged before its first token."""
        if self.scheme is Scheme.PER_TOKEN:
            return (Repeat(self.tokens, event(1, rate)),)
        return (event(self.tokens, rate),)

    def compose(
        self, event: EventOfSteps, sizes: Mapping[str, int], delta: float, labels_in_parallel: bool = True
    ) -> Composed:
        """The whole run's event, from the declared number of units of each public label.

        A part of the claim's delta pays for overflow. With a unit column labels compose in sequence, not in parallel.
        """
        lists = {}
        for label, size in sizes.items():
            overflow = self.capacity(size, delta)[1]
            failure = (Approximate(overflow),) if overflow > 0 else ()
            lists[label] = self.label_events(event, self.rate(size)) + failure
        if labels_in_parallel:
            return Composed("label", tuple(lists.items()))
        return Composed("dataset", (("all", tuple(event for events in lists.values() for event in events)),))


def sensitivity(unit_rows: bool) -> float:
    """L2 sensitivity of a sum of per-row distributions when a unit is added or removed.

    With unit rows a unit brings or takes its own vector, of norm at most 1. With subsets it turns one row's
    distribution into another's, and two distributions are at most sqrt(2) apart.
    """
    return 1.0 if unit_rows else math.sqrt(2.0)


# Where sampled units sit in the model's batch.


@dataclass(frozen=True)
class Seating:
    """The places of sampled units in the rows of the batch.

    `rows[i]` holds the positions of the units in row i. `overflow` is true if more units joined than there are rows
    (unit rows only); its probability is part of delta, and the caller then takes the public step.
    """

    rows: tuple[tuple[int, ...], ...]
    overflow: bool = False


def seat_in_slots(sampled: Integers, capacity: int, randomness: Randomness) -> Seating:
    """Unit rows: every sampled unit gets a row of its own, at a uniformly random place of `capacity`."""
    if len(sampled) > capacity:
        return Seating(rows=((),) * capacity, overflow=True)
    rows: list[tuple[int, ...]] = [()] * capacity
    for unit, slot in zip(sampled, randomness.permutation(capacity), strict=False):
        rows[slot] = (int(unit),)
    return Seating(rows=tuple(rows))


def seat_in_subsets(sampled: Integers, subsets: int, randomness: Randomness) -> Seating:
    """Subsets: every sampled unit goes to one of exactly `subsets` rows, independently and uniformly.

    The units of a row stand in a random order, so that what the row's public length cuts off is random too.
    """
    rows: list[list[int]] = [[] for _ in range(subsets)]
    choices = np.minimum((randomness.uniform(len(sampled)) * subsets).astype(np.int64), subsets - 1)
    for place in randomness.permutation(len(sampled)):
        rows[choices[place]].append(int(sampled[place]))
    return Seating(rows=tuple(tuple(row) for row in rows))
