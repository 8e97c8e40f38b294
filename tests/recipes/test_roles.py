"""Who reads whom: roles are disjoint, fixed unit by unit, and as large as their shares."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from mechanisms.records import Dataset, Record
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage, divide, intervals

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
