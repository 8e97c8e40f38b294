"""Noise: right scale, right shape, exact lattice, never the same twice."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest, norm

from mechanisms.noise import SecureRandomness

FALSE_ALARM = 1e-9


def test_discrete_gaussian_has_the_scale_asked_for():
    scale = 1000.0
    noise = SecureRandomness().gaussian(np.zeros(20_000, dtype=np.int64), scale)
    assert kstest(noise / scale, norm.cdf).pvalue > FALSE_ALARM


def test_noise_is_added_to_the_values():
    values = np.array([10**12, -(10**12), 0], dtype=np.int64)
    noisy = SecureRandomness().gaussian(values, 5.0)
    assert (np.abs(noisy - values) < 100).all()


def test_noise_is_never_reused():
    zeros = np.zeros(64, dtype=np.int64)
    first, second = (SecureRandomness().gaussian(zeros, 2.0**30) for _ in range(2))
    assert (first != second).all()


def test_uniform_draws_are_uniform_and_open():
    draws = SecureRandomness().uniform(20_000)
    assert kstest(draws, "uniform").pvalue > FALSE_ALARM
    assert draws.min() > 0
    assert draws.max() < 1
