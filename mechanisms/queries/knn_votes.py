"""Noisy votes of shards (Koskela et al. 2025, section 2 and appendix C.1; after Papernot et al. 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from mechanisms.discovery import parameter, validate
from mechanisms.noise import Integers, Randomness
from mechanisms.queries.mechanism import GRID, QueryMechanism, QueryRelease, noise_caution

SENSITIVITY = math.sqrt(2)
"""L2: a shard that votes for another label changes two counts by 1 each."""


@dataclass(frozen=True)
class KnnVotes(QueryMechanism):
    """Every shard casts one vote for a label; all of `h + N(0, noise^2)` is released, and its largest entry is the
    answer."""

    name: ClassVar[str] = "knn-votes"
    proof: ClassVar[str] = "docs/queries.md#knn-votes"

    noise: float = parameter(
        4.0,
        label="Noise",
        help="Standard deviation of the noise on each label's votes.",
        low=1e-3,
        high=1e9,
        citation="Koskela et al. 2025 (sigma)",
    )

    def __post_init__(self) -> None:
        validate(self)

    @property
    def rho(self) -> float:
        """`SENSITIVITY^2 / (2 noise^2) = 1 / noise^2` (Bun and Steinke 2016)."""
        return SENSITIVITY**2 / (2 * self.noise**2)

    @property
    def delta(self) -> float:
        return 0.0

    @property
    def deviation(self) -> float:
        return self.noise

    @property
    def dominating_noise(self) -> float:
        return self.noise / SENSITIVITY

    def caution(self, shards: int) -> str | None:
        """A warning if even unanimous votes differ by less than the noise on a difference of two counts."""
        return noise_caution(math.sqrt(2) * self.noise, shards)

    def calibrate(self, rho: float, delta: float) -> Self:
        return replace(self, noise=SENSITIVITY / math.sqrt(2 * rho))

    def release(self, histogram: Integers, randomness: Randomness) -> QueryRelease:
        """Release the noisy votes as `scores`, and the label with the most of them."""
        scores = randomness.gaussian(histogram * GRID, self.noise * GRID) / GRID
        return QueryRelease((int(scores.argmax()),), scores)


MECHANISM = KnnVotes
