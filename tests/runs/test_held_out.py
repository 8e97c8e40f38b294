"""Rows are called untouched where nothing that was known of them can have been chosen by."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.accounting import Cap, PrivacyLedger, fingerprint
from mechanisms.data.sizes import SCORED, WHETHER_MET, measure_sizes
from mechanisms.noise import SecureRandomness
from mechanisms.records import Dataset, Record
from tests.runs.running import LABELS, begun, planned, spec

ROWS = tuple(Record(f"w{i} red {i}", LABELS[i % 2]) for i in range(60))


def data(name="d", rows=ROWS) -> Dataset:
    return Dataset(name, LABELS, rows)


def held_out(ledger: PrivacyLedger, dataset: Dataset, split="roles") -> bool:
    ledger.set_cap(dataset.name, "record", Cap(1000.0, 0.01))
    plan = planned(dataset, spec("vote", split, drafts=4))
    *_, last = begun(dataset, plan, ledger=ledger, randomness=SecureRandomness())
    assert WHETHER_MET in last.demo_set.certificate.public_inputs
    return last.demo_set.score.held_out


def test_the_first_run_by_roles_has_untouched_scorers_and_no_later_one():
    ledger = PrivacyLedger()
    assert [held_out(ledger, data()) for _ in range(2)] == [True, False]


def test_all_rows_took_part_where_stages_share_epsilon():
    assert not held_out(PrivacyLedger(), data(), "epsilon")


def test_another_name_or_another_cut_makes_nobody_a_stranger():
    ledger = PrivacyLedger()
    held_out(ledger, data("before", ROWS[:20]))
    assert not held_out(ledger, data(rows=ROWS[19:]))
    strangers = tuple(replace(row, text=f"else {row.text}") for row in ROWS)
    assert held_out(ledger, data("others", strangers))


def test_counting_touches_nobody():
    ledger = PrivacyLedger()
    measure_sizes(data(), 0.1, 1e-5, ledger)
    assert held_out(ledger, data())


def test_what_was_seen_without_noise_may_have_been_chosen_by():
    ledger = PrivacyLedger()
    ledger.rows.mark_rows(fingerprint(data()).rows, SCORED)
    assert not held_out(ledger, data())
