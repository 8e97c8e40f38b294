"""A preview belongs to the settings and to the confirmed data set that it was made for."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.sessions import Session
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.state import PrivacyState, gate
from mechanisms.errors import UsageError
from tests.ui.privacy.test_form import DATASET, VALUES
from tests.ui.tabs import confirm

FIRST = PrivacyForm.read(*VALUES)
LATER = replace(FIRST, epsilon=2.0)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    made = itertools.count()
    monkeypatch.setattr(privacy_state, "preview", lambda *given: SimpleNamespace(number=next(made), seconds=1.0))
    tab = Session()
    confirm(tab, DATASET)
    return tab


def test_the_same_settings_are_calibrated_once(session: Session):
    state = session.of(PrivacyState)
    first = state.calibrate(FIRST, None)
    assert state.planned is first
    assert state.calibrate(FIRST, None) is first
    assert gate(session).done


def test_without_a_confirmed_data_set_there_is_no_preview(session: Session):
    state = session.of(PrivacyState)
    state.calibrate(FIRST, None)
    session.of(DataState).withdraw()
    assert state.planned is None
    assert gate(session).why
    with pytest.raises(UsageError, match="step 1"):
        state.calibrate(FIRST, None)


def test_confirming_the_same_rows_again_calibrates_again(session: Session):
    state = session.of(PrivacyState)
    first = state.calibrate(FIRST, None)
    again = confirm(session, DATASET)
    assert state.planned is None
    second = state.calibrate(FIRST, None)
    assert second is not first
    assert second.confirmed is again


@pytest.mark.parametrize("fails", [False, True])
def test_settings_that_were_overtaken_neither_show_nor_spoil_the_later_ones(
    session: Session, monkeypatch: pytest.MonkeyPatch, fails: bool
):
    state, calm = session.of(PrivacyState), privacy_state.preview

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(privacy_state, "preview", calm)
        state.calibrate(LATER, None)
        if fails:
            raise UsageError("No noise meets this.")
        return calm(*given)

    monkeypatch.setattr(privacy_state, "preview", overtaken)
    if fails:
        with pytest.raises(UsageError):
            state.calibrate(FIRST, None)
    else:
        assert state.calibrate(FIRST, None).form is FIRST
    assert state.planned is not None
    assert state.planned.form is LATER


def test_settings_that_cannot_be_used_leave_no_preview(session: Session, monkeypatch: pytest.MonkeyPatch):
    state = session.of(PrivacyState)
    state.calibrate(FIRST, None)

    def refused(*_: Any) -> Any:
        raise UsageError("No noise meets this.")

    monkeypatch.setattr(privacy_state, "preview", refused)
    with pytest.raises(UsageError):
        state.calibrate(LATER, None)
    assert state.planned is None
