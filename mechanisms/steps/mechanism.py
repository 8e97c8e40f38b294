"""The protocol of a token-level mechanism, and the registry of mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Protocol, Self

from mechanisms.accounting import PrivacyTarget, calibrate_noise
from mechanisms.discovery import defined, parameters, pick
from mechanisms.errors import UsageError
from mechanisms.noise import Integers, Randomness
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.sampling import Compose, SamplingPlan
from mechanisms.steps.distributions import GRID, TokenDistributions, TokenRelease


class Norm(Enum):
    """The measure of distance between two aggregates that a mechanism's proof uses."""

    L1 = "l1"
    L2 = "l2"
    RANGE = "range"
    """The largest minus the smallest entry of the difference: it bounds how far a selection's threshold moves."""


@dataclass(frozen=True)
class Sensitivity:
    """The largest distance between the aggregates of two neighbouring data sets.

    Attributes:
        bound: the distance in the aggregate's natural units: rows, or logits.
        grid: lattice points in one natural unit.
    """

    norm: Norm
    bound: float
    grid: float = GRID

    @property
    def on_lattice(self) -> float:
        """The distance in lattice points."""
        return self.bound * self.grid


Releaser = Callable[[TokenDistributions], TokenRelease]
"""Releases the next token of one demonstration; it remembers nothing of other demonstrations."""


class TokenMechanism(Protocol):
    """A mechanism that releases tokens from private distributions: a frozen dataclass of public values.

    A method with a body here is the default that subclasses inherit.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    proof: ClassVar[str]
    """`FILE#HEADING` of the proof that `event` pays for all that a demonstration releases."""
    uses_private_rows: ClassVar[bool] = True
    """False for a baseline that never reads the data: no prompt contains a row, and nothing is charged."""
    takes_transform: ClassVar[bool] = False
    """True if the proof only assumes that a row is a probability distribution: a transform of each row may then run
    before the mechanism."""
    not_private: ClassVar[str | None] = None
    """The reason why a release has no guarantee; None for every mechanism with a guarantee."""

    calibrated: ClassVar[str | None] = None
    """Name of the parameter that `calibrate` solves for; None for a mechanism without noise."""
    is_noise: ClassVar[bool] = True
    """True if a larger value of this parameter means more noise; False if it means less."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def closed(self, plan: SamplingPlan) -> str | None:
        """The reason why no sound accounting is known for a plan, with an alternative; None if one is known."""
        return None

    def for_plan(self, plan: SamplingPlan) -> Self:
        """The same mechanism with the numbers that it needs from a plan.

        Raises:
            UsageError: no sound accounting is known for this plan.
        """
        if reason := self.closed(plan):
            raise UsageError(reason)
        return self

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """The privacy event of adaptive token steps on one Poisson sample.

        Args:
            steps: the number of token steps, T.
            rate: the probability with which each unit joins the sample; 1 if every unit joins.
        """

    def calibrate(self, compose: Compose, target: PrivacyTarget) -> Self:
        """The same mechanism with the least noise with which a run costs at most the target.

        Args:
            compose: gives the event of the whole run from the mechanism's `event`.

        Raises:
            AccountingError: no noise within the parameter's range meets the target.
        """
        if self.calibrated is None:
            return self
        [solved] = (each for each in parameters(self) if each.name == self.calibrated)

        def with_noise(noise: float) -> dict[str, float]:
            return {solved.name: noise if self.is_noise else 1 / noise}

        ends = (solved.low, solved.high) if self.is_noise else (1 / solved.high, 1 / solved.low)
        noise = calibrate_noise(lambda noise: compose(replace(self, **with_noise(noise)).event), target, *ends)
        return replace(self, **with_noise(noise))

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        """The signal-to-noise ratio of one token step, for comparisons only: no claim depends on it.

        It is `sqrt(2) M` over the standard deviation of the noise on an entry of the sum, for rows whose entries lie in
        [0, 1]. On this scale the ratio of Tang et al. 2024 is M / sigma.
        """

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """The largest distance by which one unit moves the aggregate.

        Args:
            unit_rows: True if each unit is a row of its own; False if a unit is in one of the subsets.
        """

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """The vector to which noise is added, on a lattice, shape (K,). Without noise its largest entry is released."""

    def begin(self, plan: SamplingPlan, randomness: Randomness) -> Releaser:
        """A new releaser for one demonstration; `event` is the cost of all its tokens together.

        The default releaser has no state: it releases every token by `step`.
        """
        return lambda distributions: self.step(distributions, randomness)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        """Release one token from the distributions alone, independently of earlier tokens."""

    @property
    def longest_trail(self) -> int:
        """The largest number of entries of `TokenRelease.trail` after one step."""
        return 0


def mechanism_names() -> list[str]:
    """Names of all mechanisms, private ones first, the one without any privacy last."""
    mechanisms = _registered()
    return sorted(
        mechanisms,
        key=lambda name: (mechanisms[name].not_private is not None, not mechanisms[name].uses_private_rows, name),
    )


def mechanism_class(name: str) -> type[TokenMechanism]:
    """The mechanism of that name.

    Raises:
        UsageError: no mechanism has that name.
    """
    return pick(_registered(), name, "mechanism", mechanism_names())


def _registered() -> dict[str, type[TokenMechanism]]:
    return defined("mechanisms.steps", "MECHANISM")
