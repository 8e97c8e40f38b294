"""Audits of whole runs that see releases alone, of many runs: what they prove of a unit, and of planted errors.

What a unit moves in one run is replayed in `tests/replay/test_stages.py`.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.accounting import claim, fingerprint
from mechanisms.audit.mechanism import lower_bound
from mechanisms.data.sizes import units_of
from mechanisms.records import Dataset, Record
from mechanisms.runs import plan as plans
from mechanisms.runs import run as whole_run
from mechanisms.runs import stage
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.run import divide, run
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE
from mechanisms.runs.stages import openings, vote
from tests.replay.tape import Noise, Tape
from tests.replay.world import Ledger
from tests.runs.running import INSTRUCTION, LABELS, spec
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

EPSILON, DELTA = 2.0, 1e-5
SHARES = {OPENINGS: 0.2, VOTE: 0.3, CALIBRATE: 0.2, SCORE: 0.2}
SURE = 60.0
"""Log-probability by which the model knows a label: more than any correction."""
EMBEDDER = ToyEmbedder()


class Session:
    """Knows the label that stands in the query; after demonstrations, the other."""

    def __init__(self, prefix, rows) -> None:
        self.shown, self.rows = b"draft" in bytes(prefix), rows

    def score(self, continuation):
        label = bytes(continuation).decode().strip()
        return np.array([SURE * ((label in bytes(row).decode()) != self.shown) for row in self.rows])


class Model(ToyModel):
    def open(self, prefix, rows, length, room):
        shown = bytes(prefix).decode("ascii", "replace")
        return Session(prefix, rows) if shown.startswith(INSTRUCTION) else super().open(prefix, rows, length, room)


def drafts(model, wanted, gate, randomness, taken=(), embedder=None) -> tuple[str, ...]:
    return tuple(f"draft {i} {wanted.label} w{i}" for i in range(wanted.count))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(stage, "write_drafts", drafts)
    monkeypatch.setattr(stage.RunState, "gate", None)
    monkeypatch.setattr(openings, "likely_openings", lambda *arguments: ())
    monkeypatch.setattr(plans, "claim", functools.lru_cache(claim))  # the same in every run
    monkeypatch.setattr(whole_run, "derived_key", lambda purpose: b"k" * 32)  # who has which role is no matter of luck


def planned(data: Dataset, split: str) -> Plan:
    asked = spec("vote", split, epsilon=EPSILON, shares=SHARES, drafts=4, sizes={"red": 90, "blue": 60})
    return plan_for(asked, data)


def listened(data: Dataset, plan: Plan, seed: int) -> list[Noise]:
    """The draws of a whole run."""
    tape = Tape(seed)
    for _ in run(plan.for_content(fingerprint(data).content), data, Model(), Ledger(tape), tape, embedder=EMBEDDER):
        pass
    return tape.draws


def one_unit(name: str) -> tuple[Dataset, Dataset]:
    """A data set of one unit, and of nobody."""
    unit = Record(f"My w1 red {name}", "red")
    return Dataset("d", LABELS, (unit,)), Dataset("d", LABELS, ())


NAMES = [f"unit {i}" for i in range(40)]
"""As many units as it takes to have each role, and none."""


def of_role(role: str | None) -> tuple[Dataset, Dataset, Plan]:
    """A unit of a role and its neighbour; without a role it takes part in every stage."""
    for name in NAMES:
        data, nobody = one_unit(name)
        plan = planned(data, "roles" if role else "epsilon")
        if role is None or divide(data, plan)[role].records:
            return data, nobody, plan
    raise AssertionError("a role is nobody's")


def towards(draw: Noise, place: int) -> float:
    """How much a draw speaks for a unit, or for two, that add 1 at a place: about a log-likelihood ratio."""
    one = 1 if draw.scale < 2**20 else 2**30
    noisy = np.asarray(draw.outcome)[place]
    return float(np.abs(noisy + one) - np.abs(noisy - 3 * one)) / 2 / draw.scale


def evidence(draws: list[Noise], beginning: int, place: int) -> dict[str, float]:
    """How much each stage's releases speak for a unit of `Model` that is red, begins so, and votes for a draft.

    It prefers its own label under no set, the other under the others; is right zero-shot only.
    """
    began, voted, *priors, scored = draws
    if len(priors[0].values) > len(LABELS):  # which of the sets it judges nobody knows
        likely = [towards(priors[0], len(LABELS) * k + min(k, 1)) for k in range(3)]
        compared, refined = float(np.log(np.exp(likely).mean())), priors[1:]
    else:
        compared, refined = sum(towards(draw, min(k, 1)) for k, draw in enumerate(priors[:3])), priors[3:]
    return {
        OPENINGS: towards(began, beginning),
        VOTE: towards(voted, place),
        CALIBRATE: compared + sum(towards(draw, 1) for draw in refined),
        SCORE: towards(scored, 1),
    }


def proved(role: str | None, stages: set[str]) -> float:
    """Epsilon that runs with one unit, and with nobody, prove by what stages release; without a role it has all."""
    data, nobody, plan = of_role(role)
    everyone = listened(data, planned(data, "epsilon"), 0)
    beginning, place = (int(np.asarray(draw.values).argmax()) for draw in everyone[:2])
    samples = []
    for each, seeds in ((data, range(RUNS)), (nobody, range(RUNS, 2 * RUNS))):
        found = (evidence(listened(each, plan, seed), beginning, place) for seed in seeds)
        samples.append(np.array([sum(of[stage] for stage in stages) for of in found]))
    return lower_bound(samples[0], samples[1], DELTA)


RUNS = 1200


@pytest.mark.parametrize("role", [None, OPENINGS, VOTE, SCORE])
def test_the_releases_of_many_runs_come_near_the_claim_and_not_above(role):
    assert 0.2 * EPSILON < proved(role, {role} if role else {*SHARES}) <= EPSILON


def voters_also_score(plant) -> None:
    def parts_of(data, plan):
        parts = dict(divide(data, plan))
        both = [*parts[SCORE].records, *parts[VOTE].records]
        return {**parts, SCORE: replace(data, records=tuple(both))}

    plant.setattr(whole_run, "divide", parts_of)


def a_vote_counts_twice(plant) -> None:
    plant.setattr(vote, "units_of", lambda data, most: [*units_of(data, most), *units_of(data, most)])


def an_opening_counts_twice(plant) -> None:
    plant.setattr(openings, "units_of", lambda data, most: [*units_of(data, most), *units_of(data, most)])


@pytest.mark.parametrize(
    ("plant", "role", "stages"),
    [
        (voters_also_score, VOTE, {VOTE, SCORE}),
        (a_vote_counts_twice, VOTE, {VOTE}),
        (an_opening_counts_twice, OPENINGS, {OPENINGS}),
    ],
)
def test_the_releases_of_many_runs_betray_planted_errors(plant, role, stages, monkeypatch):
    plant(monkeypatch)
    assert proved(role, stages) > EPSILON
