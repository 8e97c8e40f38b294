"""Black-box audit of every tally: draws on neighbours refute no claim, and do refute planted errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from mechanisms.accounting import claim
from mechanisms.audit.mechanism import lower_bound
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Composed
from mechanisms.tallies import Choice, LabelBias, Score, Votes, choice
from mechanisms.tallies import tally as histogram
from mechanisms.tallies.tally import LATTICE

pytestmark = pytest.mark.slow

DELTA, EPSILON, DRAWS = 1e-5, 1.0, 8000
FIRST, LAST = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
CASES = {
    "votes": Votes(EPSILON, False),
    "votes of users": Votes(EPSILON, True),
    "prior": LabelBias(EPSILON),
    "choice": Choice(EPSILON),
    "score": Score(EPSILON, False),
}


@dataclass
class Scaled:
    """Another source's noise, at a multiple of the scale: half of it is a planted error."""

    source: object
    factor: float

    def laplace(self, values, scale):
        return self.source.laplace(values, scale * self.factor)

    def exponential_argmax(self, values, scale):
        return self.source.exponential_argmax(values, scale * self.factor)


def audited(tally, unit, factor=1.0) -> float:
    """Epsilon that draws prove of a unit beside two that say opposite things, in the region that a unit favours most.

    The region is known: where the first entry is beyond the sum with the unit, or where the first arm wins. Left to a
    search among all thresholds, far tails would be taken for it by chance.
    """
    source, others = Scaled(SeededRandomness(2026), factor), np.concatenate([FIRST, LAST])
    bound = 1 + unit[0, 0]

    def inside(release) -> bool:
        return release == 0 if isinstance(tally, Choice) else release[0] > bound

    samples = [
        np.array([inside(tally.release(rows, source)) for _ in range(DRAWS)], dtype=np.float64)
        for rows in (np.concatenate([others, unit]), others)
    ]
    return lower_bound(samples[0], samples[1], DELTA)


@pytest.mark.parametrize("name", CASES)
def test_draws_come_near_the_claim_and_not_above(name):
    claimed = claim(Composed("role", (("one", (CASES[name].event,)),)), DELTA).epsilon
    assert 0.7 * claimed <= audited(CASES[name], FIRST) <= claimed


@pytest.mark.parametrize("name", CASES)
def test_draws_refute_half_the_noise(name):
    assert audited(CASES[name], FIRST, factor=0.5) > EPSILON


def test_draws_refute_two_votes(monkeypatch):
    monkeypatch.setattr(histogram, "within_one", lambda rows, steps: (rows * steps).astype(np.int64))
    for name in ("votes", "score", "prior"):
        assert audited(CASES[name], np.array([[2.0, 0.0]])) > EPSILON


def test_draws_refute_signed_entries(monkeypatch):
    signed = np.array([[1.0, -1.0]])
    assert audited(CASES["choice"], signed) <= EPSILON
    monkeypatch.setattr(choice, "from_zero_to_one", lambda rows: (rows * LATTICE).astype(np.int64))
    assert audited(CASES["choice"], signed) > EPSILON
