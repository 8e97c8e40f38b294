"""Label sizes measured with noise: paid for once, claimed by every run on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.sessions import Session
from dpicl_ui.privacy.cards import outcome
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.plan_finder import search
from dpicl_ui.privacy.state import Planned
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.errors import UsageError
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.preview import preview
from mechanisms.runs.request import DECLARED_COUNTS
from tests.ui.privacy.test_form import DATASET, VALUES
from tests.ui.tabs import confirm
from tests.ui.trees import text_of

FORM = PrivacyForm.read(*VALUES)


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


def test_another_choice_of_labels_is_another_count(tmp_path: Path):
    state, ledger = Session().of(DataState), PrivacyLedger(tmp_path)
    first = state.measured_once(DATASET, 0.1, ledger)
    other = state.measured_once(replace(DATASET, labels=("b",)), 0.1, ledger)
    assert (set(first.sizes), set(other.sizes)) == ({"a", "b"}, {"b"})


@pytest.mark.parametrize("epsilon", [None, 0, -1.0, float("nan")])
def test_counting_wants_an_epsilon(tmp_path: Path, epsilon):
    ledger = PrivacyLedger(tmp_path)
    with pytest.raises(UsageError, match="epsilon for counting"):
        Session().of(DataState).measured_once(DATASET, epsilon, ledger)
    assert spent(ledger) == 0


@pytest.mark.slow
def test_a_run_on_measured_sizes_claims_the_measurement_and_is_charged_without_it():
    confirmed = confirm(Session(), DATASET, measured())
    made = preview(FORM.spec(DATASET, confirmed.measured).writing(DATASET))
    assert made.request.sizes == measured().sizes == confirmed.sizes
    assert DECLARED_COUNTS not in made.request.public_inputs
    assert made.claim.epsilon <= FORM.epsilon
    charge = Planned(confirmed, FORM, made).charge
    assert charge == pytest.approx(made.request.release_claim().epsilon)
    assert "a: 70, b: 80" in text_of(outcome(made))


def test_sizes_are_the_measured_ones_or_those_declared():
    assert confirm(Session(), DATASET, measured()).sizes == measured().sizes
    assert confirm(Session(), DATASET).sizes == {"a": 30, "b": 30}


def test_the_planner_searches_with_what_counting_has_left():
    speed = ModelSpeed(position=1e-3, row=1e-3, step=1e-3)
    looked = search(FORM, DATASET, speed, 60, measured())
    assert looked.task.size == 70
    assert looked.target.epsilon == pytest.approx(0.75)
