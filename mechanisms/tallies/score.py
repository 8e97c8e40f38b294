"""Score: a noisy table of the arms under which units are right, with the rates and intervals computed from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms import confidence
from mechanisms.noise import Floats
from mechanisms.tallies.tally import LATTICE, WholeVotes

_Quadratic = tuple[float, float, float]
"""Coefficients of a quadratic in x, the highest power first; x satisfies it if the value is at most zero."""


@dataclass(frozen=True)
class Estimate:
    """A rate in [0, 1], or a difference of rates in [-1, 1], with its interval.

    The interval covers sampling and noise, at the level `mechanisms.confidence.LEVEL`.
    """

    value: float
    low: float
    high: float

    @property
    def wide(self) -> bool:
        """Whether the interval is too wide to be useful."""
        return self.high - self.low > 0.2


@dataclass(frozen=True)
class ScoreTally(WholeVotes):
    """A row is in the one of 2^A cells that says under which of the A arms it is right; a user has the mean of its
    rows.

    All figures of all arms are post-processing of one noisy table. Cells below zero are kept: clipping them at zero
    would bias rates by up to 14 points.

    Attributes:
        weighted: True if units have weights of at most 1, as in `tally.py`; rates are then weighted means.
    """

    name: ClassVar[str] = "score"
    proof: ClassVar[str] = "docs/tallies.md#score"

    weighted: bool = False

    @property
    def steps(self) -> int:
        return LATTICE if self.by_user or self.weighted else 1

    @staticmethod
    def cells(right: NDArray[np.bool_]) -> Floats:
        """The one-hot vector of each row, shape (rows, 2^A).

        Args:
            right: True if a row is right under an arm, shape (rows, A).
        """
        rows, arms = right.shape
        places = right.astype(np.int64) @ (1 << np.arange(arms))
        return np.asarray(np.eye(2**arms)[places].reshape(rows, 2**arms))

    def accuracy(self, cells: Floats, arm: int) -> Estimate:
        """The rate p of an arm, with its interval: all p that are consistent with the noisy counts (docs/tallies.md).

        With R right, W wrong, N = R + W, and u the noise variance of R or W, these p satisfy `((1-p) R - p W)^2 <= z^2
        (N p (1-p) + u ((1-p)^2 + p^2))`. For users N p (1-p) bounds the variance of means, and for weighted units that
        of weighted counts, because w^2 <= w for a weight w of at most 1.

        Args:
            cells: the released table, shape (2^A,).
            arm: the position of the arm.
        """
        right = float(cells[_right(cells, arm)].sum())
        total = float(cells.sum())
        noise, z2 = self._half_noise(cells), confidence.standard_errors() ** 2
        within = (
            total**2 + z2 * (total - 2 * noise),
            -2 * right * total - z2 * (total - 2 * noise),
            right**2 - z2 * noise,
        )
        return _estimate(right, total, (within,), lowest=0.0)

    def difference(self, cells: Floats, one: int, other: int) -> Estimate:
        """The difference d = rate of `one` - rate of `other` on the same units, with its interval.

        With b units right under `one` alone and c under `other` alone, and N and u as in `accuracy`, these d satisfy
        `(b - c - d N)^2 <= z^2 (max(b + c - d^2 N, 0) + u (1 + 2 d^2))`. A d satisfies it if it does for either side of
        the maximum.

        Args:
            cells: the released table, shape (2^A,).
            one, other: the positions of the arms.
        """
        first, second = _right(cells, one), _right(cells, other)
        only_first, only_second = float(cells[first & ~second].sum()), float(cells[second & ~first].sum())
        gain, apart, total = only_first - only_second, only_first + only_second, float(cells.sum())
        noise, z2 = self._half_noise(cells), confidence.standard_errors() ** 2
        noise_alone = (total**2 - 2 * z2 * noise, -2 * gain * total, gain**2 - z2 * noise)
        with_sampling = (noise_alone[0] + z2 * total, noise_alone[1], noise_alone[2] - z2 * apart)
        return _estimate(gain, total, (noise_alone, with_sampling), lowest=-1.0)

    def _half_noise(self, cells: Floats) -> float:
        """The variance of the noise on a sum of half of the cells."""
        return len(cells) / 2 * self.deviation**2


def _right(cells: Floats, arm: int) -> NDArray[np.bool_]:
    return np.asarray(np.arange(len(cells)) >> arm & 1, dtype=np.bool_)


def _estimate(count: float, total: float, within: tuple[_Quadratic, ...], lowest: float) -> Estimate:
    """`count / total` with the smallest interval around all x in [lowest, 1] that satisfy one of the quadratics."""
    if total <= 0:
        return Estimate((lowest + 1) / 2, lowest, 1.0)
    ends = [end for end in (lowest, 1.0) if any(np.polyval(each, end) <= 0 for each in within)]
    points = ends + [root for each in within for root in _real_roots(each) if lowest <= root <= 1]
    low, high = (min(points), max(points)) if points else (lowest, 1.0)
    return Estimate(min(max(count / total, low), high), low, high)


def _real_roots(quadratic: _Quadratic) -> list[float]:
    roots: NDArray[Any] = np.roots(quadratic)
    return [float(root.real) for root in roots if abs(root.imag) <= 1e-12 * max(1.0, abs(root))]


TALLY = ScoreTally
