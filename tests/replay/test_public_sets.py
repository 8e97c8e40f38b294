"""What claims nothing says nothing: public sets and the account's table, of files that differ in a row."""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyLedger, fingerprint, known_rows
from mechanisms.accounting import ledger as ledger_module
from mechanisms.accounting.account import as_csv
from mechanisms.api import mark_test_file
from mechanisms.data.disclosures import CLEAN_VALUES, SCORED
from mechanisms.data.sizes import measure_sizes
from mechanisms.records import Dataset, Record
from mechanisms.runs.plan import public_plan
from mechanisms.runs.run import run
from tests.replay.contract import replay
from tests.runs.running import LABELS, Reading, alone, data, rows

pytestmark = pytest.mark.usefixtures("one_key")

SHARED = Record("a row that an earlier file and a test file have as well", "red")


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Earlier runs, a run on the data, a test file that is scored, and then what is told in public."""
    homes = (tmp_path / str(i) for i in itertools.count())
    for module in (known_rows, ledger_module):
        monkeypatch.setattr(module, "now", lambda: "now")

    def release(own: Dataset, tape) -> None:
        home = next(homes)
        home.mkdir()
        (home / "key").write_bytes(b"k" * 32)
        monkeypatch.setenv("DPICL_HOME", str(home))
        ledger = PrivacyLedger()
        ledger.rows.mark(fingerprint(Dataset("old", LABELS, (SHARED, Record("another", "blue")))), CLEAN_VALUES)
        measure_sizes(own, 0.1, 1e-5, ledger, tape)
        test = Dataset("test file", (), (SHARED, Record("unheard of", "blue")))
        mark_test_file(test)
        *_, last = run(public_plan(alone(parameters={}), LABELS), own, Reading(), ledger, tape)
        made = last.demo_set.with_disclosures(ledger.rows.disclosures(fingerprint(own)))
        tape.tell(replace(made, created="").dumps())
        tape.tell(as_csv(ledger.account(own.name, own.unit)))

    return release


def with_row(row: Record) -> Dataset:
    return replace(data(rows(20)), records=(*rows(20)[1:], row))


def test_one_row_that_earlier_runs_share_shows_nowhere_in_public(world):
    found = replay(world, with_row(SHARED), with_row(Record("a row that nobody else has", "red")))
    *_, table, _ = [entry.event for entry in found.recorded if hasattr(entry, "event")]
    [row] = csv.DictReader(io.StringIO(table))
    assert row["known_besides"]  # what was done under its name stands


def test_the_curator_is_told_all_the_same(world):
    replay(world, with_row(SHARED), with_row(SHARED))
    shown = PrivacyLedger().rows.disclosures(fingerprint(with_row(SHARED)))
    assert {CLEAN_VALUES, SCORED} <= set(shown)
    stranger = replace(data(rows(20)), name="stranger")
    assert CLEAN_VALUES not in PrivacyLedger().rows.disclosures(fingerprint(stranger))
