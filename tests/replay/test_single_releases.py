"""Runs that are one release: measured sizes, and the score of a set that somebody else wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.data.sizes import measure_sizes
from mechanisms.demos.demo_set import PROTOTYPES
from mechanisms.demos.directions import Directions
from mechanisms.records import Record
from mechanisms.runs.roles import divided
from mechanisms.runs.score import score_set
from mechanisms.runs.spec import SCORE, VOTE, RunSpec
from mechanisms.tallies import Prototypes
from tests.replay import price_list
from tests.replay.contract import EXTREMES, Cost, hold, replayed
from tests.replay.world import UNIT, Ledger, charged, neighbours
from tests.runs.running import LABELS, Reading
from tests.runs.test_score_set import SET
from tests.toy_embedder import ToyEmbedder

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")

SPEC = RunSpec()


def sized(data, tape):
    ledger = Ledger(tape)
    found = measure_sizes(data, 0.5, 1e-5, ledger, tape)
    expected = price_list.of_sizes(data.labels, data.by_user, 0.5, 1e-5)
    price_list.compare(ledger.planned, expected, "what was reserved")
    price_list.compare(charged(tape).items(), expected, "what was charged")
    return found.sizes, found.epsilon, found.failure


def unit_of(by_user: bool, name: str = "me", labels: tuple[str, ...] = LABELS) -> list[Record]:
    """A user has two rows of each label, a row the first one."""
    rows = [
        Record(f"{label} {UNIT} {i} {name}", label, name if by_user else None) for i in range(2) for label in labels
    ]
    return rows if by_user else rows[:1]


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
def test_a_unit_moves_measured_sizes_by_what_it_pays(by_user):
    payer = "all" if by_user else LABELS[0]
    found = replayed(sized, *neighbours(LABELS, unit_of(by_user), 6, by_user), sources=EXTREMES, payer=payer)
    assert found.allowed
    assert found.noise == pytest.approx(1)


def scored(prototypes: float | None, sizes: Mapping[str, int] | None):
    """Its whole price is on the list, but for the noise of the prototypes, which was calibrated."""

    def run(data, tape):
        ledger = Ledger(tape)
        found = score_set(
            data, replace(SET, sizes=sizes), SPEC, Reading(), ledger, 0.5, prototypes, ToyEmbedder(), tape
        )
        noise = None
        if prototypes:
            target = PrivacyTarget(prototypes, SPEC.delta)
            noise = Prototypes.costing(target, len(LABELS)).noise_multiplier
        expected = price_list.of_score(1.0, data.by_user, sizes is not None, noise)
        price_list.compare(found.event, expected, "what is told")
        price_list.compare(ledger.planned, expected, "what was reserved")
        price_list.compare(charged(tape).items(), expected, "what was charged")
        return found.score, found.claim

    return run


def cost_of(prototypes: float | None, sizes: Mapping[str, int] | None, by_user: bool, name: str) -> Cost:
    labels = LABELS if sizes is None else LABELS[:1]  # whose rows count in full
    one, other = neighbours(LABELS, unit_of(by_user, name, labels), 6, by_user)
    parts = divided(one, {VOTE: 0.5, SCORE: 0.5})
    scores = one.records[-1] in parts[SCORE].records
    run, payer = scored(prototypes, sizes), "score" if scores else PROTOTYPES
    return replayed(run, one, other, sources=EXTREMES, payer=payer)


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("sizes", [None, {"red": 100, "blue": 400}], ids=["by rows", "by labels"])
@pytest.mark.parametrize("prototypes", [None, 1.0], ids=["score", "and prototypes"])
def test_a_unit_moves_the_score_of_a_set_by_what_it_pays_and_in_one_place(prototypes, sizes, by_user):
    found = [cost_of(prototypes, sizes, by_user, f"me {i}") for i in range(6)]
    hold(found)
    used = [each.noise for each in found if each.noise > 0]
    assert min(used) > 0.95
    assert len(used) == len(found) if prototypes else 0 < len(used) < len(found)


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
def test_a_set_read_by_its_directions_too_costs_a_unit_what_it_did(by_user, monkeypatch):
    """One more arm is one more bit of the cell that a unit has."""
    near = ToyEmbedder().embed(LABELS).astype(float)
    with_them = replace(SET, directions=Directions.of(ToyEmbedder(), LABELS, near - near.mean(axis=0)))
    monkeypatch.setitem(globals(), "SET", with_them)
    found = [cost_of(None, None, by_user, f"me {i}") for i in range(6)]
    hold(found)
    assert max(each.noise for each in found) > 0.95
