"""Which units answer a query: each shard's nearest, or a Poisson sample.

Whatever the query, one unit more or less changes what at most one shard retrieves.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise import Integers


class Retrieval(StrEnum):
    """Where the shards' examples come from."""

    THRESHOLD = "threshold"
    """Each shard's nearest among the units at or above a public similarity, all of which pay."""
    POISSON = "poisson"
    """A Poisson sample of all units, each of which pays for every query (Wu et al. 2024)."""
    LABELS_ONLY = "labels-only"
    """As `THRESHOLD`, but the shards vote with their neighbours' labels: no language model."""


def nearest_by_shard(
    similarity: NDArray[np.float32], shard: Integers, payers: Integers, shards: int, neighbours: int
) -> tuple[tuple[int, ...], ...]:
    """Each shard's nearest payers, nearest first: positions of units, one tuple for each of `shards` shards.

    Args:
        similarity: of every unit to the query, shape (units,).
        shard: every unit's own shard, fixed by a keyed hash of the unit alone, shape (units,).
        payers: ascending positions of the units that pay; ties go to the lower position, so that positions must follow
            an order of the units themselves, such as their keyed digests'.
        shards, neighbours: public.
    """
    ranked = payers[np.argsort(-similarity[payers], kind="stable")]
    own = shard[ranked]
    return tuple(tuple(ranked[own == each][:neighbours].tolist()) for each in range(shards))
