"""Accountants against closed forms and against each other."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from mechanisms.accounting import claim
from mechanisms.accounting.losses import Direction
from mechanisms.accounting.normal_form import SampledGaussian
from mechanisms.accounting.prv import SampledGaussianLoss
from mechanisms.cli.main import main
from mechanisms.errors import AccountingError
from mechanisms.privacy_events import Approximate, Composed, Gaussian, Poisson, Repeat
from tests.conftest import nightly_but


def one(*events):
    return Composed("label", (("only", tuple(events)),))


def gaussian_epsilon(multiplier: float, delta: float) -> float:
    """Balle and Wang 2018, theorem 8."""

    def excess(epsilon: float) -> float:
        a, b = 1 / (2 * multiplier), epsilon * multiplier
        return norm.cdf(a - b) - math.exp(epsilon + norm.logcdf(-a - b)) - delta

    return brentq(excess, 0, 100)


@pytest.mark.parametrize("rate", [0.01, 0.115, 0.143, 0.3])
@pytest.mark.parametrize("noise", [0.6, 0.92, 3.0])
def test_the_mean_of_a_sampled_loss_is_that_of_its_distribution(rate: float, noise: float):
    low, high = -2.0, 12.0
    losses = math.log1p(-rate) + np.concatenate([[0.0], np.geomspace(1e-12, high - math.log1p(-rate), 400_000)])
    variable = SampledGaussianLoss(SampledGaussian(noise, rate), Direction.REMOVE)
    mass = np.diff(variable.cdf(losses))
    expected = (mass * (losses[1:] + losses[:-1]) / 2).sum() / mass.sum()
    assert variable.mean_within(low, high) == pytest.approx(expected, rel=1e-5)


def test_failures_come_out_of_delta():
    plain, failing = one(Gaussian(2.0)), one(Gaussian(2.0), Approximate(9e-6))
    assert claim(failing, 1e-5).epsilon == pytest.approx(claim(plain, 1e-6).epsilon, rel=0.01)
    with pytest.raises(AccountingError, match="delta"):
        claim(one(Gaussian(2.0), Approximate(2e-5)), 1e-5)


def test_lists_compose_apart_and_the_maximum_is_last():
    cheap, dear = (Gaussian(8.0),), (Gaussian(4.0), Gaussian(4.0))
    together = Composed("label", (("a", cheap), ("b", dear)))
    assert claim(together, 1e-5).epsilon == pytest.approx(gaussian_epsilon(4 / math.sqrt(2), 1e-5), rel=0.01, abs=0.006)


@pytest.mark.slow
def test_ten_million_releases_are_accounted():
    found = claim(one(Repeat(10**7, Poisson(0.01, Gaussian(1000.0)))), 1e-5)
    # So many small releases are a Gaussian one, of 1e-5 sqrt(1e7) over its noise.
    assert found.epsilon == pytest.approx(gaussian_epsilon(1000 / math.sqrt(1000), 1e-5), rel=0.01)
    assert found.check == pytest.approx(found.epsilon, rel=0.01)


# Tang et al. 2024, table 9: their noise meets the claimed epsilon under Poisson sampling, and ours is no larger.

EPSILONS = (1, 2, 4, 8)
# data set: smallest label n, M, N, T, shots of one label, published sigma
TABLE = {
    "agnews": (30000, 10, 2, 100, 1, (0.51, 0.46, 0.39, 0.31)),
    "dbpedia": (40000, 40, 2, 100, 1, (0.63, 0.54, 0.45, 0.36)),
    "trec": (835, 80, 1, 15, 1, (1.36, 0.95, 0.69, 0.51)),
    "mit_g": (2953, 20, 4, 20, 4, (1.08, 0.81, 0.64, 0.50)),
    "mit_d": (1561, 20, 4, 20, 4, (1.52, 1.04, 0.77, 0.58)),
}
CASES = [(name, i) for name in TABLE for i in range(4)]


def run(capsys, command: str, name: str, *extra: str) -> dict:
    n, subsets, per_subset, tokens, shots, _ = TABLE[name]
    sampling = f"--scheme per-token --subsets {subsets} --per-subset {per_subset} --tokens {tokens}"
    size = f"--shots-per-label {shots} --size {n} --delta {1 / n} --json"
    assert main([command, *extra, *sampling.split(), *size.split()]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "i"), nightly_but(CASES, every=7))
def test_published_noise_meets_the_published_epsilon(capsys, name, i):
    sigma, epsilon = TABLE[name][-1][i], EPSILONS[i]
    found = run(capsys, "account", name, "--noise-multiplier", str(sigma))["epsilon"]
    assert 0.85 * epsilon <= found <= epsilon + 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("name", "i"), nightly_but(CASES, every=7))
def test_calibrated_noise_is_at_most_the_published(capsys, name, i):
    sigma, epsilon = TABLE[name][-1][i], EPSILONS[i]
    found = run(capsys, "calibrate", name, "--epsilon", str(epsilon))
    assert sigma - 0.05 <= found["noise_multiplier"] <= sigma + 0.01
    assert 0.97 * epsilon <= found["epsilon"] <= epsilon
    assert found["epsilon_check"] == pytest.approx(found["epsilon"], rel=0.02)
