"""Label sizes measured with noise: paid for once, claimed by every run on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpicl_ui.data.step import measured_once
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import text_of
from dpicl_ui.privacy.cards import outcome
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.plan_finder import search
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.errors import UsageError
from mechanisms.studio.data.counts import MeasuredSizes
from mechanisms.studio.synthesis.forecast import ModelSpeed
from mechanisms.studio.synthesis.preview import preview
from mechanisms.studio.synthesis.request import DECLARED_COUNTS
from tests.ui.privacy.test_form import DATASET, VALUES

FORM = PrivacyForm.read(*VALUES)


def measured() -> MeasuredSizes:
    return MeasuredSizes({"a": 70, "b": 80}, 0.25, 1e-9, fingerprint(DATASET).content)


def spent(ledger: PrivacyLedger) -> float:
    return ledger.snapshot(DATASET.name, DATASET.unit).epsilon


def test_a_data_set_is_counted_and_charged_once(tmp_path: Path):
    session, ledger = Session(), PrivacyLedger(tmp_path)
    first = measured_once(session, DATASET, 0.1, ledger)
    assert spent(ledger) == pytest.approx(0.1)
    session.forget_data()
    assert measured_once(session, DATASET, 0.5, ledger) is first
    assert spent(ledger) == pytest.approx(0.1)


def test_another_choice_of_labels_is_another_count(tmp_path: Path):
    session, ledger = Session(), PrivacyLedger(tmp_path)
    measured_once(session, DATASET, 0.1, ledger)
    measured_once(session, replace(DATASET, labels=("b",)), 0.1, ledger)
    assert len(session.measurements) == 2


@pytest.mark.parametrize("epsilon", [None, 0, -1.0, float("nan")])
def test_counting_wants_an_epsilon(tmp_path: Path, epsilon):
    ledger = PrivacyLedger(tmp_path)
    with pytest.raises(UsageError, match="epsilon for counting"):
        measured_once(Session(), DATASET, epsilon, ledger)
    assert spent(ledger) == 0


@pytest.mark.slow
def test_a_run_on_measured_sizes_claims_the_measurement_and_is_charged_without_it():
    made = preview(FORM.request(DATASET, measured()))
    session = Session(dataset=DATASET, measured=measured(), preview=made)
    assert made.request.sizes == measured().sizes
    assert DECLARED_COUNTS not in made.request.public_inputs
    assert made.claim.epsilon <= FORM.epsilon
    assert session.planned == pytest.approx(made.request.release_claim().epsilon)
    assert "a: 70, b: 80" in text_of(outcome(made))


def test_forgotten_data_takes_its_measurement_along():
    session = Session(dataset=DATASET, measured=measured())
    session.forget_data()
    assert session.measured is None


def test_the_planner_searches_with_what_counting_has_left():
    speed = ModelSpeed(position=1e-3, row=1e-3, step=1e-3)
    looked = search(FORM, DATASET, speed, 60, measured())
    assert looked.task.size == 70
    assert looked.target.epsilon == pytest.approx(0.75)
