"""Reproducible randomness for tests: never private."""

from __future__ import annotations

import numpy as np

from mechanisms.noise.poisson import poisson_positions
from mechanisms.noise.source import Floats, Integers


class SeededRandomness:
    """A seeded source. Runs, screens and exports made with it are marked "not private"."""

    private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """See `Randomness.gaussian`; rounded continuous noise, good enough for tests."""
        noise = np.rint(self._generator.normal(0.0, scale, size=len(values)))
        return values + noise.astype(np.int64)

    def exponential_argmax(self, values: Integers, scale: float) -> int:
        """See `Randomness.exponential_argmax`."""
        return int(np.argmax(values + self._generator.exponential(scale, size=len(values))))

    def gumbel_argmax(self, values: Integers, scale: float) -> int:
        """See `Randomness.gumbel_argmax`."""
        return int(np.argmax(values + self._generator.gumbel(0.0, scale, size=len(values))))

    def laplace(self, values: Integers, scale: float) -> Integers:
        """See `Randomness.laplace`; rounded continuous noise, good enough for tests."""
        return values + np.rint(self._generator.laplace(0.0, scale, size=len(values))).astype(np.int64)

    def uniform(self, count: int) -> Floats:
        """See `Randomness.uniform`."""
        return self._generator.uniform(np.nextafter(0, 1), 1.0, size=count)

    def poisson_sample(self, population: int, rate: float) -> Integers:
        """See `Randomness.poisson_sample`."""
        return poisson_positions(population, rate, self.uniform)

    def permutation(self, size: int) -> Integers:
        """See `Randomness.permutation`."""
        return self._generator.permutation(size).astype(np.int64)
