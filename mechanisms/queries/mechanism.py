"""The protocol of a pay-per-query mechanism, a frozen dataclass of public values, and the registry of mechanisms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from mechanisms.discovery import defined, pick
from mechanisms.noise import Floats, Integers, Randomness

GRID = 2**20
"""Lattice points in one vote; noise is drawn on this lattice."""


@dataclass(frozen=True)
class QueryRelease:
    """The release for one query.

    Attributes:
        chosen: positions of the released categories, ascending; None if the mechanism abstains.
        scores: the noisy histogram behind the choice, in votes, shape (categories,); None if the proof covers `chosen`
            alone.
    """

    chosen: tuple[int, ...] | None
    scores: Floats | None


class QueryMechanism(Protocol):
    """A mechanism that releases an answer from the answers of S shards: a frozen dataclass of public values.

    One answer is delta-approximate rho-zCDP for data sets that differ in the answer of one shard.
    """

    name: ClassVar[str]
    proof: ClassVar[str]
    """`FILE#HEADING` of the proof that an answer costs a unit `rho` and `delta`."""
    open_answers: ClassVar[bool] = False
    """True if a shard answers with a set of words; False if it answers with one label of a public set."""
    may_fail: ClassVar[bool] = False
    """True if the guarantee can fail, with a probability for which the session's delta has to pay."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def rho(self) -> float:
        """rho of one answer, for a unit that takes part."""

    @property
    def delta(self) -> float:
        """delta of one answer, for a unit that takes part."""

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on which the answer depends, in shards."""

    @property
    def dominating_noise(self) -> float:
        """The noise multiplier of a Gaussian release that dominates one answer, except for `delta`.

        Poisson sampling mixes the dominating pair of that release.
        """

    def caution(self, shards: int) -> str | None:
        """A warning, with advice, that the noise hides the votes of this number of shards; None if it does not."""

    def calibrate(self, rho: float, delta: float) -> Self:
        """The same mechanism with the least noise with which one answer costs at most `rho` and `delta`."""

    def release(self, histogram: Integers, randomness: Randomness) -> QueryRelease:
        """The release for one query.

        Args:
            histogram: for each label the number of shards that vote for it, or for each token the number of shards
                whose answers contain it; shape (categories,).
        """


def noise_caution(needed: float, shards: int) -> str | None:
    """The warning of `QueryMechanism.caution`; None if there are enough shards.

    Args:
        needed: the number of shards that have to agree for a 50% chance of an answer.
        shards: the number of shards.
    """
    if needed <= shards:
        return None
    return (
        f"With this noise {needed:.0f} shards have to agree for a likely answer, and there are {shards}: "
        "use more shards, fewer questions or a larger epsilon."
    )


def presence_histogram(answers: Sequence[Collection[int]], categories: int) -> Integers:
    """The number of answers that contain each category, shape (categories,)."""
    histogram = np.zeros(categories, dtype=np.int64)
    for answer in answers:
        histogram[list(set(answer))] += 1
    return histogram


def query_mechanism_names() -> list[str]:
    """Names of all pay-per-query mechanisms; those that answer with a label come first."""
    mechanisms = _registered()
    return sorted(mechanisms, key=lambda name: (mechanisms[name].open_answers, name))


def query_mechanism_class(name: str) -> type[QueryMechanism]:
    """The pay-per-query mechanism of that name.

    Raises:
        UsageError: no mechanism has that name.
    """
    return pick(_registered(), name, "pay-per-query mechanism", query_mechanism_names())


def _registered() -> dict[str, type[QueryMechanism]]:
    return defined("mechanisms.queries", "MECHANISM")
