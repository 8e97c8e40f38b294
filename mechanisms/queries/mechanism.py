"""The protocol of a pay-per-query mechanism, a frozen dataclass of public values, and the registry of mechanisms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from mechanisms.discovery import defined, pick
from mechanisms.noise import Floats, Integers, Randomness

GRID = 2**20
"""Lattice points in one vote: what noise is drawn on."""


@dataclass(frozen=True)
class QueryRelease:
    """What is released for a query.

    Attributes:
        chosen: the released categories, ascending; None where the mechanism abstains.
        scores: the noisy histogram behind the choice, in votes, shape (categories,), where the proof covers it; None
            where only `chosen` may be released.
    """

    chosen: tuple[int, ...] | None
    scores: Floats | None


class QueryMechanism(Protocol):
    """One way to release an answer from the answers of S shards.

    Neighbouring data sets differ in the answer of at most one shard, and in what a unit pays for it: `rho` and `delta`
    are what one answer costs each unit that takes part, delta-approximate rho-zCDP.
    """

    name: ClassVar[str]
    proof: ClassVar[str]
    """`FILE#HEADING` of the proof that an answer costs a unit `rho` and `delta`."""
    open_answers: ClassVar[bool] = False
    """A shard answers with a set of words, not with one label of a public set."""
    may_fail: ClassVar[bool] = False
    """Its guarantee fails with a probability that the session's delta has to pay for."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def rho(self) -> float:
        """zCDP of one answer, for a unit that takes part."""

    @property
    def delta(self) -> float:
        """Failure probability of one answer, for a unit that takes part."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise that decides, in shards."""

    @property
    def dominating_noise(self) -> float:
        """Noise multiplier of a Gaussian that dominates one answer (but for `delta`): what Poisson sampling acts on."""

    def caution(self, shards: int) -> str | None:
        """Why this many shards can hardly decide under this noise, and what would help; None if they can."""

    def calibrate(self, rho: float, delta: float) -> Self:
        """The same mechanism with the least noise whose answer costs `rho`, and fails with at most `delta`."""

    def release(self, histogram: Integers, randomness: Randomness) -> QueryRelease:
        """An answer, from how many shards vote for each label, or have each token in theirs, shape (categories,)."""


def noise_caution(needed: float, shards: int) -> str | None:
    """`QueryMechanism.caution`, from the number of shards that must agree for an even chance."""
    if needed <= shards:
        return None
    return (
        f"With this noise {needed:.0f} shards would have to agree to be heard, and there are {shards}: "
        "take more shards, fewer questions or a larger epsilon."
    )


def presence_histogram(answers: Sequence[Collection[int]], categories: int) -> Integers:
    """The number of answers that contain each category, shape (categories,)."""
    histogram = np.zeros(categories, dtype=np.int64)
    for answer in answers:
        histogram[list(set(answer))] += 1
    return histogram


def query_mechanism_names() -> list[str]:
    """Names of all of them, those that answer with a label first."""
    mechanisms = _registered()
    return sorted(mechanisms, key=lambda name: (mechanisms[name].open_answers, name))


def query_mechanism_class(name: str) -> type[QueryMechanism]:
    """The mechanism of that name; a `UsageError` where there is none."""
    return pick(_registered(), name, "pay-per-query mechanism", query_mechanism_names())


def _registered() -> dict[str, type[QueryMechanism]]:
    return defined("mechanisms.queries", "MECHANISM")
