"""The geometry of AdaDPSyn: how many rows a ball holds, the radius that holds most, and rows pulled into a ball.

Points are integers on a grid, so that every count is the same whatever other points there are: floating-point distances
may change their last bit with the shape of the arrays that they are computed in, and a count that jumps with it would
have no sensitivity at all.
"""

from __future__ import annotations

import math

import numpy as np

from mechanisms.noise import Floats, Integers, Randomness

GRID = 2.0**24
"""Coordinates are counted in units of 1 / GRID: squared distances then stay below 2^53, so that float64 holds them."""
_COUNT_GRID = 2**10
"""Counts are scaled by this before noise: fine enough for any useful noise, coarse enough for 64 bits under all."""
INITIAL_RADIUS = math.sqrt(2) / 2
"""Half of the diameter of the probability simplex."""
_SHRINK = 1 - 2.0**-40
"""Keeps an offset inside its ball whatever the last bit of its length."""


def on_grid(probabilities: Floats) -> Integers:
    """Probabilities rounded down to the grid, in units of 1 / GRID: vectors stay in the unit ball's positive part."""
    return np.asarray(np.floor(probabilities * GRID), dtype=np.int64)


def searches(theta: float) -> int:
    """Iterations of the binary search for a radius to precision `theta`; each releases two ball counts."""
    return math.ceil(math.log2(INITIAL_RADIUS / theta))


def _squared_distances(points: Integers) -> Floats:
    exact = points.astype(np.float64)
    squares = (exact**2).sum(axis=1)
    return np.asarray(squares[:, None] + squares[None, :] - 2 * (exact @ exact.T), dtype=np.float64)


def _ball_volume(squared_distances: Floats, target: int, radius: float) -> int:
    """`target` times L(radius) of algorithm 4: ball counts cut at `target`, the `target` largest summed.

    A unit adds 1 to each of at most `target` counts, and its own count of at most `target` takes a smaller one's place:
    L moves by at most 2. With fewer points than `target` those that there are are summed.
    """
    counts = np.minimum((squared_distances <= (radius * GRID) ** 2).sum(axis=1), target)
    return int(np.sort(counts)[::-1][:target].sum())


def good_radius(points: Integers, target: int, theta: float, sigma0: float, randomness: Randomness) -> float:
    """A radius within which some ball holds about `target` points (algorithms 4 and 5).

    Each iteration releases L at half the radius and at the radius, whatever the first says. Gaussian noise of standard
    deviation `2 sigma0` on L, of sensitivity 2.
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
    """How many points lie within `radius` of `centre`; a unit changes it by at most 1."""
    squares = ((points - centre).astype(np.float64) ** 2).sum(axis=1)
    return int((squares <= (radius * GRID) ** 2).sum())


def projected_offsets(points: Integers, centre: Integers, radius: float) -> Integers:
    """Every point's offset from `centre`, no longer than `radius`, in units of 1 / GRID, shape of `points`.

    Offsets and not the projected points are summed: a unit that appears brings its offset alone, while its projected
    point would bring the centre along, of length up to 1. Rounding is towards zero, which shortens them.
    """
    offsets = (points - centre).astype(np.float64)
    lengths = np.sqrt((offsets**2).sum(axis=1, keepdims=True))
    scale = np.minimum(1.0, _SHRINK * radius * GRID / np.maximum(lengths, 1.0))
    return np.asarray(np.trunc(offsets * scale), dtype=np.int64)
