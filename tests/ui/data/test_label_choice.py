"""Many labels, and other names for them: offered at once, one to one, in everything after."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.services import Session
from dpicl_ui.privacy.cards import outcome
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.columns import MOST_LABELS
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.errors import UsageError
from mechanisms.runs.plan import DECLARED_COUNTS, settings
from tests.ui.data.tab import NO_USER, TAB, Tab
from tests.ui.privacy.test_form import DATASET
from tests.ui.tabs import confirm, planned
from tests.ui.trees import text_of


def upload(tab: Tab, count: int):
    rows = "".join(f"a rather long text {i},label_{i % count:03}\n" for i in range(600))
    return tab.shown(tab.step._upload(tab.file("rows.csv", f"text,label\n{rows}"), TAB))


def name_labels(tab: Tab, lines: str):
    return tab.shown(tab.step._name_labels(TAB, lines, "text", "label", NO_USER, False))


@pytest.mark.parametrize("count", [80, MOST_LABELS])
def test_all_labels_that_a_certificate_can_hold_are_offered_and_confirmed_at_once(tab, count):
    shown = upload(tab, count)
    labels = shown[tab.step.labels].value
    assert len(labels) == len(shown[tab.step.labels].choices) == count
    assert f"{count} labels, with " in text_of(shown[tab.step.facts])
    assert tab.state.columns is not None
    assert not tab.state.columns.inspection.problems
    tab.confirm(labels)
    assert tab.state.confirmed is not None
    assert len(tab.state.confirmed.dataset.labels) == count


def test_names_stand_in_everything_after_and_a_test_file_is_read_by_them(tab):
    upload(tab, 3)
    labels = name_labels(tab, "".join(f"label_00{i} = Label 00{i}\n" for i in range(3)))[tab.step.labels].value
    assert labels == ["Label 000", "Label 001", "Label 002"]
    tab.confirm(labels)
    assert tab.state.confirmed is not None
    dataset = tab.state.confirmed.dataset
    assert dataset.labels == tuple(labels)
    assert set(dataset.counted_sizes().values()) == {200}
    assert tab.state.names_for(labels) == tab.state.confirmed.columns.mapping.label_names
    assert tab.state.names_for(["label_000"]) == ()
    back = name_labels(tab, "")[tab.step.labels].value
    assert back == ["label_000", "label_001", "label_002"]
    assert tab.state.confirmed is None


def test_names_are_proposed_open_and_in_use_where_labels_are_written_for_programs(tab):
    shown = upload(tab, 2)
    assert shown[tab.step.choice._naming].open
    assert shown[tab.step.choice.names].value == "label_000 = Label 000\nlabel_001 = Label 001"
    assert "in use already" in shown[tab.step.choice.names].info
    assert shown[tab.step.labels].value == ["Label 000", "Label 001"]
    assert set(tab.state.columns.inspection.counts) == {"Label 000", "Label 001"}


def test_a_label_that_takes_no_part_is_named_nowhere(tab):
    upload(tab, 3)
    with pytest.raises(UsageError, match="200 of 600 rows are left out: 200 with a label outside the set"):
        tab.confirm(["Label 000", "Label 001"])
    tab.step._allow(True, TAB)
    tab.confirm(["Label 000", "Label 001"])
    confirmed = tab.state.confirmed
    plan = planned(tab.sessions.of(TAB), recipe="vote").plan
    written = settings(plan, confirmed.columns.mapping, "rows")
    assert "label_000" in written
    assert "label_002" not in written
    assert "Label 002" not in written
    assert "label_002" in {record.label for record in confirmed.dataset.records}


# Label sizes measured with noise: paid for once, claimed by every run on them.


def measured() -> MeasuredSizes:
    return MeasuredSizes({"a": 70, "b": 80}, 0.25, 1e-9, fingerprint(DATASET).content)


def spent(ledger: PrivacyLedger) -> float:
    return ledger.snapshot(DATASET.name, DATASET.unit).epsilon


def test_a_data_set_is_counted_and_charged_once(tmp_path: Path):
    session, ledger = Session(), PrivacyLedger(tmp_path)
    state = session.of(DataState)
    first = state.measured_once(DATASET, 0.1, ledger)
    assert spent(ledger) == pytest.approx(0.1)
    confirm(session, DATASET, first)
    state.withdraw()
    assert state.measured_once(DATASET, 0.5, ledger) is first
    assert spent(ledger) == pytest.approx(0.1)


def test_a_run_on_measured_sizes_claims_the_measurement_and_is_charged_without_it():
    session = Session()
    confirmed = confirm(session, DATASET, measured())
    made = planned(session, recipe="tokens")
    assert made.plan.sizes == measured().sizes == confirmed.sizes
    assert DECLARED_COUNTS not in made.plan.public_inputs
    assert made.claim.epsilon <= made.spec.epsilon
    assert made.charge == pytest.approx(made.plan.release_claim().epsilon)
    assert "a: 70, b: 80" in text_of(outcome(made))
