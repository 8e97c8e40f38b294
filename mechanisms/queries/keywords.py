"""Keyword space aggregation with propose-test-release (Wu et al. 2024; Koskela et al. 2025, appendices C.2 and D)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from mechanisms.discovery import parameter, validate
from mechanisms.errors import UsageError
from mechanisms.noise import Integers, Randomness
from mechanisms.queries.mechanism import GRID, QueryMechanism, QueryRelease, noise_caution

_GAP_SENSITIVITY = 2
"""One shard's answer moves each count by at most 1, so each sorted count by at most 1, and each gap by at most 2."""


@dataclass(frozen=True)
class Keywords(QueryMechanism):
    """Release the set of the k tokens in the most shards' answers, if a noisy test finds a wide gap below them.

    k is drawn first, in favour of wide gaps. The set is released without its order, which would leak.
    """

    name: ClassVar[str] = "keywords"
    proof: ClassVar[str] = "docs/queries.md#keywords"
    open_answers: ClassVar[bool] = True
    may_fail: ClassVar[bool] = True

    noise: float = parameter(
        1.0,
        label="Noise of the test",
        help="Half the standard deviation of the noise on the gap, in shards.",
        low=1e-3,
        high=1e9,
        citation="Koskela et al. 2025, algorithm 2 (sigma)",
    )
    fewest_keywords: int = parameter(
        15,
        label="Fewest keywords",
        help="Smallest size of the released set.",
        low=1,
        high=1000,
        citation="Koskela et al. 2025, appendix D (k_min)",
    )
    most_keywords: int = parameter(
        30,
        label="Most keywords",
        help="Largest size of the released set; if it equals the smallest, the choice costs nothing.",
        low=1,
        high=1000,
        citation="Koskela et al. 2025, appendix D (k_max)",
    )
    selection_share: float = parameter(
        0.2,
        label="Share for the size",
        help="Share of an answer's cost for choosing the size of the set.",
        low=0.01,
        high=0.9,
        citation="our choice",
    )
    failure: float = 1e-7
    """The largest probability that the test passes although the gap is too narrow."""

    def __post_init__(self) -> None:
        validate(self)
        if self.fewest_keywords > self.most_keywords:
            raise UsageError("--fewest-keywords must not be larger than --most-keywords.")
        if not 0 < self.failure < 1:
            raise UsageError("The failure probability of the test must lie strictly between 0 and 1.")

    @property
    def selection_epsilon(self) -> float:
        """epsilon of the draw of k, which is epsilon-bounded-range; 0 if only one k is allowed."""
        if self.fewest_keywords == self.most_keywords:
            return 0.0
        return 2 * math.sqrt(self.selection_share / (1 - self.selection_share)) / self.noise

    @property
    def rho(self) -> float:
        """`selection_epsilon^2 / 8` for the draw of k (Cesar and Rogers 2021) plus `1 / (2 noise^2)` for the test."""
        return self.selection_epsilon**2 / 8 + 1 / (2 * self.noise**2)

    @property
    def delta(self) -> float:
        """The probability that the test passes although a neighbouring data set would release another set."""
        return self.failure

    @property
    def deviation(self) -> float:
        return _GAP_SENSITIVITY * self.noise

    @property
    def dominating_noise(self) -> float:
        """The multiplier of one Gaussian that dominates the draw of k and the test together.

        The draw is epsilon-DP, so a Gaussian with mean `2 Phi^-1(e^epsilon / (1 + e^epsilon))` dominates it (Dong,
        Roth, Su 2019); the test is a Gaussian with mean `1 / noise`.
        """
        mean = 2 * float(norm.isf(expit(-self.selection_epsilon)))
        return 1 / math.sqrt(mean**2 + self.noise**-2)

    def caution(self, shards: int) -> str | None:
        """A warning if even a gap of all shards is below the threshold, at which the test passes half of the time."""
        return noise_caution(_GAP_SENSITIVITY + self.deviation * float(norm.isf(self.failure)), shards)

    def calibrate(self, rho: float, delta: float) -> Keywords:
        share = 0.0 if self.fewest_keywords == self.most_keywords else self.selection_share
        return replace(self, noise=1 / math.sqrt(2 * (1 - share) * rho), failure=delta)

    def release(self, histogram: Integers, randomness: Randomness) -> QueryRelease:
        """Release the set, or abstain.

        Args:
            histogram: for each token the number of shards whose answers contain it; more than `most_keywords` tokens.
        """
        order = np.argsort(-histogram, kind="stable")
        ranked = histogram[order[: self.most_keywords + 1]]
        gaps = ranked[self.fewest_keywords - 1 : -1] - ranked[self.fewest_keywords :]
        best = randomness.gumbel_argmax(gaps, 4 / self.selection_epsilon) if len(gaps) > 1 else 0
        if not self._test(int(gaps[best]), randomness):
            return QueryRelease(None, None)
        return QueryRelease(tuple(sorted(order[: self.fewest_keywords + best].tolist())), None)

    def _test(self, gap: int, randomness: Randomness) -> bool:
        """Whether a noisy gap exceeds 2 by so much that a true gap of at most 2 passes with probability at most
        `failure`."""
        scale = self.deviation * GRID
        # The discrete Gaussian's tail from m on is at most the continuous one's from m - 1 on (Canonne, Kamath, Steinke
        # 2020, proposition 25), hence one more lattice point.
        margin = math.ceil(scale * float(norm.isf(self.failure))) + 1
        [noisy] = randomness.gaussian(np.array([max(_GAP_SENSITIVITY, gap) * GRID]), scale)
        return int(noisy) > _GAP_SENSITIVITY * GRID + margin


MECHANISM = Keywords
