"""What claims nothing says nothing: public sets, the account's table and document, of files that differ in a row."""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyLedger, database, fingerprint, ledger
from mechanisms.accounting import database as known_rows
from mechanisms.accounting.account import as_csv
from mechanisms.api import mark_test_file
from mechanisms.data.sizes import CLEAN_VALUES, SCORED, SEEDED, measure_sizes
from mechanisms.records import Dataset, Record
from mechanisms.runs.run import synthesize
from mechanisms.steps import mechanism_class
from tests.replay.contract import replay
from tests.replay.world import one_key
from tests.synthesis.test_synthesize import LABELS, dataset, request
from tests.toy_model import ToyModel

pytestmark = pytest.mark.usefixtures("one_key")
assert one_key

SHARED = Record("a row that an earlier file and a test file have as well", "a")


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Earlier runs, a run on the data, a test file that is scored, and then what is told in public."""
    homes = (tmp_path / str(i) for i in itertools.count())
    for module in (database, known_rows, ledger):
        monkeypatch.setattr(module, "now", lambda: "now")

    def release(data: Dataset, tape) -> None:
        home = next(homes)
        home.mkdir()
        (home / "key").write_bytes(b"k" * 32)
        monkeypatch.setenv("DPICL_HOME", str(home))
        own = PrivacyLedger()
        own.rows.mark(fingerprint(Dataset("old", LABELS, (SHARED, Record("another", "b")))), CLEAN_VALUES)
        measure_sizes(data, 0.1, 1e-5, own, tape)
        test = Dataset("test file", (), (SHARED, Record("unheard of", "b")))
        mark_test_file(test)
        wanted = request(content=fingerprint(data).content, mechanism=mechanism_class("public")())
        *_, last = synthesize(data, wanted, ToyModel(), own, tape)
        made = last.demo_set.with_disclosures(own.rows.disclosures(fingerprint(data)))
        tape.tell(replace(made, created="").dumps())
        tape.tell(as_csv(own.account(data.name, data.unit)))

    return release


def with_row(row: Record) -> Dataset:
    return replace(dataset(), records=(*dataset().records[1:], row))


def test_one_row_that_earlier_runs_share_shows_nowhere_in_public(world):
    found = replay(world, with_row(SHARED), with_row(Record("a row that nobody else has", "a")))
    *_, table, _ = [entry.event for entry in found.recorded if hasattr(entry, "event")]
    [row] = csv.DictReader(io.StringIO(table))
    assert row["known_besides"] == SEEDED  # what was done under its name stands


def test_the_curator_is_told_all_the_same(world):
    replay(world, with_row(SHARED), with_row(SHARED))
    shown = PrivacyLedger().rows.disclosures(fingerprint(with_row(SHARED)))
    assert {CLEAN_VALUES, SCORED} <= set(shown)
    stranger = replace(dataset(), name="stranger")
    assert CLEAN_VALUES not in PrivacyLedger().rows.disclosures(fingerprint(stranger))
