"""The Poisson draw: who of a population joins."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mechanisms.noise.source import Floats, Integers


def poisson_positions(population: int, rate: float, uniform: Callable[[int], Floats]) -> Integers:
    """Positions of the units that join: each of `population` independently with probability `rate`.

    The gaps between joining units are geometric, so the cost is that of the sampled units alone. The draw's 52 bits
    change each probability by a relative 1e-15, and a gap beyond `36 / rate` has probability 2**-52.

    Args:
        uniform: see `Randomness.uniform`.
    """
    if rate >= 1:
        return np.arange(population, dtype=np.int64)
    expected = population * rate
    batch = int(expected + 6 * math.sqrt(expected + 1) + 16)
    positions: list[Integers] = []
    last = -1.0
    while last < population:
        gaps = np.floor(np.log(uniform(batch)) / math.log1p(-rate)) + 1
        reached = last + np.cumsum(gaps)
        positions.append(reached[reached < population].astype(np.int64))
        last = float(reached[-1])
    return np.concatenate(positions)
