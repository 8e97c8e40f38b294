"""Exact similarities, and the units from which each shard answers a query.

docs/queries.md#from-question-to-answer proves that one unit changes the answer of at most one shard.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise import Integers

# Exact search: cosine similarities whose bits do not depend on other rows.
#
# A unit's charge may depend only on that unit, the query and past releases, so a library's order of summation must not
# matter. Unit vectors are rounded to the grid 2^-11. In grid steps a vector of d coordinates then has at most the norm
# `2^11 + sqrt(d) / 2`, so by Cauchy and Schwarz every partial sum of a dot product is an integer below `(2^11 + sqrt(d)
# / 2)^2 < 2^24` for any d below 2^24: float32 holds each of them exactly, in any order, fused or not.

GRID = 2**11
"""Grid steps in 1."""


def on_grid(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors rounded to the grid, shape of `vectors`; a coordinate that is not finite counts as zero.

    Args:
        vectors: of unit length, shape (rows, dimensions).
    """
    finite = np.where(np.isfinite(vectors), vectors, 0)
    rounded: NDArray[np.float32] = (np.rint(np.clip(finite, -1, 1) * GRID) / GRID).astype(np.float32)
    return rounded


def similarities(rows: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine similarity of every row to the query, shape (rows,), without any rounding.

    The threshold rule needs the similarity of every row, so an index has nothing to skip. NumPy's product was faster
    than the flat indexes of libraries (research/docs/answers.md).

    Args:
        rows, query: on the grid, shapes (rows, dimensions) and (dimensions,).
    """
    products: NDArray[np.float32] = rows @ query
    return products


# The units that answer a query: each shard's nearest, or a Poisson sample.
#
# For any query, one unit more or less changes the examples of at most one shard.


class Retrieval(StrEnum):
    """The units among which shards find their examples."""

    THRESHOLD = "threshold"
    """The units whose similarity to the query is at least a public threshold; all of them pay."""
    POISSON = "poisson"
    """A Poisson sample of all units; every unit pays for every query (Wu et al. 2024)."""
    LABELS_ONLY = "labels-only"
    """Like `THRESHOLD`, but shards vote with the labels of their examples, without a language model."""


def nearest_by_shard(
    similarity: NDArray[np.float32], shard: Integers, payers: Integers, shards: int, neighbours: int
) -> tuple[tuple[int, ...], ...]:
    """For each shard the positions of its nearest payers, the nearest first.

    Args:
        similarity: the similarity of every unit to the query, shape (units,).
        shard: the shard of every unit, from a keyed hash of the unit alone, shape (units,).
        payers: ascending positions of the units that pay. The lower position wins a tie, so positions must follow an
            order of the units themselves, such as that of their keyed digests.
        shards, neighbours: the public number of shards, and the most examples of a shard.
    """
    ranked = payers[np.argsort(-similarity[payers], kind="stable")]
    own = shard[ranked]
    return tuple(tuple(ranked[own == each][:neighbours].tolist()) for each in range(shards))
