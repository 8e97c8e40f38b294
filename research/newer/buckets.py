"""Noisy class votes in the buckets of a locality-sensitive hash: after arXiv 2606.01413.

This was built from a description of the method, without the paper at hand, so that details may differ from it. Public
random hyperplanes cut the space of embeddings into buckets; the rows of each label in each bucket are counted, once,
with noise. A question is answered by the counts of its bucket and, where these do not tell, of the buckets around it.
It costs the same for any number of questions, and needs no language model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.queries.retrieval import GRID, on_grid
from mechanisms.tallies.tally import WholeVotes

ROWS_OF_A_BUCKET = 20
"""Expected, from which the public number of rows gives the number of hyperplanes."""
_SURE = 2.0
"""A lead of one label over the next one that tells, in standard deviations of its noise."""
_AT_ONCE = 500
"""Rows whose votes are held in memory together."""

# The privacy proof.
#
# The hyperplanes are public. Which bucket a row falls into follows from the row and these alone: coordinates are whole
# grid steps and the hyperplanes' are 1 or -1, so that sums are exact in any order. A row is a vote for one cell of the
# public table of buckets by labels, or for none where its label is unknown. Neighbours differ in one row, so that the
# tables differ by 1 in one cell at most. The whole table is released with discrete Laplace noise of scale 1 / epsilon:
# epsilon-DP, by `mechanisms/tallies/tally.py`. Answers are made of the release. []


def bits_for(units: int) -> int:
    """The number of hyperplanes for a public number of rows."""
    return max(1, int(np.log2(units / ROWS_OF_A_BUCKET)))


def hyperplanes(bits: int, dimensions: int, randomness: Randomness) -> Integers:
    """Normal vectors of random hyperplanes through the origin, shape (bits, dimensions), of entries 1 and -1."""
    signs = np.where(randomness.uniform(bits * dimensions) < 0.5, -1, 1)
    return np.asarray(signs.reshape(bits, dimensions), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Buckets:
    """Public terms of the release.

    Attributes:
        planes: `hyperplanes`.
        labels: their number.
        tally: one vote a row, at its epsilon.
    """

    planes: Integers
    labels: int
    tally: WholeVotes

    @property
    def number(self) -> int:
        """Buckets in all."""
        return 1 << len(self.planes)

    def of(self, vectors: NDArray[np.float32]) -> Integers:
        """Each vector's bucket, shape (rows,): a bit says on which side of a hyperplane it lies."""
        whole = (on_grid(vectors) * GRID).astype(np.int64)
        return np.asarray((whole @ self.planes.T > 0) @ (1 << np.arange(len(self.planes))))

    def votes(self, labels: Integers, vectors: NDArray[np.float32]) -> Iterator[Floats]:
        """One vote a row, in chunks of shape (rows, buckets * labels), at least one; unknown labels cast none."""
        known = (labels >= 0) & (labels < self.labels)
        cells = self.of(vectors) * self.labels + labels
        for start in range(0, max(1, len(cells)), _AT_ONCE):
            chunk = slice(start, start + _AT_ONCE)
            cast = np.zeros((len(cells[chunk]), self.number * self.labels))
            [rows] = np.nonzero(known[chunk])
            cast[rows, cells[chunk][rows]] = 1.0
            yield cast

    def release(self, labels: Integers, vectors: NDArray[np.float32], randomness: Randomness) -> Floats:
        """Noisy counts, shape (buckets, labels).

        Args:
            labels: the rows' labels by position, shape (rows,).
            vectors: the rows' embeddings, shape (rows, dimensions).
        """
        noisy = self.tally.release_of(self.votes(labels, vectors), randomness)
        return noisy.reshape(self.number, self.labels)

    def answer(self, counts: Floats, bucket: int) -> int:
        """The label that leads among the buckets within the least Hamming distance at which the lead tells.

        Where none does, the one with the largest count of all.
        """
        distances = np.bitwise_count(np.arange(self.number) ^ bucket)
        for distance in range(len(self.planes) + 1):
            near = distances <= distance
            total = counts[near].sum(axis=0)
            second, first = np.sort(total)[-2:]
            if first - second > _SURE * self.tally.deviation * np.sqrt(2 * near.sum()):
                break
        return int(total.argmax())
