"""The audit: claims survive it, and planted defects do not, by its draws or by an exact calculation."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from mechanisms import audit
from mechanisms.accounting import PrivacyTarget, claim
from mechanisms.audit import Pair, audit_mechanism, audit_steps, lower_bound, worst_case_pair
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Composed
from mechanisms.steps import TokenDistributions, adadpsyn, mechanism_names
from mechanisms.steps.adadpsyn import AdaDPSyn
from mechanisms.steps.distributions import GRID, to_lattice
from mechanisms.steps.gaussian import GaussianMechanism
from tests.steps.inputs import distance

pytestmark = pytest.mark.slow

DELTA = 1e-5


def alone(event) -> Composed:
    return Composed("dataset", (("all", (event(1, 1.0),)),))


def calibrated(mechanism, epsilon):
    found = mechanism.calibrate(alone, PrivacyTarget(epsilon, DELTA))
    return found, claim(alone(found.event), DELTA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["gaussian", "noisy-max"])
def test_a_hundred_thousand_draws_prove_half_of_the_claim_and_no_more_than_all(name):
    result = audit_mechanism(name, 2.0, randomness=SeededRandomness(2026))
    assert result.draws == 100_000
    assert result.claimed / 2 <= result.lower_bound <= result.claimed
    assert result.holds


@pytest.mark.nightly
@pytest.mark.parametrize("name", mechanism_names())
def test_no_claim_is_refuted_by_the_noise_of_real_runs(name, monkeypatch):
    # With the usual confidence a bound on noisy max, whose claim is tight, would exceed it in one run of 1,400.
    monkeypatch.setattr(audit, "CONFIDENCE", 1 - 1e-9)
    result = audit_mechanism(name, 2.0, draws=3000)
    assert result.holds
    if name == "non-private":
        assert result.lower_bound > 4
    if name == "public":
        assert result.lower_bound == 0


def test_too_few_draws_are_refused():
    with pytest.raises(UsageError):
        audit_mechanism("gaussian", 1.0, draws=10)


def test_the_bound_holds_where_epsilon_is_known():
    """Randomised response of epsilon 1: the bound comes close, and exceeds it in about one run in a hundred at most."""
    random = np.random.default_rng(8)
    truth = 1 / (1 + math.exp(-1.0))
    bounds = [
        lower_bound((random.random(4000) < truth).astype(float), (random.random(4000) >= truth).astype(float), 0.0)
        for _ in range(100)
    ]
    assert sum(bound > 1.0 for bound in bounds) <= 4
    assert np.median(bounds) > 0.8


class HalfTheNoise(GaussianMechanism):
    def step(self, distributions, randomness):
        return GaussianMechanism(noise_multiplier=self.noise_multiplier / 2).step(distributions, randomness)


def test_the_audit_catches_half_the_noise():
    honest, claimed = calibrated(GaussianMechanism(), 2.0)
    defective = HalfTheNoise(noise_multiplier=honest.noise_multiplier)
    result = audit_steps(defective, worst_case_pair(), claimed, 20_000, SeededRandomness(3))
    assert not result.holds


class RenormalisedAfterAveraging(GaussianMechanism):
    """Restricts each row to the candidates and scales the average, not the row, to sum to 1."""

    def aggregate(self, distributions):
        rows = np.exp(distributions.unit_logits())
        return to_lattice(distributions.expected_rows * rows.sum(axis=0) / rows.sum())


def with_candidates_of_little_mass() -> Pair:
    """The others put e^-10 on the candidates, the unit everything."""
    pair = worst_case_pair()
    rows = np.where(pair[0].rows == 0, -10.0, pair[0].rows)
    rows[-1, 1] = 0.0
    return replace(pair[0], rows=rows), replace(pair[1], rows=rows)


def test_the_audit_catches_renormalising_after_averaging():
    honest, claimed = calibrated(GaussianMechanism(), 2.0)
    defective = RenormalisedAfterAveraging(noise_multiplier=honest.noise_multiplier)
    pair = with_candidates_of_little_mass()
    assert not audit_steps(defective, pair, claimed, 5000, SeededRandomness(4)).holds
    assert audit_steps(honest, pair, claimed, 5000, SeededRandomness(4)).holds


def gaussian_epsilon(distance: float, deviation: float) -> float:
    """Exact epsilon at DELTA of Gaussian noise on a vector that a unit moves by `distance`."""
    sigma = deviation / distance
    grid = np.linspace(0, 200, 200_001)
    deltas = norm.cdf(0.5 / sigma - grid * sigma) - np.exp(grid + norm.logcdf(-0.5 / sigma - grid * sigma))
    return float(grid[np.argmax(deltas <= DELTA)])


def test_two_units_in_a_unit_row_cost_more_than_a_sensitivity_of_one_claims():
    """The second unit's row turns from the pair's distribution into the first unit's: it does not merely appear."""
    rows = np.array([[50.0, 0.0]]), np.array([[0.0, 50.0]])
    shared, single = (TokenDistributions(r, np.ones(1, dtype=bool), np.zeros(2), 1, unit_rows=True) for r in rows)
    honest, claimed = calibrated(GaussianMechanism(), 4.4)
    apart = distance(honest, shared, single) / GRID
    assert apart == pytest.approx(math.sqrt(2))
    actual = gaussian_epsilon(apart, honest.noise_multiplier)
    assert actual == pytest.approx(6.6, abs=0.1)
    assert actual > claimed.epsilon
    with_sqrt_two = gaussian_epsilon(apart, honest.sensitivity(False).bound * honest.noise_multiplier)
    assert with_sqrt_two == pytest.approx(claimed.epsilon, abs=1e-3)  # the step of `gaussian_epsilon`


def test_projected_vectors_that_are_summed_without_centring_cost_many_times_the_claim():
    """A unit that says what all others say has a short offset from their centre, but its vector is not short."""
    radius, centre = 0.1, adadpsyn.on_grid(np.array([0.9, 0.1]))
    everybody = np.tile(adadpsyn.on_grid(np.array([0.93, 0.07])), (30, 1))
    multiplier = AdaDPSyn(sigma1=1.4).sigma1
    claimed = gaussian_epsilon(1.0, multiplier)

    def cost(summed):
        moved = (summed(everybody) - summed(everybody[:-1])).astype(float) / adadpsyn.GRID
        return gaussian_epsilon(float(np.linalg.norm(moved)), radius * multiplier)

    assert cost(lambda points: adadpsyn.projected_offsets(points, centre, radius).sum(axis=0)) <= claimed
    assert cost(lambda points: (centre + adadpsyn.projected_offsets(points, centre, radius)).sum(axis=0)) > 5 * claimed
