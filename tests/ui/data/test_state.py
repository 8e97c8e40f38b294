"""The state of step 1, what is proposed for a file, and what hangs on the confirmed data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from dpicl_ui.data.cards import declared, label_counts, proposed_name
from dpicl_ui.data.state import Columns, Confirmed, DataState
from dpicl_ui.export import DEMO_SET, ExportStep
from dpicl_ui.frame.services import CuratorLedger, Session, Sessions
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import PrivacyLedger, text_digests
from mechanisms.asking import Asked
from mechanisms.data.columns import ColumnMapping, inspect
from mechanisms.data.sizes import CLEAN_VALUES
from mechanisms.data.sources import read_table
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import loads
from mechanisms.demos.signature import Signature, check_signature, digest
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.runs.plan import plan_for
from tests.ui.generate.recording import demo_set
from tests.ui.privacy.test_form import DATASET
from tests.ui.tabs import confirm, downloaded, in_page, planned, services, write
from tests.ui.trees import text_of

# Step 1 holds one value at a time: what is confirmed belongs to the columns that are there.


MAPPING = ColumnMapping("text", "label")


def table() -> Table:
    return Table(pd.DataFrame({"text": ["a", "b"] * 20, "label": ["x", "y"] * 20}))


@pytest.fixture
def state() -> DataState:
    made = Session().of(DataState)
    made.open(table(), Asked(), "Label", ("text", "label"))
    return made


def confirmed(state: DataState) -> Columns:
    columns = state.read(MAPPING)
    state.confirm(Confirmed(columns, DATASET))
    assert state.confirmed is not None
    assert state.columns is columns
    return columns


@pytest.mark.parametrize("change", ["open", "read", "rechoose", "withdraw", "ask"])
def test_every_change_takes_back_what_was_confirmed_and_outdates_its_columns(state: DataState, change: str):
    columns = confirmed(state)
    if change == "open":
        state.open(table(), Asked("note"), "Label", ("text", "label"))
    elif change == "read":
        state.read(replace(MAPPING, drop_duplicates=not MAPPING.drop_duplicates))
    elif change == "ask":
        state.ask(Asked("letter"))
    else:
        getattr(state, change)()
    assert state.confirmed is None
    assert state.columns is not columns
    with pytest.raises(UsageError, match="confirm again"):
        state.confirm(Confirmed(columns, DATASET))
    assert state.confirmed is None


def test_what_is_confirmed_again_stays_the_same_and_what_differs_does_not(state: DataState):
    columns = confirmed(state)
    first = state.confirmed
    state.confirm(Confirmed(columns, replace(DATASET)))
    assert state.confirmed is first
    other = Confirmed(columns, replace(DATASET, name="renamed"))
    state.confirm(other)
    assert state.confirmed is other


# What is proposed for a file.


@pytest.mark.parametrize(
    "file",
    ["train.csv", "Test (1).xlsx", "data_2024-01-31.csv", "EXPORT-final-v2.parquet", "x/y/7.csv", "a.csv"],
)
def test_a_file_name_that_says_nothing_is_no_name_of_a_data_set(file):
    assert proposed_name(file) == ""


# A tab's data set and what hangs on it: plans of another file, figures of its own rows, exports after the fact.

OTHER = Dataset("other", ("a", "b"), tuple(Record(f"o {i}", "ab"[i % 2]) for i in range(90)))
TAB: Any = SimpleNamespace(username=None, session_hash="tab")


def test_a_plan_that_was_overtaken_by_another_data_set_is_dropped(monkeypatch: pytest.MonkeyPatch):
    session = Session()
    first = confirm(session, DATASET)

    def overtaken(*given: Any) -> Any:
        confirm(session, OTHER)
        return plan_for(*given)

    monkeypatch.setattr(privacy_state, "plan_for", overtaken)
    made = planned(session, recipe="vote")
    assert made.confirmed is first
    assert session.of(PrivacyState).planned is None


def test_what_is_declared_are_the_users_where_they_are_the_unit(tmp_path: Path):
    path = tmp_path / "letters.csv"
    rows = [f"letter {i},{'ab'[i % 2]},u{i % 3}" for i in range(40)]
    path.write_text("\n".join(["text,label,who", *rows]), encoding="utf-8")
    table = read_table(path)
    counted = inspect(table, ColumnMapping("text", "label", "who"))
    assert counted.counts == {"a": 3, "b": 3}
    shown = text_of(label_counts(counted, ["a", "b"], by_user=True))
    assert "how many users" in shown
    assert "20" not in shown
    assert "users" in declared(True)
    assert "rows" in declared(False)
    assert inspect(table, ColumnMapping("text", "label")).counts == {"a": 20, "b": 20}


def export(ledger: PrivacyLedger, sessions: Sessions) -> ExportStep:
    return in_page(lambda: ExportStep(services(CuratorLedger(ledger), sessions=sessions)))


@pytest.fixture
def ledger(tmp_path: Path) -> PrivacyLedger:
    return PrivacyLedger(tmp_path)


def test_an_export_carries_what_became_known_since_the_run(ledger: PrivacyLedger):
    sessions = Sessions()
    step = export(ledger, sessions)
    session = sessions.of(TAB)
    write(session, demo_set(Demonstration("A goal.", "Sport")), OTHER)
    saved = downloaded(step._save(DEMO_SET, TAB)[step.sink])
    assert loads(saved).certificate.disclosures == ()
    assert check_signature(saved) is Signature.VALID
    ledger.rows.mark_rows(text_digests(["O 1"]), CLEAN_VALUES)
    saved = step._save(DEMO_SET, TAB)
    assert loads(downloaded(saved[step.sink])).certificate.disclosures == (CLEAN_VALUES,)
    assert check_signature(downloaded(saved[step.sink])) is Signature.VALID
    page = downloaded(step._save("certificate", TAB)[step.sink])
    assert CLEAN_VALUES in page
    assert digest(downloaded(saved[step.sink])) in page
    assert "no place for that mark" in text_of(step._explain("openai", TAB)[step.purpose])
    assert CLEAN_VALUES in text_of(saved[step.certificate])
