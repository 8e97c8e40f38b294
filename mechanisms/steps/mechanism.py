"""The protocol of a token-level mechanism: a frozen dataclass of public values."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from mechanisms.accounting import PrivacyTarget
from mechanisms.noise import Randomness
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.sampling import Compose, SamplingPlan
from mechanisms.steps.distributions import TokenDistributions, TokenRelease


class TokenMechanism(Protocol):
    """One way to release the next token from private distributions."""

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    uses_private_rows: ClassVar[bool]
    """False for a baseline that never looks at the data: no rows are prompted and nothing is charged."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """The privacy event of `steps` adaptive token steps on one Poisson sample of the given rate."""
        ...

    def calibrate(self, compose: Compose, target: PrivacyTarget) -> Self:
        """The same mechanism with the least noise with which the composed run meets the target."""
        ...

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        """Signal-to-noise of one token step, on the scale where Tang et al.'s is M / sigma."""
        ...

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        """Release one token."""
        ...
