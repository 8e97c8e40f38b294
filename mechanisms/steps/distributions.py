"""What a token step gets, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.noise import Floats
from mechanisms.sampling import sensitivity


@dataclass(frozen=True, repr=False)
class TokenDistributions:
    """The model's logits at one token step, restricted to the candidates S (K tokens chosen from public text alone).

    Attributes:
        rows: logits of the private rows, shape (R, K); may hold non-finite values.
        occupied: which rows hold a unit, shape (R,). With subsets every row counts.
        public: logits of the public row, shape (K,).
        expected_rows: M, public.
        unit_rows: each occupied row is one unit.
    """

    rows: Floats
    occupied: NDArray[np.bool_]
    public: Floats
    expected_rows: int
    unit_rows: bool

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of a sum over the rows' probabilities."""
        return sensitivity(self.unit_rows)

    @property
    def public_probabilities(self) -> Floats:
        """The public row renormalised on S, shape (K,)."""
        return np.asarray(softmax(self.public), dtype=np.float64)

    def probabilities(self) -> Floats:
        """Rows renormalised on S one by one, shape (rows that count, K).

        A row with a non-finite value is dropped (unit rows) or becomes the public row (subsets), so that nothing a
        record does can stop or alter a run beyond its own contribution.
        """
        finite = np.isfinite(self.rows).all(axis=1)
        if self.unit_rows:
            return np.asarray(softmax(self.rows[finite & self.occupied], axis=1), dtype=np.float64)
        probabilities = np.tile(self.public_probabilities, (len(self.rows), 1))
        probabilities[finite] = softmax(self.rows[finite], axis=1)
        return probabilities

    def public_step(self) -> TokenDistributions:
        """The same step from public text alone: M copies of the public row."""
        rows = np.tile(self.public, (self.expected_rows, 1))
        occupied = np.ones(self.expected_rows, dtype=np.bool_)
        return TokenDistributions(rows, occupied, self.public, self.expected_rows, self.unit_rows)


@dataclass(frozen=True)
class TokenRelease:
    """What a step releases.

    Attributes:
        index: the chosen candidate's position in S.
        scores: the noisy vector behind the choice, shape (K,), where the mechanism's proof covers it; None where only
            the index may be released.
    """

    index: int
    scores: Floats | None
