"""Intervals of a score hold the truth through a whole run: rows, roles, noise and what was chosen before."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from mechanisms.accounting import claim
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Record
from mechanisms.runs import plan as plans
from mechanisms.runs import run as whole_run
from mechanisms.runs import stage
from mechanisms.runs.plan import plan_for
from mechanisms.runs.run import run
from mechanisms.runs.spec import CALIBRATE, SCORE, VOTE
from mechanisms.runs.stages import openings
from tests.replay.tape import Tape
from tests.replay.world import Ledger
from tests.runs.running import INSTRUCTION, LABELS, spec
from tests.runs.test_audit import EMBEDDER, SURE, drafts
from tests.toy_model import ToyModel

RATES = {"zero-shot": 0.6, "public-only": 0.8, "demonstrations": 0.8}
SHARES = {VOTE: 0.1, CALIBRATE: 0.1, SCORE: 0.5}
RUNS, UNITS = 100, 300


class Session:
    """Answers with the word that a text has for what stands before it."""

    def __init__(self, prefix, rows) -> None:
        self.word, self.rows = "few" if b"draft" in bytes(prefix) else "zero", rows

    def score(self, continuation):
        answer = f"{self.word}{bytes(continuation).decode().strip()}"
        return np.array([SURE * (answer in bytes(row).decode()) for row in self.rows])


class Model(ToyModel):
    def open(self, prefix, rows, length, room):
        shown = bytes(prefix).decode("ascii", "replace")
        return Session(prefix, rows) if shown.startswith(INSTRUCTION) else super().open(prefix, rows, length, room)


def drawn(random: np.random.Generator, by_user: bool) -> Dataset:
    """Units that are right at the rates above; a user's rows agree more with each other than with others'."""
    rows = []
    for unit in range(UNITS):
        luck = random.random(2)
        for number in range(random.integers(1, 6) if by_user else 1):
            label = int(random.integers(2))
            uniform = np.where(random.random(2) < 0.5, luck, random.random(2))
            zero, few = (LABELS[label ^ int(u > rate)] for u, rate in zip(uniform, (0.6, 0.8), strict=True))
            rows.append(Record(f"zero{zero} few{few} {unit} {number}", LABELS[label], str(unit)))
    return Dataset("d", LABELS, tuple(rows), "who" if by_user else None)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("by_user", [False, True])
def test_intervals_hold_the_truth(by_user, monkeypatch):
    monkeypatch.setattr(stage, "write_drafts", drafts)
    monkeypatch.setattr(stage.RunState, "gate", None)
    monkeypatch.setattr(openings, "likely_openings", lambda *arguments: ())
    monkeypatch.setattr(plans, "claim", functools.lru_cache(claim))
    # Under fresh keys fewer than 86 of 100 intervals of 95% would hold the truth once in 5,000 times.
    monkeypatch.setattr(whole_run, "derived_key", lambda purpose: b"k" * 32)
    random, held, widths = np.random.default_rng(5), {name: [] for name in RATES}, []
    for seed in range(RUNS):
        data = drawn(random, by_user)
        asked = spec("vote", "roles", epsilon=1.0, shares=SHARES, drafts=4, sizes=dict.fromkeys(LABELS, UNITS))
        plan = plan_for(asked, data)
        *_, last = run(plan, data, Model(), Ledger(Tape()), SeededRandomness(seed), embedder=EMBEDDER)
        for name, arm in last.demo_set.score.arms.items():
            low, high = arm.interval
            held[name].append(low <= RATES[name] <= high)
            widths.append(high - low)
    assert all(len(each) == RUNS and np.mean(each) >= 0.86 for each in held.values()), held
    assert np.mean(widths) < 0.35  # an interval of everything would hold the truth as well
