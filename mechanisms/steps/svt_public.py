"""Private tokens only if the private rows disagree with public text (Amin et al. 2024, algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mechanisms.discovery import parameter, validate
from mechanisms.noise import Integers, Randomness
from mechanisms.privacy_events import Poisson, PrivacyEvent, Pure, SequentialComposition
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps.distributions import GRID, TokenDistributions, TokenRelease, choose, lattice_sum, to_lattice
from mechanisms.steps.mechanism import Sensitivity, TokenMechanism
from mechanisms.steps.noisy_max import NoisyMax

_ROW = 2 * GRID
"""Lattice points by which one row can move the distance: two distributions are at most 2 apart in L1."""
_THRESHOLD_SHARE = 1 / (1 + 2 ** (2 / 3))
"""The threshold's part of a search's epsilon: the least variance of threshold and query together (Lyu et al. 2017)."""
_CLOSED_PER_TOKEN = (
    "'svt-public' is not available with a new sample for every token: many tokens share a noisy threshold, so all "
    "their samples would count as one, at about that many times the rate. Choose one sample for each demonstration."
)


@dataclass(frozen=True)
class SvtPublic(TokenMechanism):
    """Search for a token at which the rows are further from public text than a noisy threshold. All tokens before it
    are drawn from public text for free. That token is chosen by report noisy max, and the search begins anew.

    After the last of `private_tokens` all tokens are public. A search is AboveThreshold on a distance that one unit
    moves by at most one row. A search of any length costs half of `token_epsilon`, and the choice costs the other half.
    """

    name: ClassVar[str] = "svt-public"
    title: ClassVar[str] = "Public text where the rows agree with it"
    citation: ClassVar[str] = "Amin et al. 2024, algorithm 1"
    proof: ClassVar[str] = "docs/mechanisms.md#svt-public-amin-et-al-2024-algorithm-1"
    takes_transform: ClassVar[bool] = True
    calibrated: ClassVar[str | None] = "token_epsilon"
    is_noise: ClassVar[bool] = False

    token_epsilon: float = parameter(
        0.2,
        label="Epsilon of a private token",
        help="Pure epsilon of a private token: half for its position, half for its choice.",
        low=1e-6,
        high=50.0,
        citation="docs/mechanisms.md, svt-public",
    )
    private_tokens: int = parameter(
        8,
        label="Private tokens",
        help="The most private tokens of a demonstration; all others are public and free.",
        low=1,
        high=1000,
        citation="Amin et al. 2024 (r)",
    )
    threshold: float = parameter(
        0.3,
        label="Threshold",
        help="Total variation distance of the rows' mean from public text above which a token is private.",
        low=0.0,
        high=1.0,
        citation="Amin et al. 2024 (theta)",
    )
    temperature: float = parameter(
        1.0,
        label="Temperature of public text",
        help="Free tokens are drawn from the public distribution at this temperature; it costs no privacy.",
        low=0.0,
        high=10.0,
        citation="Amin et al. 2024 (temperature of public tokens)",
    )

    def __post_init__(self) -> None:
        validate(self)

    @property
    def half(self) -> float:
        """Epsilon of one search, and of one choice."""
        return self.token_epsilon / 2

    def closed(self, plan: SamplingPlan) -> str | None:
        return _CLOSED_PER_TOKEN if plan.scheme is Scheme.PER_TOKEN else None

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """One search and one choice for each private token, at most one for each token; the sample mixes the dominating
        pair of all of them."""
        most = min(self.private_tokens, steps)
        demonstration = SequentialComposition((Pure(self.half, most), Pure(self.half, most)))
        return demonstration if rate == 1.0 else Poisson(rate, demonstration)

    @property
    def _choice(self) -> NoisyMax:
        return NoisyMax(self.half)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        return self._choice.signal_to_noise(plan)

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """Sensitivity of the choice of a private token. The search's distance moves by at most one row."""
        return self._choice.sensitivity(unit_rows)

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """The scores among which a private token is chosen."""
        return self._choice.aggregate(distributions)

    def begin(self, plan: SamplingPlan, randomness: Randomness) -> SparseReleaser:
        return SparseReleaser(self, round(self.threshold * plan.rows_per_token * _ROW), randomness, self.private_tokens)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        return self._choice.step(distributions, randomness)


def distance(distributions: TokenDistributions) -> int:
    """The L1 distance of the rows' sum from as many public rows, `|sum_i (p_i - p_public)|_1`, in units of 1 / GRID.

    A unit adds the difference of its own row, or turns one row into another. Two distributions on the lattice are at
    most `_ROW` apart, so one unit moves the distance by at most `_ROW`. A row that is not finite adds nothing.
    """
    public = to_lattice(distributions.public_probabilities)
    difference = lattice_sum(distributions) - len(distributions.probabilities()) * public
    return int(np.abs(difference).sum())


@dataclass(repr=False)
class SparseReleaser:
    """The releaser of one demonstration.

    Attributes:
        threshold: the threshold without noise, in units of 1 / GRID.
        left: the remaining number of private tokens.
        noisy_threshold: the noisy threshold of the current search; None before its first question.
    """

    mechanism: SvtPublic
    threshold: int
    randomness: Randomness
    left: int
    noisy_threshold: int | None = field(default=None, init=False)

    def __call__(self, distributions: TokenDistributions) -> TokenRelease:
        if self.left == 0 or not self._above(distance(distributions)):
            public = distributions.public_probabilities
            return TokenRelease(choose(public, self.mechanism.temperature, 1.0, self.randomness), None, free=True)
        self.left, self.noisy_threshold = self.left - 1, None
        return self.mechanism.step(distributions, self.randomness)

    def _above(self, exact: int) -> bool:
        """One question of AboveThreshold; the noise scale is `row / epsilon_1` for the threshold and `2 row /
        epsilon_2` for the question."""
        of_threshold = _THRESHOLD_SHARE * self.mechanism.half
        if self.noisy_threshold is None:
            self.noisy_threshold = self._noisy(self.threshold, _ROW / of_threshold)
        return self._noisy(exact, 2 * _ROW / (self.mechanism.half - of_threshold)) >= self.noisy_threshold

    def _noisy(self, value: int, scale: float) -> int:
        return int(self.randomness.laplace(np.array([value], dtype=np.int64), scale)[0])


MECHANISM = SvtPublic
