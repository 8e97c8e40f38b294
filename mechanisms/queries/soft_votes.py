"""Noisy votes that shards divide among labels: `knn-votes`, but for how a shard votes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.discovery import parameter
from mechanisms.noise import Floats, Integers
from mechanisms.queries.knn_votes import KnnVotes
from mechanisms.queries.mechanism import GRID


@dataclass(frozen=True)
class SoftVotes(KnnVotes):
    """Every shard divides one vote among the labels, in proportion to their probabilities to the power of `sharpness`.

    Two votes are two points of one simplex, as whole votes are two of its corners: `SENSITIVITY` covers them too.
    """

    name: ClassVar[str] = "soft-votes"
    title: ClassVar[str] = "Noisy votes that shards divide"
    citation: ClassVar[str] = "after Koskela et al. 2025, appendix C.1; our choice"
    parts: ClassVar[int] = GRID

    sharpness: float = parameter(
        4.0,
        label="Sharpness",
        help="The power that a shard's probabilities are raised to: 1 as the model gives them, large for whole votes.",
        low=0.1,
        high=100,
        citation="our choice",
    )

    def vote(self, preferences: Floats) -> Integers:
        """Rounded down, so that a vote has `parts` parts at most."""
        # Number by number: no bit of a shard's vote depends on where in memory it stands.
        top = float(preferences.max())
        weights = [math.exp(self.sharpness * (each - top)) for each in preferences.tolist()]
        total = math.fsum(weights)
        return np.array([math.floor(self.parts * (weight / total)) for weight in weights], dtype=np.int64)


MECHANISM = SoftVotes
