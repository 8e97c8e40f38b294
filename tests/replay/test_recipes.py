"""Runs in stages: every kind of recipe, divided by roles and by epsilon, for rows and for users."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.records import Dataset, Record
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage, divide
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.run import synthesize
from mechanisms.tallies import Weighing
from tests.recipes.running import EVERY, LABELS, Embedding, Log, Reading, planned, recipe
from tests.recipes.test_drafts import SYLLABLES
from tests.replay.contract import EXTREMES, Cost, replayed
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

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")
assert one_key
assert quick_claims

OTHERS = 8
_UNITS = 200
"""More than it takes for each role to be somebody's."""


_DRAFTED = re.compile(f"({'|'.join(SYLLABLES)}){{2}}")


class Swayed(Reading):
    """Writes as far as one unit can sway a model; finds the label in a text, and after demonstrations the other one."""

    def answer(self, prefix, query, label):
        return 0.0 if (label in query) != bool(_DRAFTED.search(prefix)) else -9.0

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
        last = tell_all(synthesize(data, request, Swayed(log), ledger, tape, embedder=Embedding(log)), tape)
        assert same_price(ledger.planned, charged(tape)), "what was reserved is not what was charged"
        assert same_price(last.demo_set.certificate.event, charged(tape)), "the certificate is not what was charged"

    return run


def pair_of(name: str, by_user: bool):
    if by_user:
        mine = [Record(f"{LABELS[i % 2]} {UNIT} {i} {name}", LABELS[i % 2], name) for i in range(4)]
    else:
        mine = [Record(f"red {UNIT} {name}", "red")]
    return neighbours(LABELS, mine, OTHERS, by_user)


def of_each_role(used: Recipe, by_user: bool) -> dict[Stage | None, str]:
    """A unit of each role, and one of none."""
    found: dict[Stage | None, str] = {}
    for name in (f"me {i}" for i in range(_UNITS)):
        one, _ = pair_of(name, by_user)
        parts = divide(one, used).items()
        found.setdefault(next((stage for stage, part in parts if one.records[-1] in part.records), None), name)
    return found


def cost(name: str, used: Recipe, by_user: bool, **how) -> Cost:
    one, other = pair_of(name, by_user)
    return replayed(release(planned(one, used)), one, other, joins=frozenset(range(2 * OTHERS)), **how)


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("kind", list(Kind))
def test_a_unit_of_each_role_costs_what_its_list_was_charged(kind, by_user):
    used = recipe(
        kind,
        Division.ROLES,
    )
    roles = of_each_role(used, by_user).items()
    found = {role: cost(name, used, by_user, payer=str(role or "")) for role, name in roles}
    assert {*used.stages} <= set(found)
    assert all(each.allowed for each in found.values())
    for role, each in found.items():
        assert each.noise == 0 if role is None else each.noise > 0.45


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("kind", list(Kind))
def test_a_unit_that_takes_part_in_every_stage_costs_what_its_list_was_charged(kind, by_user):
    found = cost("me 0", recipe(kind, Division.EPSILON), by_user, payer="all" if by_user else "red")
    assert found.allowed
    assert found.noise > 0.5


@pytest.mark.parametrize(
    "rest",
    [
        {"rounds": 2},
        {"without": (Stage.CHOOSE,)},
        {"without": (Stage.SCORE,)},
        {"without": (Stage.CALIBRATE, Stage.CHOOSE)},
        {"shares": {stage: share for stage, share in EVERY.items() if stage is not Stage.WRITE}},
    ],
    ids=["two rounds", "no choice", "no score", "votes and score", "every stage"],
)
def test_other_stages_cost_what_they_charge(rest):
    for division in Division:
        used = recipe(Kind.VOTE, division, **rest)
        units = of_each_role(used, False) if division is Division.ROLES else {"red": "me 0"}
        assert all(cost(name, used, False, payer=str(payer or "")).allowed for payer, name in units.items())


def without_first(data: Dataset) -> Dataset:
    """Without the first two red rows of others."""
    first = [each for each in data.records if each.label == "red" and UNIT not in each.text][:2]
    return replace(data, records=tuple(each for each in data.records if each not in first))


def cost_by_labels(name: str, by_user: bool, payer: str) -> Cost:
    """By public sizes that are not those of the rows; with the unit or without, its label has the fewest rows."""
    one, other = (without_first(each) for each in pair_of(name, by_user))
    used = recipe(Kind.VOTE, Division.EPSILON, weighing=Weighing.LABELS)
    wanted = replace(planned(one, used), sizes={"red": 40, "blue": 10})
    return replayed(release(wanted), one, other, joins=frozenset(range(2 * OTHERS)), payer=payer)


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
def test_a_unit_costs_no_more_where_labels_count_the_same(by_user):
    found = cost_by_labels("me 0", by_user, "all" if by_user else "red")
    assert found.allowed
    assert found.noise > 0.2


@pytest.mark.parametrize("source", EXTREMES[1:], ids=["low", "high"])
def test_noise_that_is_far_out_lets_nothing_else_through(source):
    assert cost("me 0", recipe(Kind.VOTE, Division.EPSILON), False, sources=[source]).allowed
