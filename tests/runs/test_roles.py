"""Roles: who reads whom, and the shares that the planner proposes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.runs.advice import (
    FEWEST_DRAFTS,
    MOST_CORRECTED_LABELS,
    MOST_DEMONSTRATIONS,
    MOST_DRAFTS,
    MOST_VOTERS,
    VOTERS_A_LABEL,
    fewest_for_roles,
    proposed,
)
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage, divide, intervals
from mechanisms.runs.recipe_request import MOST_PROMPTED, MOST_SHOTS
from scipy.stats import chi2

from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record
from mechanisms.runs.stage import stage_class
from mechanisms.tallies import Weighing

# Who reads whom: roles are disjoint, fixed unit by unit, and as large as their shares.


LABELS = ("x", "y")
SHARES = {Stage.WRITE: 0.3, Stage.VOTE: 0.2, Stage.CALIBRATE: 0.1, Stage.CHOOSE: 0.1, Stage.SCORE: 0.2}


def recipe(shares=None, division=Division.ROLES) -> Recipe:
    shares = shares or SHARES
    kinds = {(True, False): Kind.TOKENS, (False, True): Kind.VOTE, (True, True): Kind.BOTH}
    return Recipe(kinds[Stage.WRITE in shares, Stage.VOTE in shares], division, shares)


def dataset(records, user_column=None, name="d") -> Dataset:
    return Dataset(name, LABELS, records, user_column)


def rows(count: int) -> list[Record]:
    return [Record(f"text {i}", LABELS[i % 2]) for i in range(count)]


def counted(part: Dataset) -> Counter[tuple[str, str, str | None]]:
    return Counter((each.text, each.label, each.unit) for each in part.records)


def of_each(records, user_column=None, shares=None) -> dict[Stage, Counter]:
    return {stage: counted(part) for stage, part in divide(dataset(records, user_column), recipe(shares)).items()}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(LABELS)), min_size=1, max_size=40), st.data())
def test_a_row_less_moves_nobody(cells, data):
    records = [Record(*each) for each in cells]
    gone = records.pop(data.draw(st.integers(0, len(records) - 1)))
    before, after = of_each([Record(*each) for each in cells]), of_each(records)
    assert all(after[stage] <= before[stage] for stage in before)
    lost = sum((before[stage] - after[stage] for stage in before), Counter())
    assert lost in (Counter(), Counter({(gone.text, gone.label, None): 1}))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(LABELS), st.sampled_from("uvw")), max_size=40))
def test_a_user_less_moves_nobody_and_all_rows_of_a_user_have_one_role(cells):
    records = [Record(*each) for each in cells]
    before = of_each(records, "who")
    after = of_each([each for each in records if each.unit != "u"], "who")
    for stage, held in before.items():
        assert after[stage] == Counter({row: count for row, count in held.items() if row[2] != "u"})
    for user in "uvw":
        assert sum(any(row[2] == user for row in held) for held in before.values()) <= 1


@pytest.mark.parametrize("records", [rows(4000), [Record("the same", "x")] * 4000], ids=["different", "equal"])
def test_parts_are_as_large_as_their_shares(records):
    parts = divide(dataset(records), recipe())
    assert tuple(parts) == tuple(SHARES)
    sizes = np.array([len(parts[stage].records) for stage in SHARES])
    sizes = np.append(sizes, 4000 - sizes.sum())
    expected = 4000 * np.array([*SHARES.values(), 1 - sum(SHARES.values())])
    assert ((sizes - expected) ** 2 / expected).sum() < chi2.isf(1e-9, len(sizes) - 1)


@pytest.mark.parametrize("user_column", [None, "who"])
def test_nobody_has_two_roles_and_a_share_of_one_is_everybody(user_column):
    records = [Record(f"text {i}", "x", f"user {i}" if user_column else None) for i in range(300)]
    held = sum(of_each(records, user_column).values(), Counter())
    assert max(held.values()) == 1
    (everybody,) = divide(dataset(records, user_column), recipe({Stage.WRITE: 1.0})).values()
    assert counted(everybody) == counted(dataset(records))


@given(st.lists(st.floats(1e-6, 1), min_size=5, max_size=5), st.floats(0.5, 1 + 1e-10))
def test_intervals_are_disjoint_and_as_wide_as_their_shares(weights, total):
    shares = dict(zip(Stage, np.array(weights) / sum(weights) * total, strict=True))
    found = intervals(recipe(shares))
    edges = [edge for interval in sorted(found.values()) for edge in interval]
    assert edges == sorted(edges)
    assert edges[0] == 0
    assert edges[-1] == 1
    for stage, (low, high) in found.items():
        assert high - low == pytest.approx(shares[stage], abs=2e-10)


def test_scorers_stay_scorers_when_other_shares_change():
    records = rows(1000)
    alone = of_each(records, shares={Stage.VOTE: 0.1, Stage.SCORE: 0.2})
    for others in (SHARES, SHARES | {Stage.WRITE: 0.1, Stage.VOTE: 0.5}, {Stage.WRITE: 0.8, Stage.SCORE: 0.2}):
        assert of_each(records, shares=others)[Stage.SCORE] == alone[Stage.SCORE]
    # A larger share takes more, and lets nobody go.
    assert alone[Stage.SCORE] < of_each(records, shares=SHARES | {Stage.SCORE: 0.25})[Stage.SCORE]


def test_a_role_is_the_installations_and_follows_a_row_under_any_name(monkeypatch, tmp_path: Path):
    records = rows(200)
    first = of_each(records)
    shuffled = dataset(records[::-1], name="other")
    assert {stage: counted(part) for stage, part in divide(shuffled, recipe()).items()} == first
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "another"))
    assert of_each(records) != first


def test_a_part_is_the_data_set_with_fewer_rows():
    records = [Record(f"text {i}", LABELS[i % 2], f"user {i}") for i in range(100)]
    cells = np.array([f"another column of row {i}" for i in range(100)], dtype=object)
    whole = Dataset("d", LABELS, records, "who", (cells,))
    for part in divide(whole, recipe()).values():
        assert (part.name, part.labels, part.user_column) == ("d", LABELS, "who")
        assert part.witnesses == ()  # only the whole is known again
        order = [records.index(each) for each in part.records]
        assert order == sorted(order)


def test_stages_that_share_epsilon_read_everybody():
    whole = dataset(rows(10))
    parts = divide(whole, recipe(division=Division.EPSILON))
    assert tuple(parts) == tuple(SHARES)
    assert all(part is whole for part in parts.values())


# What the planner proposes: valid for any public numbers, and more where there is more.

EPSILONS = (0.01, 0.3, 1.0, 3.0, 50.0)
COUNTS = (2, 4, 14, 150)
SIZES = (20, 60, 300, 499, 500, 1001, 7777, 30_000, 10**6)


def sizes(labels: int, each: int) -> dict[str, int]:
    return {f"label {i}": each for i in range(labels)}


@pytest.mark.parametrize("score", [True, False])
@pytest.mark.parametrize("division", [None, *Division])
@pytest.mark.parametrize("kind", list(Kind))
def test_any_sizes_get_a_valid_recipe(kind, division, score):
    for labels in COUNTS:
        for each in SIZES:
            for epsilon in EPSILONS:
                recipe = proposed(kind, sizes(labels, each), epsilon, score, division)
                assert sum(recipe.shares.values()) <= 1 + 1e-9
                assert (Stage.SCORE in recipe.shares) == score
                corrected = {Stage.CALIBRATE, Stage.CHOOSE} & set(recipe.shares)
                assert len(corrected) == (2 if labels <= MOST_CORRECTED_LABELS else 0)
                assert FEWEST_DRAFTS <= recipe.drafts <= MOST_DRAFTS
                assert division is None or recipe.division is division


@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.BOTH])
def test_more_drafts_stand_than_win_and_large_sets_are_read_in_no_prompt(kind):
    for shots in range(1, MOST_SHOTS + 1):
        recipe = proposed(kind, sizes(4, 1000), 1.0, shots=shots)
        assert recipe.drafts >= 2 * shots
        assert (Stage.CHOOSE in recipe.shares) is (Stage.SCORE in recipe.shares) is (shots <= MOST_PROMPTED)
        assert recipe.sets * shots * 4 <= MOST_DEMONSTRATIONS or recipe.sets == 1
    assert proposed(kind, sizes(4, 1000), 1.0, shots=1) == proposed(kind, sizes(4, 1000), 1.0)


@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.BOTH])
def test_drafts_grow_with_epsilon_and_with_the_data(kind):
    for labels in COUNTS:
        by_epsilon = [proposed(kind, sizes(labels, 150), epsilon).drafts for epsilon in EPSILONS]
        assert by_epsilon == sorted(by_epsilon)
        assert by_epsilon[0] < by_epsilon[-1]
    for division in Division:
        by_size = [proposed(kind, sizes(2, each), 1.0, division=division).drafts for each in (20, 60, 200, 600)]
        assert by_size == sorted(by_size)
        assert by_size[0] < by_size[-1]


def test_roles_from_the_number_of_units_on_at_which_each_is_large_enough():
    for labels in COUNTS:
        fewest = fewest_for_roles(labels)
        others = {f"label {i}": 1 for i in range(1, labels)}
        assert proposed(Kind.VOTE, {"a": fewest - labels, **others}, 1.0).division is Division.EPSILON
        assert proposed(Kind.VOTE, {"a": fewest - labels + 1, **others}, 1.0).division is Division.ROLES
    assert fewest_for_roles(4) < fewest_for_roles(10) < fewest_for_roles(20) == fewest_for_roles(1000)


@pytest.mark.parametrize("units", [2 * 1600, 8_000, 120_000, 1_500_000])
def test_roles_have_the_numbers_that_compute_allows(units):
    recipe = proposed(Kind.VOTE, {"a": units // 2, "b": units // 2}, 1.0)
    for stage in recipe.stages:
        wanted = stage_class(stage).wanted
        assert wanted is not None
        assert 0.9 * wanted <= recipe.shares[stage] * units <= 1.001 * wanted
    sets = recipe.sets + 2
    found = {stage: share * units for stage, share in recipe.shares.items()}
    passes = 2 * found[Stage.CALIBRATE] + sets * found[Stage.CHOOSE] + 3 * found[Stage.SCORE]
    assert passes <= 2_200 * 1.001


def test_more_units_score_where_none_calibrate_or_choose():
    few, many = (proposed(Kind.VOTE, sizes(labels, 9600 // labels), 1.0) for labels in (24, 96))
    assert MOST_CORRECTED_LABELS == 24
    assert many.shares[Stage.SCORE] == pytest.approx(1.5 * few.shares[Stage.SCORE], 0.1)


def test_skewed_labels_count_the_same_where_enough_rows_of_each_can_score():
    even = proposed(Kind.VOTE, sizes(12, 400), 1.0)
    few, many = (proposed(Kind.VOTE, sizes(labels, 400) | {"large": 4000}, 1.0) for labels in (11, 90))
    assert (few.weighing, many.weighing) == (Weighing.LABELS, Weighing.ROWS)
    rows = 4000 + 11 * 400
    assert few.shares[Stage.SCORE] * rows == pytest.approx(2 * even.shares[Stage.SCORE] * 4800, 0.1)


@pytest.mark.parametrize("units", [3_200, 32_000])
def test_the_labels_of_many_have_voters_each(units):
    recipe = proposed(Kind.VOTE, sizes(80, units // 80), 1.0)
    assert recipe.shares[Stage.VOTE] * units / 80 == pytest.approx(min(VOTERS_A_LABEL, MOST_VOTERS * units / 80), 0.02)


def test_writers_get_what_the_others_leave():
    few, many = (proposed(Kind.BOTH, sizes(2, each), 1.0) for each in (1000, 100_000))
    assert sum(few.shares.values()) == pytest.approx(1, abs=0.02)
    assert few.shares[Stage.WRITE] < many.shares[Stage.WRITE]
    assert sum(many.shares.values()) == pytest.approx(1, abs=0.02), "nobody is idle"
    assert Stage.WRITE not in proposed(Kind.VOTE, sizes(2, 1000), 1.0).shares
    assert Stage.VOTE not in proposed(Kind.TOKENS, sizes(2, 1000), 1.0).shares


def test_all_of_epsilon_is_used_where_it_is_shared():
    for kind in Kind:
        for score in (True, False):
            assert sum(proposed(kind, sizes(3, 50), 1.0, score).shares.values()) == pytest.approx(1)


def test_many_labels_get_fewer_sets():
    sets = [proposed(Kind.VOTE, sizes(labels, 1000), 1.0).sets for labels in COUNTS]
    assert sets[0] == 2
    assert sets == sorted(sets, reverse=True)
    assert sets[-2:] == [1, 1]


@pytest.mark.parametrize(("given", "epsilon"), [({}, 1.0), ({"a": 0, "b": 5}, 1.0), ({"a": 5, "b": 5}, 0.0)])
def test_numbers_that_mean_nothing_are_refused(given, epsilon):
    with pytest.raises(UsageError):
        proposed(Kind.VOTE, given, epsilon)
