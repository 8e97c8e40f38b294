"""The input and the output of a token step, and how a released noisy vector becomes a token."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.noise import Floats, Integers, Randomness

GRID = 2.0**30
"""Lattice points in 1: values are whole numbers of 1 / GRID, so that sums are exact in any order."""


@dataclass(frozen=True, repr=False)
class TokenDistributions:
    """The model's logits at one token step, restricted to the K candidates S, which depend on public text alone.

    Attributes:
        rows: logits of the private rows, shape (R, K); may hold non-finite values.
        occupied: True for each row that contains a unit, shape (R,). With subsets every row counts.
        public: logits of the public row, shape (K,).
        expected_rows: M, the public number of rows that are expected.
        unit_rows: True if each occupied row is one unit.
        base: logits after the tokens so far without any prompt, shape (K,); None if no transform needs them.
    """

    rows: Floats
    occupied: NDArray[np.bool_]
    public: Floats
    expected_rows: int
    unit_rows: bool
    base: Floats | None = None

    @property
    def public_probabilities(self) -> Floats:
        """The public row renormalised on S, shape (K,)."""
        return np.asarray(softmax(self.public), dtype=np.float64)

    def probabilities(self) -> Floats:
        """Each row renormalised separately over S, shape (rows that count, K).

        A row with a non-finite value is dropped (unit rows) or replaced by the public row (subsets), so a record can
        neither stop a run nor alter it beyond its own contribution.
        """
        finite = np.isfinite(self.rows).all(axis=1)
        with np.errstate(all="ignore"):  # logits near the largest float may overflow on the way to a probability of 0
            if self.unit_rows:
                return np.asarray(softmax(self.rows[finite & self.occupied], axis=1), dtype=np.float64)
            probabilities = np.tile(self.public_probabilities, (len(self.rows), 1))
            probabilities[finite] = softmax(self.rows[finite], axis=1)
        return probabilities

    def unit_logits(self) -> Floats:
        """Logits of the occupied rows without non-finite values, shape (units, K); for `unit_rows` alone."""
        return self.rows[np.isfinite(self.rows).all(axis=1) & self.occupied]

    def public_step(self) -> TokenDistributions:
        """The same step with M copies of the public row instead of the private rows."""
        rows = np.tile(self.public, (self.expected_rows, 1))
        occupied = np.ones(self.expected_rows, dtype=np.bool_)
        return replace(self, rows=rows, occupied=occupied)


def to_lattice(values: Floats) -> Integers:
    """Values rounded down to the lattice, in units of 1 / GRID: a value of at least 0 never grows."""
    return np.floor(values * GRID).astype(np.int64)


def lattice_sum(distributions: TokenDistributions) -> Integers:
    """The sum of the rows' probabilities, each rounded down to the lattice, in units of 1 / GRID; shape (K,)."""
    return np.asarray(to_lattice(distributions.probabilities()).sum(axis=0), dtype=np.int64)


@dataclass(frozen=True)
class TokenRelease:
    """The release of one token step.

    Attributes:
        index: the position of the chosen candidate in S.
        scores: the noisy vector behind the choice, shape (K,); None if the proof covers the index alone.
        free: True if the token depends on public text alone and uses nothing of the demonstration's charge.
        trail: pairs of numbers that the step released before `scores`; the mechanism's `event` pays for them.
        values: the shares that decided the choice, shape (K,), a function of `scores` and public values; None if there
            are no scores.
    """

    index: int
    scores: Floats | None
    free: bool = False
    trail: tuple[tuple[float, float], ...] = ()
    values: Floats | None = None


# From here on: from a released noisy vector to a token, which is post-processing and costs nothing.
def project_to_simplex(vector: Floats) -> Floats:
    """The probability vector nearest to a vector in Euclidean distance, shape (K,) (Held, Wolfe, Crowder 1974).

    The projection subtracts one threshold from every value and sets negative results to zero, which removes most of the
    noise on unlikely tokens.
    """
    ordered = np.sort(vector)[::-1]
    thresholds = (np.cumsum(ordered) - 1) / np.arange(1, len(vector) + 1)
    last = int(np.nonzero(ordered > thresholds)[0][-1])
    return np.asarray(np.maximum(vector - thresholds[last], 0.0))


def choose(shares: Floats, temperature: float, top_p: float, randomness: Randomness) -> int:
    """The position of the chosen candidate.

    Temperature 0 selects the largest share. A higher temperature draws from the projected shares to the power 1 /
    temperature, among the most likely candidates with a total share of `top_p`.

    Args:
        shares: the noisy sum of the rows over the public number of rows, shape (K,).
    """
    if temperature == 0:
        return int(np.argmax(shares))
    probabilities = project_to_simplex(shares)
    weights = (probabilities / probabilities.max()) ** (1 / temperature)
    order = np.argsort(-weights, kind="stable")
    cumulative = np.cumsum(weights[order]) / weights.sum()
    kept = order[: int(np.searchsorted(cumulative, top_p)) + 1]
    running = np.cumsum(weights[kept])
    place = int(np.searchsorted(running, randomness.uniform(1)[0] * running[-1]))
    return int(kept[min(place, len(kept) - 1)])
