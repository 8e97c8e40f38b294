"""Audits of whole recipes, from the private rows to the last release: what one unit moves, and what draws prove.

The first audit is exact. A run is repeated without the unit, and every draw of noise is answered with what it released
the first time, so that both runs share their history. The unit has then moved the values under the noise, and by no
more than its own event list had been charged until then. The second audit sees releases alone, of many runs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from mechanisms.accounting import BudgetSnapshot, Cap, PrivacyTarget, claim, fingerprint
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Laplace, Pure
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.studio.assurance.audit import lower_bound
from mechanisms.studio.recipes import judging, request, roles, run
from mechanisms.studio.recipes.reading import of_units, preferences
from mechanisms.studio.recipes.recipe import Division, Kind, Recipe, Stage
from mechanisms.studio.recipes.request import ALL, RecipeRequest
from mechanisms.studio.recipes.roles import divide
from mechanisms.studio.recipes.units import units_of
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

LABELS = ("red", "blue")
TEMPLATE = PromptTemplate("Sort.", "Note", "Topic")
EPSILON, DELTA = 2.0, 1e-5
SHARES = {Stage.VOTE: 0.3, Stage.CALIBRATE: 0.2, Stage.CHOOSE: 0.2, Stage.SCORE: 0.2}
SURE = 60.0
"""Log-probability by which the model knows a label: more than any correction."""


class Session:
    """Knows the label that stands in the query; after demonstrations, the other."""

    def __init__(self, prefix, rows) -> None:
        self.shown, self.rows = b"draft" in bytes(prefix), rows

    def score(self, continuation):
        label = bytes(continuation).decode().strip()
        return np.array([SURE * ((label in bytes(row).decode()) != self.shown) for row in self.rows])


class Model(ToyModel):
    def open(self, prefix, rows, length, room):
        return Session(prefix, rows)


@dataclass
class Till:
    """A ledger in memory."""

    charged: dict[str, float] = field(default_factory=dict)
    rows = SimpleNamespace(marks=lambda data: (), mark=lambda data, why: None, names_that_share=lambda rows: [])
    before = BudgetSnapshot("d", "record", 0.0, 0.0, "", Cap(1.0, 1e-5), 0)

    def begin(self, *planned) -> Till:
        return self

    def history(self, name):
        return []

    def snapshot(self):
        return self.before

    def finish(self) -> None:
        pass

    def charge(self, name, events) -> None:
        self.charged[name] = self.charged.get(name, 0.0) + sum(map(price, events))


def price(event) -> float:
    match event:
        case Pure(epsilon, count):
            return epsilon * count
        case Laplace(scale):
            return 1 / scale
    raise AssertionError(event)


@dataclass
class Draw:
    values: np.ndarray
    scale: float
    selects: bool
    charged: dict[str, float]
    released: object


class Overheard:
    """Noise that is written down, with what had been charged; or, of an earlier run, said again."""

    private = True

    def __init__(self, seed: int, till: Till, again: Overheard | None = None) -> None:
        self._source, self._till = SeededRandomness(seed), till
        self.draws: list[Draw] = []
        self.coins: list[np.ndarray] = []
        self._again, self._coins = (iter(again.draws), iter(again.coins)) if again else (None, None)

    def _draw(self, values, scale, selects):
        sample = self._source.exponential_argmax if selects else self._source.laplace
        released = next(self._again).released if self._again else sample(values, scale)
        self.draws.append(Draw(values, scale, selects, dict(self._till.charged), released))
        return released

    def laplace(self, values, scale):
        return self._draw(values, scale, False)

    def exponential_argmax(self, values, scale):
        return self._draw(values, scale, True)

    def uniform(self, count):
        thrown = next(self._coins)[:count] if self._coins else self._source.uniform(count)
        assert len(thrown) == count
        self.coins.append(thrown)
        return thrown


def drafts(model, template, label, labels, count, tokens, randomness, examples=()) -> tuple[str, ...]:
    return tuple(f"draft {i} {label} {'again ' * bool(examples)}w{i}" for i in range(count))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(run, "write_drafts", drafts)
    monkeypatch.setattr(request, "claim", functools.lru_cache(claim))  # the same in every run
    monkeypatch.setattr(roles, "derived_key", lambda purpose: b"k" * 32)  # who has which role is no matter of luck


def asked(data: Dataset, division: Division, **rest) -> RecipeRequest:
    recipe = Recipe(Kind.VOTE, division, SHARES, drafts=4, **rest)
    sizes, content = {"red": 90, "blue": 60}, fingerprint(data).content
    return RecipeRequest(LABELS, TEMPLATE, recipe, PrivacyTarget(EPSILON, DELTA), sizes, content, data.by_user)


def listened(data: Dataset, wanted: RecipeRequest, seed: int, again: Overheard | None = None) -> Overheard:
    """A whole run, overheard."""
    till = Till()
    ear = Overheard(seed, till, again)
    for _ in run.run_recipe(data, replace(wanted, content=fingerprint(data).content), Model(), EMBEDDER, till, ear):
        pass
    return ear


EMBEDDER = ToyEmbedder()


def neighbours(others: int, name: str, by_user: bool) -> tuple[Dataset, Dataset, list[Record]]:
    """Some rows with one more unit behind them, and the same without it."""
    rows = [Record(f"w{i % 4} {LABELS[i % 2]} {i}", LABELS[i % 3 % 2], f"user {i}") for i in range(others)]
    unit = [Record(f"w{i % 4} red {name} {i}", LABELS[i % 2], name) for i in range(7)] if by_user else []
    unit += [Record(f"w1 red {name}", "red", name), *([Record("red", "green", name)] if by_user else [])]
    column = "who" if by_user else None
    return *(Dataset("d", LABELS, tuple(each), column) for each in ([*rows, *unit], rows)), unit


def role_of(unit: list[Record], data: Dataset, division: Division) -> Stage | None:
    """The role of a unit that stands last in its data set."""
    if division is Division.EPSILON:
        return None
    parts = divide(data, Recipe(Kind.VOTE, division, SHARES))
    return next((stage for stage, part in parts.items() if unit[0].text in {each.text for each in part.records}), None)


def lists_of(unit: list[Record], role: Stage | None, wanted: RecipeRequest) -> set[str]:
    """The event lists that a unit pays."""
    if wanted.recipe.division is Division.EPSILON:
        return {ALL if wanted.by_user else unit[0].label}
    return {f"{role} {unit[0].label}" if role is Stage.VOTE and not wanted.by_user else str(role)}


def overdrawn(others: int, name: str, division: Division, by_user: bool = False, rounds: int = 1) -> float:
    """By how much a unit's cost exceeded, at any draw, what its lists had been charged until then."""
    data, without, unit = neighbours(others, name, by_user)
    wanted = asked(data, division, rounds=rounds)
    first = listened(data, wanted, seed=others)
    second = listened(without, wanted, seed=others, again=first)
    lists = lists_of(unit, role_of(unit, data, division), wanted)
    spent, worst = 0.0, -1.0
    for one, other in zip(first.draws, second.draws, strict=True):
        assert (one.scale, one.selects, one.charged) == (other.scale, other.selects, other.charged)
        moved = one.values - other.values
        distance = max(moved.max(), 0) - min(moved.min(), 0) if one.selects else np.abs(moved).sum()
        spent += distance / one.scale
        worst = max(worst, spent - sum(one.charged.get(each, 0.0) for each in lists))
    return worst


NAMES = [f"unit {i}" for i in range(12)]
"""As many units as it takes to have each role, and none, a few times."""
CASES = [(division, by_user, rounds) for division in Division for by_user in (False, True) for rounds in (1, 2)]


@pytest.mark.parametrize(("division", "by_user", "rounds"), CASES)
@pytest.mark.parametrize("others", [0, 25])
def test_a_unit_moves_what_was_charged_for_it_before_and_no_more(others, division, by_user, rounds):
    for name in NAMES if division is Division.ROLES else NAMES[:2]:
        assert overdrawn(others, name, division, by_user, rounds) <= 1e-9


def test_the_units_of_the_audit_have_all_roles_and_pay_the_whole_of_them():
    """Else the audit would pass for want of anything to find."""
    found = {role_of(unit, data, Division.ROLES) for data, _, unit in (neighbours(25, name, False) for name in NAMES)}
    assert found == {*SHARES, None}
    assert overdrawn(25, NAMES[0], Division.EPSILON) > -0.1
