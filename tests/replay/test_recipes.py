"""Runs in stages: every kind of recipe, divided by roles and by epsilon, for rows and for users."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.records import Dataset, Record
from mechanisms.studio.recipes.recipe import Division, Kind, Stage
from mechanisms.studio.recipes.request import RecipeRequest
from mechanisms.studio.recipes.run import run_recipe
from tests.replay.contract import EXTREMES, replayed
from tests.replay.world import (
    OTHER,
    UNIT,
    LeaningSession,
    Ledger,
    charged,
    neighbours,
    one_key,
    quick_claims,
    same_price,
    tell_all,
)
from tests.studio.recipes.running import LABELS, Embedding, Log, Reading, planned, recipe

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")
assert one_key
assert quick_claims

OTHERS = 8
NAMES = [f"me {i}" for i in range(12)]
"""As many units as it takes to have each role."""


class Swayed(Reading):
    """Reads labels from texts, and writes as far as one unit can sway a model."""

    def open(self, prefix, rows, length, room):
        opened = super().open(prefix, rows, length, room)
        marked = any(mark in bytes(row).decode("ascii", "replace") for row in rows for mark in (UNIT, OTHER))
        return LeaningSession(opened.rows, 1.0) if marked and hasattr(opened, "sharpness") else opened


def for_data(wanted: RecipeRequest, data: Dataset) -> RecipeRequest:
    """The same request for a neighbour: which file it is for is no release."""
    content = fingerprint(data).content
    written = replace(wanted.written, content=content) if wanted.written else None
    return replace(wanted, content=content, written=written)


def release(wanted: RecipeRequest):
    def run(data, tape):
        log, ledger, request = Log(), Ledger(tape), for_data(wanted, data)
        last = tell_all(run_recipe(data, request, Swayed(log), Embedding(log), ledger, tape), tape)
        assert same_price(ledger.planned, charged(tape)), "what was reserved is not what was charged"
        assert same_price(last.demo_set.certificate.event, charged(tape)), "the certificate is not what was charged"

    return run


def pair_of(name: str, by_user: bool):
    if by_user:
        mine = [Record(f"{LABELS[i % 2]} {UNIT} {i} {name}", LABELS[i % 2], name) for i in range(4)]
    else:
        mine = [Record(f"red {UNIT} {name}", "red")]
    return neighbours(LABELS, mine, OTHERS, by_user)


def costs(kind: Kind, division: Division, by_user: bool, names=NAMES, **rest) -> list:
    found = []
    for name in names:
        one, other = pair_of(name, by_user)
        wanted = planned(one, recipe(kind, division, **rest))
        found.append(replayed(release(wanted), one, other, joins=frozenset(range(2 * OTHERS))))
    return found


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("division", list(Division))
@pytest.mark.parametrize("kind", list(Kind))
def test_a_unit_costs_what_its_lists_were_charged(kind, division, by_user):
    found = costs(kind, division, by_user, NAMES if division is Division.ROLES else NAMES[:1])
    assert all(each.allowed for each in found)
    if division is Division.EPSILON:
        assert found[0].noise > 0.5
    else:
        assert sum(each.noise > 0.45 for each in found) > len(found) / 3


@pytest.mark.parametrize(
    "rest",
    [
        {"rounds": 2},
        {"without": (Stage.CHOOSE,)},
        {"without": (Stage.SCORE,)},
        {"without": (Stage.CALIBRATE, Stage.CHOOSE)},
    ],
    ids=["two rounds", "no choice", "no score", "votes and score"],
)
def test_other_stages_cost_what_they_charge(rest):
    for division in Division:
        assert all(each.allowed for each in costs(Kind.VOTE, division, False, NAMES[:4], **rest))


@pytest.mark.parametrize("source", EXTREMES[1:], ids=["low", "high"])
def test_noise_that_is_far_out_lets_nothing_else_through(source):
    one, other = pair_of(NAMES[0], False)
    wanted = planned(one, recipe(Kind.VOTE, Division.EPSILON))
    assert replayed(release(wanted), one, other, sources=[source]).allowed
