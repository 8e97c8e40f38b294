"""Neighbouring runs on the same randomness: what a mechanism's sensitivity claim is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Gaussian
from mechanisms.records import Dataset
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.run import run
from mechanisms.steps import TokenMechanism, TokenRelease
from mechanisms.steps.distributions import GRID, lattice_sum
from mechanisms.steps.mechanism import Norm, Sensitivity
from tests.runs.running import alone
from tests.toy_model import ToyModel


@dataclass(frozen=True)
class Recorder(TokenMechanism):
    """Keeps the clean lattice sums, and releases the likeliest public token, so that neighbours write the same text."""

    name: ClassVar[str] = "recorder"
    title: ClassVar[str] = "recorder"
    citation: ClassVar[str] = ""
    takes_transform: ClassVar[bool] = True
    sums: list = field(default_factory=list)

    def event(self, steps, rate):
        return Gaussian(100.0)

    def signal_to_noise(self, plan):
        return 0.0

    def sensitivity(self, unit_rows):
        return Sensitivity(Norm.L2, 1.0 if unit_rows else 2**0.5)

    def step(self, distributions, randomness):
        self.sums.append(lattice_sum(distributions) / GRID)
        return TokenRelease(int(np.argmax(distributions.public)), None)


class Spelling(ToyModel):
    """Each of its tokens is a whole sentence, so that every text may end where its tokens do."""

    def decode(self, tokens) -> str:
        return "".join(f" w{token}." for token in tokens)


class Coupled(SeededRandomness):
    """Gives unit i the same draws at every step, whether or not units after it exist."""

    def __init__(self) -> None:
        super().__init__(0)
        self._calls = 0

    def uniform(self, count):
        self._calls += 1
        return np.random.default_rng(self._calls).uniform(1e-9, 1, size=count)

    def permutation(self, size):
        return np.arange(size)


def written_by(plan: Plan, mechanism: TokenMechanism) -> Plan:
    """The plan with a mechanism that no file defines."""
    plan.__dict__["mechanism"] = mechanism
    return plan


def recorded_run(dataset: Dataset, model, randomness, **settings: Any):
    """The events of a run that a `Recorder` writes, its clean vectors, and its ledger."""
    mechanism, ledger = Recorder(), PrivacyLedger()
    plan = written_by(plan_for(alone(candidates=12, parameters={}, **settings), dataset), mechanism)
    ledger.set_cap("d", dataset.unit, Cap(1e6, 0.5))
    return list(run(plan, dataset, model, ledger, randomness)), mechanism.sums, ledger


def clean_sums(records, model, sizes, by_user=False, **settings: Any) -> list[np.ndarray]:
    """The clean vectors of every token step of a run."""
    dataset = Dataset("d", tuple(sizes), tuple(records), "who" if by_user else None)
    return recorded_run(dataset, model, Coupled(), **{"sizes": sizes, "max_record_tokens": 8} | settings)[1]
