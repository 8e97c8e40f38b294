"""Runs that are one release: measured sizes, and the score of a set that somebody else wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.data.sizes import measure_sizes
from mechanisms.demos.findings import PROTOTYPES
from mechanisms.records import Record
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage, divide
from mechanisms.runs.score import ScoreRequest, score_set
from tests.recipes.test_score_set import LABELS, SET, Honest
from tests.replay.contract import EXTREMES, Cost, replayed
from tests.replay.world import UNIT, Ledger, charged, neighbours, one_key, quick_claims, same_price
from tests.toy_embedder import ToyEmbedder

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")
assert one_key
assert quick_claims


def sized(data, tape):
    ledger = Ledger(tape)
    found = measure_sizes(data, 0.5, 1e-5, ledger, tape)
    assert same_price(ledger.planned, charged(tape))
    return found.sizes, found.epsilon, found.failure


def unit_of(by_user: bool, name: str = "me") -> list[Record]:
    """A user has every label, and more rows of the first."""
    if not by_user:
        return [Record(f"red {UNIT} {name}", LABELS[0])]
    return [Record(f"{label} {UNIT} {i} {name}", label, name) for i in range(2) for label in LABELS]


@pytest.mark.parametrize("by_user", [False, True])
def test_a_unit_moves_measured_sizes_by_what_it_pays(by_user):
    payer = "all" if by_user else LABELS[0]
    found = replayed(sized, *neighbours(LABELS, unit_of(by_user), 6, by_user), sources=EXTREMES, payer=payer)
    assert found.allowed
    assert found.noise == pytest.approx(1)


def scored(request: ScoreRequest):
    def run(data, tape):
        ledger = Ledger(tape)
        found = score_set(data, SET, replace(request, by_user=data.by_user), Honest(), ledger, ToyEmbedder(), tape)
        assert same_price(found.event, charged(tape))
        assert same_price(ledger.planned, charged(tape))
        return found.score, found.claim

    return run


def cost_of(request: ScoreRequest, by_user: bool, name: str) -> Cost:
    one, other = neighbours(LABELS, unit_of(by_user, name), 6, by_user)
    recipe = Recipe(Kind.VOTE, Division.ROLES, {Stage.VOTE: 1 - request.share, Stage.SCORE: request.share})
    scores = one.records[-1] in divide(one, recipe)[Stage.SCORE].records
    return replayed(scored(request), one, other, sources=EXTREMES, payer="score" if scores else PROTOTYPES)


@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("prototypes", [None, 1.0])
def test_a_unit_moves_the_score_of_a_set_by_what_it_pays_and_in_one_place(by_user, prototypes):
    request = ScoreRequest(PrivacyTarget(1.0, 1e-5), share=0.5, prototypes_epsilon=prototypes)
    found = [cost_of(request, by_user, f"me {i}") for i in range(6)]
    assert all(each.allowed for each in found)
    used = [each.noise for each in found if each.noise > 0]
    assert min(used) > 0.95
    assert len(used) == len(found) if prototypes else 0 < len(used) < len(found)
