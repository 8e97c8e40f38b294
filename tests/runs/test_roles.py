"""Roles: who reads whom. disjoint, fixed unit by unit, and as large as their shares; and who was asked before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.disclosures import SCORED
from mechanisms.data.sizes import measure_sizes
from mechanisms.noise import SecureRandomness
from mechanisms.public_inputs import WHETHER_MET
from mechanisms.records import Dataset, Record
from mechanisms.runs.roles import divided, intervals
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WRITE
from tests.runs.running import CAP, LABELS, begun, planned, spec

SHARES = {OPENINGS: 0.1, WRITE: 0.3, VOTE: 0.2, CALIBRATE: 0.1, SCORE: 0.2}


def dataset(records, user_column=None, name="d") -> Dataset:
    return Dataset(name, LABELS, records, user_column)


def rows(count: int) -> list[Record]:
    return [Record(f"text {i}", LABELS[i % 2]) for i in range(count)]


def counted(part: Dataset) -> Counter[tuple[str, str, str | None]]:
    return Counter((each.text, each.label, each.unit) for each in part.records)


def of_each(records, user_column=None, shares=None) -> dict[str, Counter]:
    parts = divided(dataset(records, user_column), shares or SHARES)
    return {stage: counted(part) for stage, part in parts.items()}


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


@pytest.mark.parametrize("records", [rows(4000), [Record("the same", "red")] * 4000], ids=["different", "equal"])
def test_parts_are_as_large_as_their_shares(records):
    parts = divided(dataset(records), SHARES)
    assert tuple(parts) == tuple(SHARES)
    sizes = np.array([len(parts[stage].records) for stage in SHARES])
    sizes = np.append(sizes, 4000 - sizes.sum())
    expected = 4000 * np.array([*SHARES.values(), 1 - sum(SHARES.values())])
    assert ((sizes - expected) ** 2 / expected).sum() < chi2.isf(1e-9, len(sizes) - 1)


@given(st.lists(st.floats(1e-6, 1), min_size=5, max_size=5), st.floats(0.5, 1 + 1e-10))
def test_intervals_are_disjoint_and_as_wide_as_their_shares(weights, total):
    shares = dict(zip(SHARES, (np.array(weights) / sum(weights) * total).tolist(), strict=True))
    found = intervals(shares)
    edges = [edge for interval in sorted(found.values()) for edge in interval]
    assert edges == sorted(edges)
    assert edges[0] == 0
    assert edges[-1] == 1
    for stage, (low, high) in found.items():
        assert high - low == pytest.approx(shares[stage], abs=2e-10)


def test_scorers_stay_scorers_when_other_shares_change():
    records = rows(1000)
    alone = of_each(records, shares={VOTE: 0.1, SCORE: 0.2})
    for others in (SHARES, SHARES | {WRITE: 0.1, VOTE: 0.5}, {WRITE: 0.8, SCORE: 0.2}):
        assert of_each(records, shares=others)[SCORE] == alone[SCORE]
    # A larger share takes more, and lets nobody go.
    assert alone[SCORE] < of_each(records, shares=SHARES | {SCORE: 0.25})[SCORE]


def test_a_role_is_the_installations_and_follows_a_row_under_any_name(monkeypatch, tmp_path: Path):
    records = rows(200)
    first = of_each(records)
    shuffled = dataset(records[::-1], name="other")
    assert {stage: counted(part) for stage, part in divided(shuffled, SHARES).items()} == first
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "another"))
    assert of_each(records) != first


# Rows are called untouched where nothing that was known of them can have been chosen by.

ROWS = tuple(Record(f"w{i} red {i}", LABELS[i % 2]) for i in range(60))


def held_out(ledger: PrivacyLedger, records: Dataset, split="roles") -> bool:
    ledger.set_cap(records.name, "record", CAP)
    plan = planned(records, spec("vote", split, drafts=4))
    *_, last = begun(records, plan, ledger=ledger, randomness=SecureRandomness())
    assert WHETHER_MET in last.demo_set.certificate.public_inputs
    return last.demo_set.score.held_out


def test_the_first_run_by_roles_has_untouched_scorers_and_no_later_one():
    ledger = PrivacyLedger()
    assert [held_out(ledger, dataset(ROWS)) for _ in range(2)] == [True, False]


def test_all_rows_took_part_where_stages_share_epsilon():
    assert not held_out(PrivacyLedger(), dataset(ROWS), "epsilon")


def test_another_name_or_another_cut_makes_nobody_a_stranger():
    ledger = PrivacyLedger()
    held_out(ledger, dataset(ROWS[:20], name="before"))
    assert not held_out(ledger, dataset(ROWS[19:]))
    strangers = tuple(replace(row, text=f"else {row.text}") for row in ROWS)
    assert held_out(ledger, dataset(strangers, name="others"))


def test_counting_touches_nobody():
    ledger = PrivacyLedger()
    measure_sizes(dataset(ROWS), 0.1, 1e-5, ledger)
    assert held_out(ledger, dataset(ROWS))


def test_what_was_seen_without_noise_may_have_been_chosen_by():
    ledger = PrivacyLedger()
    ledger.rows.mark_rows(fingerprint(dataset(ROWS)).rows, SCORED)
    assert not held_out(ledger, dataset(ROWS))
