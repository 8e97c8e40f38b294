"""Neighbouring runs on the same randomness: what a mechanism's sensitivity claim is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from mechanisms.runs.request import SynthesisRequest

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Gaussian
from mechanisms.records import Dataset, PromptTemplate
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import TokenMechanism, TokenRelease
from mechanisms.steps.distributions import GRID, lattice_sum
from mechanisms.steps.mechanism import Norm, Sensitivity


@dataclass(frozen=True)
class Recorder(TokenMechanism):
    """Keeps the clean lattice sums, and releases the likeliest public token, so that neighbours write the same text."""

    name: ClassVar[str] = "recorder"
    title: ClassVar[str] = "recorder"
    citation: ClassVar[str] = ""
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


def clean_sums(
    records, plan: SamplingPlan, model, sizes, by_user=False, max_record_tokens=8, outputs=None
) -> list[np.ndarray]:
    """The clean vectors of every token step of a run."""
    labels = tuple(sizes)
    mechanism = Recorder()
    dataset = Dataset("d", labels, tuple(records), "who" if by_user else None)
    request = SynthesisRequest(
        labels=labels,
        template=PromptTemplate("Classify.", "T", "L", "A" if outputs else None),
        plan=plan,
        mechanism=mechanism,
        target=PrivacyTarget(1.0, 1e-5),
        sizes=sizes,
        content=fingerprint(dataset).content,
        by_user=by_user,
        candidates=12,
        max_record_tokens=max_record_tokens,
        outputs=outputs,
    )
    ledger = PrivacyLedger()
    ledger.set_cap("d", dataset.unit, PrivacyTarget(1e6, 0.5))
    for _ in synthesize(dataset, request, model, ledger, Coupled()):
        pass
    return mechanism.sums
