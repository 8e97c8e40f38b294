"""Randomness from the operating system, noise through OpenDP's exact samplers."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import opendp.prelude as dp

from mechanisms.noise.poisson import poisson_positions
from mechanisms.noise.source import Floats, Integers

dp.enable_features("contrib")


@functools.lru_cache(maxsize=64)
def _gaussian_measurement(scale: float) -> Callable[[list[int]], list[int]]:
    # Over integers OpenDP samples the discrete Gaussian exactly (Canonne, Kamath, Steinke 2020): no float ever
    # carries the secret, and the lattice is the caller's.
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement: Any = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale)
    return measurement  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _laplace_measurement(scale: float) -> Callable[[list[int]], list[int]]:
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement: Any = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale)
    return measurement  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _selection(scale: float, gumbel: bool) -> Callable[[list[int]], int]:
    # The scale is the noise's own. What it means for privacy is the mechanism's proof: OpenDP's map is not used.
    # Its sampler compares partially drawn noise exactly, so that the floats of the noise leak nothing either.
    measure = dp.zero_concentrated_divergence() if gumbel else dp.max_divergence()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement: Any = dp.m.make_noisy_max(domain, dp.linf_distance(T="i64"), measure, scale)
    return measurement  # type: ignore[no-any-return]


class SecureRandomness:
    """The source for every private run. It has no seed and keeps no state."""

    private = True

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """See `Randomness.gaussian`; exact, from OpenDP's own CSPRNG."""
        return np.asarray(_gaussian_measurement(scale)(values.tolist()), dtype=np.int64)

    def exponential_argmax(self, values: Integers, scale: float) -> int:
        """See `Randomness.exponential_argmax`; exact, from OpenDP's own CSPRNG."""
        return int(_selection(scale, False)(values.tolist()))

    def gumbel_argmax(self, values: Integers, scale: float) -> int:
        """See `Randomness.gumbel_argmax`; exact, from OpenDP's own CSPRNG."""
        return int(_selection(scale, True)(values.tolist()))

    def laplace(self, values: Integers, scale: float) -> Integers:
        """See `Randomness.laplace`; exact, from OpenDP's own CSPRNG."""
        return np.asarray(_laplace_measurement(scale)(values.tolist()), dtype=np.int64)

    def uniform(self, count: int) -> Floats:
        """See `Randomness.uniform`; 52 random bits a draw, centred in their cells so that 0 and 1 never occur."""
        bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(12)
        return (bits.astype(np.float64) + 0.5) * 2.0**-52

    def poisson_sample(self, population: int, rate: float) -> Integers:
        """See `Randomness.poisson_sample`."""
        return poisson_positions(population, rate, self.uniform)

    def permutation(self, size: int) -> Integers:
        """See `Randomness.permutation`."""
        return np.asarray(random.SystemRandom().sample(range(size), size), dtype=np.int64)
