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


@pytest.fixture
def one_key(monkeypatch: pytest.MonkeyPatch, data_folder) -> None:
    """Who has which place follows from a key: the same in every run."""
    data_folder.mkdir(exist_ok=True)
    (data_folder / "key").write_bytes(b"k" * 32)
