"""Exact search, and which units answer a query."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise import Integers

# Exact search: cosine similarities whose bits do not depend on what else is searched.
#
# A unit's charge may depend on that unit, the query and past releases only, so that a library's order of summation
# must not matter. Unit vectors are rounded to the grid 2^-11. In grid steps a vector of d coordinates then has at
# most the norm `2^11 + sqrt(d) / 2`, so by Cauchy and Schwarz every partial sum of a dot product is an integer below
# `(2^11 + sqrt(d) / 2)^2 < 2^24` for any d below 2^24: float32 holds each of them exactly, in any order, fused or
# not.

GRID = 2**11
"""Grid steps in a vector of length one."""


def on_grid(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit vectors, shape (rows, dimensions), rounded; a coordinate that is not finite counts as zero."""
    finite = np.where(np.isfinite(vectors), vectors, 0)
    rounded: NDArray[np.float32] = (np.rint(np.clip(finite, -1, 1) * GRID) / GRID).astype(np.float32)
    return rounded


def similarities(rows: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosine similarity of every row, shape (rows, dimensions), to the query, (dimensions,); exact on the grid.

    The threshold rule asks for every row's similarity, so that an index would have nothing to skip; numpy's product was
    measured to be faster than the flat indexes of libraries (research/docs/answers.md).
    """
    products: NDArray[np.float32] = rows @ query
    return products


# Which units answer a query: each shard's nearest, or a Poisson sample.
#
# Whatever the query, one unit more or less changes what at most one shard retrieves.


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
    """Each shard's nearest payers, nearest first: positions of units. `shards` and `neighbours` are public.

    Args:
        similarity: of every unit to the query, shape (units,).
        shard: every unit's own shard, fixed by a keyed hash of the unit alone, shape (units,).
        payers: ascending positions of the units that pay; ties go to the lower position, so that positions must follow
            an order of the units themselves, such as their keyed digests'.
    """
    ranked = payers[np.argsort(-similarity[payers], kind="stable")]
    own = shard[ranked]
    return tuple(tuple(ranked[own == each][:neighbours].tolist()) for each in range(shards))
