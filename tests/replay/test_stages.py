"""Runs in stages: every kind of recipe, divided by roles and by epsilon, for rows and for users."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.records import Dataset, Record
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage, divide
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import Scheme
from mechanisms.tallies import Weighing
from tests.recipes.running import EVERY, LABELS, Embedding, Log, Reading, planned, recipe
from tests.recipes.test_drafts import SYLLABLES
from tests.replay import price_list
from tests.replay.contract import EXTREMES, Cost, hold, replay, replayed
from tests.replay.world import (
    OTHER,
    UNIT,
    LeaningSession,
    Ledger,
    charged,
    neighbours,
    one_key,
    quick_claims,
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
    return wanted.for_content(fingerprint(data).content)


def release(wanted: RecipeRequest):
    """A whole run, in a world where nothing is clipped; it charges and certifies what the price list says."""
    assert [*price_list.clipped(wanted)] == []

    def run(data, tape):
        log, ledger, request = Log(), Ledger(tape), for_data(wanted, data)
        last = tell_all(synthesize(data, request, Swayed(log), ledger, tape, embedder=Embedding(log)), tape)
        price_list.compare(ledger.planned, price_list.of_run(request), "what was reserved")
        price_list.compare(charged(tape).items(), price_list.of_run(request), "what was charged")
        price_list.compare(last.demo_set.certificate.event, price_list.with_sizes(request), "what is certified")

    return run


def asked(data: Dataset, used: Recipe, scheme: Scheme = Scheme.PER_DEMONSTRATION, measured: bool = False):
    """With public sizes far above the rows that there are: batches have room, and not everybody joins."""
    sizes = {"red": 160 if used.weighing is Weighing.LABELS else 40, "blue": 40}
    shots = 2 if scheme is Scheme.DISJOINT else 1
    request = replace(planned(data, used, shots=shots), sizes=sizes)
    if (written := request.written) is not None:
        units = 3 if scheme is not Scheme.DISJOINT else int(written.plan.share * sizes["blue"]) // shots
        plan = replace(written.plan, scheme=scheme, shots=shots, subsets=units)
        request = replace(request, written=replace(written, plan=plan, sizes=sizes))
    return request.with_measured_sizes(MeasuredSizes(sizes, 0.3, 1e-8, request.content)) if measured else request


def pair_of(name: str, by_user: bool, labels: tuple[str, ...] = LABELS):
    """Neighbours; a row of the unit's counts in full, whether or not labels count the same."""
    if by_user:
        mine = [Record(f"{label} {UNIT} {i} {name}", label, name) for i in range(4 // len(labels)) for label in labels]
    else:
        mine = [Record(f"blue {UNIT} {name}", "blue")]
    return neighbours(LABELS, mine, OTHERS, by_user)


def of_each_role(used: Recipe, by_user: bool) -> dict[Stage | None, str]:
    """A unit of each role, and one of none where the shares leave some over."""
    found: dict[Stage | None, str] = {}
    everybody = {*used.stages, *([None] if sum(used.shares.values()) < 0.99 else [])}
    for name in (f"me {i}" for i in range(_UNITS)):
        one, _ = pair_of(name, by_user)
        parts = divide(replace(one, records=one.records[-1:]), used).items()
        found.setdefault(next((stage for stage, part in parts if part.records), None), name)
        if everybody <= set(found):
            return found
    raise AssertionError("a role is nobody's")


def pairs(used: Recipe, by_user: bool) -> Iterator[tuple[str, tuple[Dataset, Dataset]]]:
    """Neighbours by a unit of each role, or by one that is asked for everything; each with whose list pays.

    Where labels count the same, a user who judges has rows of the label alone that counts in full.
    """
    judges = LABELS if used.weighing is Weighing.ROWS else ("blue",)
    if used.division is Division.ROLES:
        for role, name in of_each_role(used, by_user).items():
            yield str(role or ""), pair_of(name, by_user, LABELS if role is Stage.WRITE else judges)
    else:
        for labels in {LABELS, judges} if by_user else {LABELS}:
            yield "all" if by_user else "blue", pair_of("me 0", by_user, labels)


def hold_for_all(used: Recipe, by_user: bool, sources=(), near: Collection[Stage] = (), **how) -> None:
    """A unit of each role costs no more than its list was charged, one of none costs nothing.

    With sources of noise runs are recorded on both neighbours, and else on one and the other in turns.
    """
    found: list[Cost] = []
    for payer, (one, other) in pairs(used, by_user):
        run, joins = release(asked(one, used, **how)), frozenset(range(2 * OTHERS))
        if sources:
            cost = replayed(run, one, other, joins=joins, payer=payer, sources=sources)
        else:
            first, second = (one, other) if len(found) % 2 else (other, one)
            cost = replay(run, first, second, joins=joins).cost(payer=payer)
        assert payer or cost.noise == 0
        found.append(cost)
    hold(found, *near)
    if sampled := [each.rate for each in found if each.rate]:
        assert max(sampled) == pytest.approx(1)


def schemes(kind: Kind) -> list[Scheme]:
    return [Scheme.PER_DEMONSTRATION] if kind is Kind.VOTE else list(Scheme)


def cases() -> Iterator[Any]:
    """Every combination; of each kind and scheme every second one is quick, so that any three things meet in one."""
    kinds = [(kind, scheme) for kind in Kind for scheme in schemes(kind)]
    ways = list(itertools.product(Division, [False, True], Weighing, [False, True]))
    for (i, (kind, scheme)), (j, way) in itertools.product(enumerate(kinds), enumerate(ways)):
        division, by_user, weighing, measured = way
        writes = [] if kind is Kind.VOTE else [scheme]
        named = "users" if by_user else "rows", f"by {weighing}", "measured" if measured else "declared"
        marks = [pytest.mark.slow] if (i + j.bit_count()) % 2 else []
        yield pytest.param(kind, scheme, *way, id="-".join([kind, *writes, division, *named]), marks=marks)


@pytest.mark.parametrize(("kind", "scheme", "division", "by_user", "weighing", "measured"), [*cases()])
def test_a_unit_of_each_stage_costs_what_its_list_was_charged(kind, scheme, division, by_user, weighing, measured):
    used = recipe(kind, division, weighing=weighing)
    near = {*used.stages}
    if scheme is Scheme.DISJOINT and by_user and weighing is Weighing.LABELS:
        near.remove(Stage.WRITE)  # of the larger label there are more batches than are read: few users stand in two
    sources = [None] if division is Division.EPSILON else []
    hold_for_all(used, by_user, sources, near, scheme=scheme, measured=measured)


@pytest.mark.parametrize("division", Division)
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
def test_other_stages_cost_what_they_charge(rest, division):
    used = recipe(Kind.VOTE, division, **rest)
    hold_for_all(used, False, [None], near=used.stages)


@pytest.mark.parametrize("source", EXTREMES[1:], ids=["low", "high"])
def test_noise_that_is_far_out_lets_nothing_else_through(source):
    hold_for_all(recipe(Kind.VOTE, Division.EPSILON), False, [source])
