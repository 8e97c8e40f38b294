"""Sources of randomness: the operating system for real runs, a seed for tests only."""

from __future__ import annotations

import functools
import math
import os
import random
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import enable_features

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Randomness(Protocol):
    """The source of all randomness of a run."""

    private: bool
    """False if an observer could predict the draws; releases with them are not private."""

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """Values plus discrete Gaussian noise, shape (n,) (Canonne, Kamath, Steinke 2020).

        Args:
            values: whole numbers, shape (n,).
            scale: the standard deviation of the noise, in the unit of the values.
        """

    def exponential_argmax(self, values: Integers, scale: float) -> int:
        """The position of the largest value plus exponential noise; only the position may be released.

        This is permute-and-flip (McKenna and Sheldon 2020; Ding et al. 2021).

        Args:
            values: whole numbers, shape (n,).
            scale: the mean of the noise, in the unit of the values.
        """

    def gumbel_argmax(self, values: Integers, scale: float) -> int:
        """A position drawn with a probability proportional to `exp(value / scale)`: the exponential mechanism.

        Args:
            values: whole numbers, shape (n,).
            scale: the scale of the Gumbel noise, in the unit of the values.
        """

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Values plus discrete Laplace noise, shape (n,).

        Args:
            values: whole numbers, shape (n,).
            scale: the scale of the noise, in the unit of the values.
        """

    def uniform(self, count: int) -> Floats:
        """Independent uniform draws from the open interval (0, 1), shape (count,)."""

    def poisson_sample(self, population: int, rate: float) -> Integers:
        """Ascending positions of the units that join a sample, each unit independently with probability `rate`.

        The gaps between joining units are geometric, so the time depends on the sampled units alone. The 52 bits of a
        draw change each probability by a relative 1e-15, and a gap beyond `36 / rate` has probability 2**-52.

        Args:
            population: the number of units.
        """
        if rate >= 1:
            return np.arange(population, dtype=np.int64)
        expected = population * rate
        batch = int(expected + 6 * math.sqrt(expected + 1) + 16)
        positions: list[Integers] = []
        last = -1.0
        while last < population:
            gaps = np.floor(np.log(self.uniform(batch)) / math.log1p(-rate)) + 1
            reached = last + np.cumsum(gaps)
            positions.append(reached[reached < population].astype(np.int64))
            last = float(reached[-1])
        return np.concatenate(positions)

    def permutation(self, size: int) -> Integers:
        """A uniformly random permutation of 0 to `size - 1`, shape (size,)."""


enable_features("contrib")


@functools.lru_cache(maxsize=64)
def _gaussian_measurement(scale: float) -> Callable[[list[int]], list[int]]:
    # OpenDP samples the discrete Gaussian exactly over integers (Canonne, Kamath, Steinke 2020): no float contains the
    # secret, and the caller defines the lattice.
    domain = vector_domain(atom_domain(T="i64"))
    measurement: Any = make_gaussian(domain, l2_distance(T="f64"), scale)
    return measurement  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _laplace_measurement(scale: float) -> Callable[[list[int]], list[int]]:
    domain = vector_domain(atom_domain(T="i64"))
    measurement: Any = make_laplace(domain, l1_distance(T="i64"), scale)
    return measurement  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _selection(scale: float, gumbel: bool) -> Callable[[list[int]], int]:
    # `scale` is the noise's own scale; its privacy follows from the mechanism's proof, not from OpenDP's map. OpenDP's
    # sampler compares partially drawn noise exactly, so no float of the noise leaks anything.
    measure = zero_concentrated_divergence() if gumbel else max_divergence()
    domain = vector_domain(atom_domain(T="i64"))
    measurement: Any = make_noisy_max(domain, linf_distance(T="i64"), measure, scale)
    return measurement  # type: ignore[no-any-return]


class SecureRandomness(Randomness):
    """The source of every private run: it has no seed and no state.

    OpenDP's samplers draw the noise exactly, from a cryptographically secure generator; other draws come from the
    operating system's.
    """

    private = True

    def gaussian(self, values: Integers, scale: float) -> Integers:
        return np.asarray(_gaussian_measurement(scale)(values.tolist()), dtype=np.int64)

    def exponential_argmax(self, values: Integers, scale: float) -> int:
        return int(_selection(scale, False)(values.tolist()))

    def gumbel_argmax(self, values: Integers, scale: float) -> int:
        return int(_selection(scale, True)(values.tolist()))

    def laplace(self, values: Integers, scale: float) -> Integers:
        return np.asarray(_laplace_measurement(scale)(values.tolist()), dtype=np.int64)

    def uniform(self, count: int) -> Floats:
        """Each draw is the centre of one of 2**52 equal cells, so 0 and 1 never occur."""
        bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(12)
        return (bits.astype(np.float64) + 0.5) * 2.0**-52

    def permutation(self, size: int) -> Integers:
        return np.asarray(random.SystemRandom().sample(range(size), size), dtype=np.int64)


class SeededRandomness(Randomness):
    """A seeded source, for tests: runs, screens and exports with it are marked as not private."""

    private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """Values plus rounded continuous noise, which suffices for tests."""
        return values + np.rint(self._generator.normal(0.0, scale, size=len(values))).astype(np.int64)

    def exponential_argmax(self, values: Integers, scale: float) -> int:
        return int(np.argmax(values + self._generator.exponential(scale, size=len(values))))

    def gumbel_argmax(self, values: Integers, scale: float) -> int:
        return int(np.argmax(values + self._generator.gumbel(0.0, scale, size=len(values))))

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Values plus rounded continuous noise, which suffices for tests."""
        return values + np.rint(self._generator.laplace(0.0, scale, size=len(values))).astype(np.int64)

    def uniform(self, count: int) -> Floats:
        return self._generator.uniform(np.nextafter(0, 1), 1.0, size=count)

    def permutation(self, size: int) -> Integers:
        return self._generator.permutation(size).astype(np.int64)
