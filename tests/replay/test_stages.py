"""Runs in stages: every recipe, divided by roles and by epsilon, for rows and for users."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.records import Dataset, Record
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.roles import divide
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WORDS, WRITE, Recipe, RunSpec, Split
from mechanisms.runs.stages.words import WordsReleased
from mechanisms.runs.text import Gate
from mechanisms.sampling import Scheme
from mechanisms.tallies import Weighing
from tests.replay.contract import EXTREMES, Cost, hold, replay, replayed
from tests.replay.tape import Tape
from tests.replay.world import OTHER, UNIT, LeaningSession, neighbours, whole_run
from tests.runs.running import LABELS, SYLLABLES, Embedding, Reading, spec

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")

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


def planned(data: Dataset, asked: RunSpec, measured: bool = False, many: int = 1) -> Plan:
    """With public sizes far above the rows that there are: batches have room, and not everybody joins."""
    sizes = {"red": many * (160 if asked.weighing is Weighing.LABELS else 40), "blue": many * 40}
    counted = MeasuredSizes(sizes, 0.3, 1e-8, fingerprint(data).content) if measured else None
    return plan_for(asked.with_(subsets=3, **({} if measured else {"sizes": sizes})), data, counted)


def pair_of(name: str, by_user: bool, labels: tuple[str, ...] = LABELS):
    """Neighbours; a row of the unit's counts in full, whether or not labels count the same."""
    if by_user:
        mine = [
            Record(f"My {label} {UNIT} {i} {name}", label, name) for i in range(4 // len(labels)) for label in labels
        ]
    else:
        mine = [Record(f"My blue {UNIT} {name}", "blue")]
    return neighbours(LABELS, mine, OTHERS, by_user)


def of_each_role(plan: Plan, by_user: bool) -> dict[str | None, str]:
    """A unit of each role, and one of none where the shares leave some over."""
    found: dict[str | None, str] = {}
    shares = plan.spec.shares or {}
    everybody = {*shares, *([None] if sum(shares.values()) < 0.99 else [])}
    for name in (f"me {i}" for i in range(_UNITS)):
        one, _ = pair_of(name, by_user)
        parts = divide(replace(one, records=one.records[-1:]), plan).items()
        found.setdefault(next((stage for stage, part in parts if part.records), None), name)
        if everybody <= set(found):
            return found
    raise AssertionError("a role is nobody's")


def pairs(plan: Plan, by_user: bool) -> Iterator[tuple[str, tuple[Dataset, Dataset]]]:
    """Neighbours by a unit of each role, or by one that is asked for everything; each with whose list pays.

    Where labels count the same, a user who judges has rows of the label alone that counts in full.
    """
    judges = LABELS if plan.spec.weighing is Weighing.ROWS else ("blue",)
    if plan.by_roles:
        for role, name in of_each_role(plan, by_user).items():
            yield role or "", pair_of(name, by_user, LABELS if role == WRITE else judges)
    else:
        for labels in {LABELS, judges} if by_user else {LABELS}:
            yield "all" if by_user else "blue", pair_of("me 0", by_user, labels)


def hold_for_all(
    asked: RunSpec, by_user: bool, sources: Sequence[Any] = (), near: Collection[str] = (), **how: Any
) -> None:
    """A unit of each role costs no more than its list was charged, one of none costs nothing.

    With sources of noise runs are recorded on both neighbours, and else on one and the other in turns.
    """
    found: list[Cost] = []
    some, _ = pair_of("me 0", by_user)
    for payer, (one, other) in pairs(planned(some, asked, **how), by_user):
        ran = whole_run(planned(one, asked, **how), lambda tape: Swayed(), Embedding())
        joins = frozenset(range(2 * OTHERS))
        if sources:
            cost = replayed(ran, one, other, joins=joins, payer=payer, sources=sources)
        else:
            first, second = (one, other) if len(found) % 2 else (other, one)
            cost = replay(ran, first, second, joins=joins).cost(payer=payer)
        assert payer or cost.noise == 0
        found.append(cost)
    hold(found, *near)
    if sampled := [each.rate for each in found if each.rate]:
        assert max(sampled) == pytest.approx(1)


def schemes(recipe: Recipe) -> list[Scheme]:
    return [Scheme.PER_DEMONSTRATION] if recipe is Recipe.VOTE else list(Scheme)


def cases() -> Iterator[Any]:
    """Every combination; of each recipe and scheme every second one is quick, so that any three things meet in one."""
    recipes = [(recipe, scheme) for recipe in Recipe for scheme in schemes(recipe)]
    ways = list(itertools.product(Split, [False, True], Weighing, [False, True]))
    for (i, (recipe, scheme)), (j, way) in itertools.product(enumerate(recipes), enumerate(ways)):
        split, by_user, weighing, measured = way
        writes = [] if recipe is Recipe.VOTE else [scheme]
        named = "users" if by_user else "rows", f"by {weighing}", "measured" if measured else "declared"
        marks = [pytest.mark.slow] if (i + j.bit_count()) % 2 else []
        yield pytest.param(recipe, scheme, *way, id="-".join([recipe, *writes, split, *named]), marks=marks)


@pytest.mark.parametrize(("recipe", "scheme", "split", "by_user", "weighing", "measured"), [*cases()])
def test_a_unit_of_each_stage_costs_what_its_list_was_charged(recipe, scheme, split, by_user, weighing, measured):
    asked = spec(recipe, split, weighing=weighing, scheme=scheme)
    sources = [None] if split is Split.EPSILON else []
    hold_for_all(asked, by_user, sources, {*(asked.shares or {})}, measured=measured)


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("left_out", [("openings",), ("score",), ("calibrate",), ("openings", "calibrate", "score")])
def test_a_run_without_some_stages_costs_what_it_charges(left_out, split):
    """Behind exemplars, which other replays do without."""
    asked = spec("vote", split, left_out, kind="message")
    assert asked.wording.exemplar_pairs()
    hold_for_all(asked, False, [None], near={*(asked.shares or {})})


@pytest.mark.parametrize("source", EXTREMES[1:], ids=["low", "high"])
def test_noise_that_is_far_out_lets_nothing_else_through(source):
    """All openings clear such noise, or none does; every draft wins, or the last."""
    hold_for_all(spec("vote", "epsilon"), False, [source])


@pytest.mark.parametrize("recipe", ["vote", "both"])
def test_what_is_a_text_does_not_follow_from_private_rows(recipe):
    """Were the pieces of their words among the usual ones, the unit would decide that no draft is a text.

    The model's samples have five pieces a word. Of eight rows, two and the samples, the middle is a sample's; of one
    more row with short words it is a row's.
    """
    short, long = f"a {OTHER}", f"{'a' * 12} {OTHER}"
    others = [Record(f"{short} {i}", LABELS[i % 2]) for i in range(8)] + [Record(long, label) for label in LABELS]
    one = Dataset("d", LABELS, (*others, Record(f"a {UNIT}", "blue")))
    other = replace(one, records=one.records[:-1])
    samples, model = ["bake moli."] * 6, Swayed()
    leaky = [Gate(model, [*samples, *(each.text for each in data.records)]) for data in (one, other)]
    assert [gate.reason("bake moli.") is None for gate in leaky] == [False, True], "such a gate would tell"
    asked = spec(recipe, "epsilon", (CALIBRATE, SCORE))
    ran = whole_run(planned(one, asked), lambda tape: Swayed(), Embedding())
    hold([replay(ran, one, other, joins=frozenset(range(len(one.records)))).cost()])


MANY = 100
"""Times so many units are declared that labels have openings of their own."""


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("many", [1, MANY], ids=["pooled", "by label"])
@pytest.mark.parametrize(("recipe", "split"), [(Recipe.VOTE, Split.ROLES), (Recipe.BOTH, Split.EPSILON)])
def test_a_unit_moves_the_openings_by_what_it_pays(recipe, split, many, by_user):
    asked = spec(recipe, split, (CALIBRATE, SCORE))
    some, _ = pair_of("me 0", by_user)
    stage = planned(some, asked, many=many).stages[OPENINGS]
    assert stage.by_label == (many == MANY)
    hold_for_all(asked, by_user, EXTREMES, {OPENINGS}, many=many)


def with_words(split: Split, epsilon: float = 30.0) -> RunSpec:
    """Little noise, so that words clear it: what follows of them has to follow from the noisy sums."""
    return spec("vote", split, shares={WORDS: 0.6, VOTE: 0.4}, score=False, epsilon=epsilon)


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("split", Split)
def test_a_unit_moves_the_words_by_what_it_pays(split, by_user):
    """A user's rows of several labels move them by no more than a row."""
    hold_for_all(with_words(split), by_user, EXTREMES, {WORDS})


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
def test_words_clear_their_noise_in_the_world_of_these_replays(by_user):
    """Else nothing of them would be replayed."""
    one, _ = pair_of("me 0", by_user)
    tape = Tape()
    whole_run(planned(one, with_words(Split.EPSILON)), lambda tape: Swayed(), Embedding())(one, tape)
    [told] = (entry.event for entry in tape.entries if isinstance(getattr(entry, "event", None), WordsReleased))
    assert all(told.words.values())
