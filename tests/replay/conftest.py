"""What all replays stand on: one key, and claims that take no time."""

from __future__ import annotations

import functools

import pytest

from mechanisms.accounting import Claim
from mechanisms.sampling import SamplingPlan


@pytest.fixture
def quick_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run claims is other tests' matter: here it is what it does. Bounds of binomials are computed once."""
    monkeypatch.setattr(SamplingPlan, "capacity", functools.cache(SamplingPlan.capacity))
    for module in ("runs.plan", "runs.score", "answers.plan", "data.sizes"):
        monkeypatch.setattr(f"mechanisms.{module}.claim", lambda event, delta: Claim(1.0, delta, "", 1.0, ""))
