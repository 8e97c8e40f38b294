"""AdaDPSyn: noise that shrinks with the ball that contains most rows (Gao et al. 2025, algorithms 1, 4 and 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mechanisms.accounting import PrivacyTarget, calibrate_noise
from mechanisms.discovery import parameter, validate
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.privacy_events import Gaussian, Poisson, PrivacyEvent
from mechanisms.sampling import Compose, SamplingPlan, sensitivity
from mechanisms.steps.distributions import TokenDistributions, TokenRelease
from mechanisms.steps.mechanism import Norm, Sensitivity
from mechanisms.steps.noisy_vector import NoisyVector

GRID = 2.0**24
"""Coordinates are counted in units of 1 / GRID: squared distances then stay below 2^53, so that float64 holds them."""
_COUNT_GRID = 2**10
"""Counts are scaled by this before noise is added: fine enough for any useful noise, coarse enough for 64 bits."""
INITIAL_RADIUS = math.sqrt(2) / 2
"""Half of the diameter of the probability simplex."""
_SHRINK = 1 - 2.0**-40
"""Keeps an offset inside its ball in spite of rounding of its length."""
BALL_SHARE = 0.8
"""rho: the share of the M rows that the target radius is to cover (Gao et al. 2025, section 4.1)."""
_SHARE_OF_BUDGET = 0.1
"""The largest part of 1 / sigma_eff^2 that calibration gives to the radius search, and to the coverage checks."""


@dataclass(frozen=True)
class AdaDPSyn(NoisyVector):
    """Estimate the mean of the rows, then estimate it again within a ball around it; the noise is proportional to the
    radius.

    Every release is Gaussian with noise of its own sensitivity times its multiplier: `searches` pairs of ball counts
    (sigma0), up to 1 + refinements means (sigma1) and up to `refinements` coverage counts (sigma2). Adaptive Gaussian
    releases are dominated by one, of `1 / sigma_eff^2 = k / sigma0^2 + (T + 1) / sigma1^2 + T / sigma2^2`; all are
    charged, even if refinements stop early.
    """

    name: ClassVar[str] = "adadpsyn"
    title: ClassVar[str] = "Adaptive radius (AdaDPSyn)"
    citation: ClassVar[str] = "Gao et al. 2025, algorithm 1"
    proof: ClassVar[str] = "docs/mechanisms.md#adadpsyn-gao-et-al-2025-algorithms-1-4-5"
    takes_transform: ClassVar[bool] = True
    calibrated: ClassVar[str | None] = "sigma1"

    sigma1: float = parameter(
        1.0,
        label="Noise of the means",
        help="Noise multiplier of the mean and of every projected mean.",
        low=1e-3,
        high=1e9,
        citation="Gao et al. 2025, algorithm 1, lines 8 and 20",
    )
    sigma0: float = parameter(
        10.0,
        label="Noise of the radius search",
        help="Noise multiplier of the ball counts; calibration raises it if they would take over 10% of the budget.",
        low=1e-3,
        high=1e9,
        citation="Gao et al. 2025, algorithm 5",
    )
    sigma2: float = parameter(
        3.0,
        label="Noise of the coverage checks",
        help="Noise multiplier of the checks; calibration raises it if they would take over 10% of the budget.",
        low=1e-3,
        high=1e9,
        citation="Gao et al. 2025, algorithm 1, line 12",
    )
    refinements: int = parameter(
        1,
        label="Refinements",
        help="The largest number of times that the ball shrinks at a token.",
        low=0,
        high=10,
        citation="Gao et al. 2025, algorithm 1 (T-hat)",
    )
    theta: float = parameter(
        0.1,
        label="Radius tolerance",
        help="The radius is searched to this precision.",
        low=0.01,
        high=0.5,
        citation="Gao et al. 2025, algorithm 4 (theta)",
    )
    coverage: float = parameter(
        0.55,
        label="Coverage",
        help="Share of the M rows that a ball must contain before the radius shrinks to it.",
        low=0.0,
        high=1.0,
        citation="Gao et al. 2025, section 4.3 (mu)",
    )
    lambda_: float = parameter(
        0.2,
        label="Radius margin",
        help="Share of the noise's expected length that is added to a radius.",
        low=0.0,
        high=10.0,
        citation="Gao et al. 2025, algorithm 1 (lambda)",
    )

    def __post_init__(self) -> None:
        validate(self)

    @property
    def queries(self) -> int:
        """k, the number of ball counts that one radius search releases."""
        return 2 * searches(self.theta)

    @property
    def sigma_eff(self) -> float:
        """The noise multiplier of the one Gaussian release that dominates a step."""
        budget = self.queries / self.sigma0**2 + (self.refinements + 1) / self.sigma1**2
        return 1 / math.sqrt(budget + self.refinements / self.sigma2**2)

    def event(self, steps: int, rate: float) -> PrivacyEvent:
        """One Gaussian release with the multiplier `sigma_eff / sqrt(steps)`, on the sample."""
        single = Gaussian(self.sigma_eff / math.sqrt(steps))
        return single if rate == 1.0 else Poisson(rate, single)

    def calibrate(self, compose: Compose, target: PrivacyTarget) -> AdaDPSyn:
        """The same mechanism with the least sigma1 that meets the target; sigma0 and sigma2 rise if they would take too
        much of the budget.

        Raises:
            AccountingError: no noise meets the target.
        """
        return self._with_effective(calibrate_noise(lambda noise: compose(self._with_effective(noise).event), target))

    def _with_effective(self, sigma_eff: float) -> AdaDPSyn:
        """The same mechanism with that `sigma_eff`."""
        budget = 1 / sigma_eff**2
        sigma0 = max(self.sigma0, math.sqrt(self.queries / (_SHARE_OF_BUDGET * budget)))
        sigma2 = max(self.sigma2, math.sqrt(self.refinements / (_SHARE_OF_BUDGET * budget)))
        left = budget - self.queries / sigma0**2 - self.refinements / sigma2**2
        return replace(self, sigma0=sigma0, sigma1=math.sqrt((self.refinements + 1) / left), sigma2=sigma2)

    def signal_to_noise(self, plan: SamplingPlan) -> float:
        """The signal-to-noise ratio of the first mean; means in a smaller ball have a larger ratio."""
        return plan.rows_per_token * math.sqrt(2) / (sensitivity(plan.unit_rows) * self.sigma1)

    def sensitivity(self, unit_rows: bool) -> Sensitivity:
        """L2 sensitivity of the first sum; `good_radius`, `within` and `projected_offsets` state those of the other
        releases."""
        return Sensitivity(Norm.L2, sensitivity(unit_rows), GRID)

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """The sum of the rows, in units of 1 / GRID."""
        return np.asarray(on_grid(distributions.probabilities()).sum(axis=0), dtype=np.int64)

    def step(self, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        """Release the noisy sums of one token; `scores` is the last one, in units of rows.

        The trail has a pair for each tried ball: its radius, which follows from noisy counts, and the noisy number of
        rows that it contains.
        """
        points, rows = on_grid(distributions.probabilities()), distributions.expected_rows
        target = math.ceil(BALL_SHARE * rows)
        radius = good_radius(points, target, self.theta, self.sigma0, randomness)
        ball, deviation = INITIAL_RADIUS, sensitivity(distributions.unit_rows) * self.sigma1
        tried = list[tuple[float, float]]()
        scores = randomness.gaussian(points.sum(axis=0), deviation * GRID) / GRID
        for _ in range(self.refinements):
            centre = on_grid(_on_simplex(scores))
            reach = radius + self.lambda_ * deviation * math.sqrt(points.shape[1]) / rows
            held = np.asarray([within(points, centre, reach) * int(GRID)], dtype=np.int64)
            covered = float(randomness.gaussian(held, self.sigma2 * GRID)[0]) / GRID
            tried.append((reach, covered))
            if not self._taken(ball, reach, covered, rows):
                break
            ball = reach
            # A unit's own offset is no longer than R; a row that turns into another moves by up to 2 R.
            deviation = (1 if distributions.unit_rows else 2) * ball * self.sigma1
            offsets = projected_offsets(points, centre, ball).sum(axis=0)
            scores = (rows * centre + randomness.gaussian(offsets, deviation * GRID)) / GRID
        return self.read(scores, distributions, deviation, randomness, tuple(tried))

    def _taken(self, ball: float, reach: float, covered: float, rows: float) -> bool:
        """Whether the ball shrinks to the tried radius."""
        return covered >= self.coverage * rows and ball >= reach

    @property
    def longest_trail(self) -> int:
        """The number of refinements: each adds one pair to the trail."""
        return self.refinements


def _on_simplex(scores: Floats) -> Floats:
    """Scores with negative entries set to zero, scaled to sum to 1; uniform if all are zero (line 9)."""
    positive = np.maximum(scores, 0.0)
    total = float(positive.sum())
    return positive / total if total > 0 else np.full(len(scores), 1 / len(scores))


# Counts of rows in a ball, the radius that contains most rows, and projections onto a ball.
#
# Points are integers on a grid, so each count is exact and independent of other points. The last bit of floating-point
# distances can depend on the shape of arrays, which would leave the sensitivity of a count unbounded.


def on_grid(probabilities: Floats) -> Integers:
    """Probabilities rounded down to the grid, in units of 1 / GRID; vectors stay in the unit ball, with non-negative
    entries."""
    return np.asarray(np.floor(probabilities * GRID), dtype=np.int64)


def searches(theta: float) -> int:
    """The number of iterations of the binary search for a radius to the precision `theta`; each iteration releases two
    ball counts."""
    return math.ceil(math.log2(INITIAL_RADIUS / theta))


def _squared_distances(points: Integers) -> Floats:
    exact = points.astype(np.float64)
    squares = (exact**2).sum(axis=1)
    return np.asarray(squares[:, None] + squares[None, :] - 2 * (exact @ exact.T), dtype=np.float64)


def _ball_volume(squared_distances: Floats, target: int, radius: float) -> int:
    """`target` times L(radius) of algorithm 4: the sum of the `target` largest ball counts, each capped at `target`.

    A unit adds 1 to each of at most `target` counts, and its own count of at most `target` may replace a smaller one: L
    moves by at most 2. With fewer points than `target` all counts are summed.
    """
    counts = np.minimum((squared_distances <= (radius * GRID) ** 2).sum(axis=1), target)
    return int(np.sort(counts)[::-1][:target].sum())


def good_radius(points: Integers, target: int, theta: float, sigma0: float, randomness: Randomness) -> float:
    """A radius such that some ball of that radius contains about `target` points (Gao et al. 2025, algorithms 4 and 5).

    Each iteration releases L at half the radius and at the radius, independently of the first release. L has
    sensitivity 2, and the Gaussian noise has standard deviation `2 sigma0`.

    Args:
        points: in units of 1 / GRID, shape (rows, K).
        theta: the precision of the radius.
        sigma0: the noise multiplier of each release.
    """
    distances = _squared_distances(points)
    low, high = 0.0, INITIAL_RADIUS
    for _ in range(searches(theta)):
        middle = (low + high) / 2
        exact = [_ball_volume(distances, target, radius) for radius in (middle / 2, middle)]
        volumes = np.asarray(exact, dtype=np.int64) * _COUNT_GRID
        noisy = randomness.gaussian(volumes, 2 * sigma0 * target * _COUNT_GRID) / (target * _COUNT_GRID)
        if (noisy >= target).any():
            high = middle
        else:
            low = middle
    return (low + high) / 2


def within(points: Integers, centre: Integers, radius: float) -> int:
    """The number of points within `radius` of `centre`; one unit changes it by at most 1.

    Args:
        points, centre: in units of 1 / GRID, shapes (rows, K) and (K,).
        radius: in units of 1.
    """
    squares = ((points - centre).astype(np.float64) ** 2).sum(axis=1)
    return int((squares <= (radius * GRID) ** 2).sum())


def projected_offsets(points: Integers, centre: Integers, radius: float) -> Integers:
    """The offset of every point from `centre`, shortened to `radius`, in units of 1 / GRID; shape of `points`.

    A unit that appears adds its own offset to their sum, of length at most `radius`. (A projected point would also add
    the centre, of length up to 1.) Rounding towards zero never makes an offset longer.

    Args:
        points, centre: in units of 1 / GRID, shapes (rows, K) and (K,).
        radius: in units of 1.
    """
    offsets = (points - centre).astype(np.float64)
    lengths = np.sqrt((offsets**2).sum(axis=1, keepdims=True))
    scale = np.minimum(1.0, _SHRINK * radius * GRID / np.maximum(lengths, 1.0))
    return np.asarray(np.trunc(offsets * scale), dtype=np.int64)


MECHANISM = AdaDPSyn
