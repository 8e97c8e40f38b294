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
    """Largest less smallest entry of the difference: what bounds how far a selection's threshold moves."""


@dataclass(frozen=True)
class Sensitivity:
    """How far apart the aggregates of two neighbours can be.

    The bound is in the aggregate's natural units (rows, or logits), of `grid` lattice points each.
    """

    norm: Norm
    bound: float
    grid: float = GRID

    @property
    def on_lattice(self) -> float:
        """The distance in lattice points."""
        return self.bound * self.grid


Releaser = Callable[[TokenDistributions], TokenRelease]
"""Releases one demonstration token by token, charged or free, and has memory of that demonstration alone."""


class TokenMechanism(Protocol):
    """A way to release tokens from private distributions, a frozen dataclass of public values.

    Subclasses inherit what has a body here.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    proof: ClassVar[str]
    """`FILE#HEADING` of the proof that `event` pays for all that a demonstration releases."""
    uses_private_rows: ClassVar[bool] = True
    """False for a baseline that never looks at the data: no rows are prompted and nothing is charged."""
    takes_transform: ClassVar[bool] = False
    """Its proof asks of a row only that it is a probability distribution, so that a transform may run in front."""
    not_private: ClassVar[str | None] = None
    """Why nothing that it releases is private; None for every mechanism with a guarantee."""

    calibrated: ClassVar[str | None] = None
    """The described parameter that `calibrate` solves for; None where there is no noise."""
    is_noise: ClassVar[bool] = True
    """Whether this parameter grows with the noise; False where its inverse does."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def closed(self, plan: SamplingPlan) -> str | None:
        """Why this mechanism has no sound accounting under a plan, with an alternative; None if it has one."""
        return None

    def for_plan(self, plan: SamplingPlan) -> Self:
        """The same mechanism with the numbers of a plan that it needs.

        Raises:
            UsageError: it has no sound accounting under this plan.
        """
        if reason := self.closed(plan):
            raise UsageError(reason)
        return self

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """The privacy event of `steps` adaptive token steps on one Poisson sample of the given rate."""

    def calibrate(self, compose: Compose, target: PrivacyTarget) -> Self:
        """The same mechanism with the least noise with which the composed run meets the target.

        Raises:
            AccountingError: no noise in the parameter's range does.
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
        """Signal-to-noise of one token step, on the scale where Tang et al.'s is M / sigma.

        `sqrt(2) M` over the standard deviation of the noise on an entry of the sum, for rows whose entries lie in
        [0, 1]: what M rows that agree stand above the noise. For comparisons only; no claim depends on it.
        """

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """How far a unit can move the aggregate."""

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """The vector that noise is added to, on a lattice, shape (K,). Without noise its largest entry wins."""

    def begin(self, plan: SamplingPlan, randomness: Randomness) -> Releaser:
        """A new releaser for one demonstration; `event` is what all its steps cost.

        The default has no memory: every token is a `step`.
        """
        return lambda distributions: self.step(distributions, randomness)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        """Release one token, independently of earlier tokens of the demonstration."""

    @property
    def longest_trail(self) -> int:
        """Entries of a step's `TokenRelease.trail` at most."""
        return 0


def mechanism_names() -> list[str]:
    """Names of all mechanisms, private ones first, the one without any privacy last."""
    mechanisms = _registered()
    return sorted(
        mechanisms,
        key=lambda name: (mechanisms[name].not_private is not None, not mechanisms[name].uses_private_rows, name),
    )


def mechanism_class(name: str) -> type[TokenMechanism]:
    """The mechanism of that name; a `UsageError` where there is none."""
    return pick(_registered(), name, "mechanism", mechanism_names())


def _registered() -> dict[str, type[TokenMechanism]]:
    return defined("mechanisms.steps", "MECHANISM")
