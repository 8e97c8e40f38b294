"""Plans of step 2, and the defaults that app and Python share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.services import Session
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.state import PrivacyState, gate
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms import api
from mechanisms.asking import Asked
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sources import read_table
from mechanisms.errors import UsageError
from mechanisms.runs.plan import plan_for
from mechanisms.runs.spec import Recipe, RunSpec
from mechanisms.runs.stage import Speed
from tests.ui.data.tab import TAB
from tests.ui.privacy.test_form import DATASET, spec
from tests.ui.tabs import confirm

# A plan belongs to the settings and to the confirmed data set that it was made for.

FIRST = RunSpec.of(sizes="counted", mechanism="noisy-max", recipe=Recipe.TOKENS, tokens=4, subsets=8)
LATER = FIRST.with_(epsilon=2.0)
VOTE = RunSpec.of(sizes="counted", recipe=Recipe.VOTE)
SPEED = Speed(position=1e-3, token=1e-3, text=1e-3)


@pytest.fixture
def session() -> Session:
    tab = Session()
    confirm(tab, DATASET)
    return tab


def test_the_same_settings_are_calibrated_once(session: Session):
    state = session.of(PrivacyState)
    first = state.calibrate(FIRST, None)
    assert state.planned is first
    assert state.plan is first.plan
    assert state.calibrate(FIRST, None) is first
    assert gate(session).done


def test_the_plan_is_that_of_the_spec_on_the_data_set_and_calibrated(session: Session):
    made = session.of(PrivacyState).calibrate(VOTE, None)
    assert made.plan == plan_for(VOTE, DATASET).calibrated()
    assert made.claim == made.plan.claim()
    assert made.claim.epsilon == made.charge == pytest.approx(1.0)


def test_without_a_confirmed_data_set_there_is_no_plan(session: Session):
    state = session.of(PrivacyState)
    state.calibrate(FIRST, None)
    session.of(DataState).withdraw()
    assert state.planned is None
    assert state.plan is None
    assert gate(session).why
    with pytest.raises(UsageError, match="step 1"):
        state.calibrate(FIRST, None)


@pytest.mark.parametrize("fails", [False, True])
def test_settings_that_were_overtaken_neither_show_nor_spoil_the_later_ones(
    session: Session, monkeypatch: pytest.MonkeyPatch, fails: bool
):
    state, calm = session.of(PrivacyState), privacy_state.plan_for

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(privacy_state, "plan_for", calm)
        state.calibrate(LATER, None)
        if fails:
            raise UsageError("No noise meets this.")
        return calm(*given)

    monkeypatch.setattr(privacy_state, "plan_for", overtaken)
    if fails:
        with pytest.raises(UsageError):
            state.calibrate(FIRST, None)
    else:
        assert state.calibrate(FIRST, None).spec is FIRST
    assert state.planned is not None
    assert state.planned.spec is LATER


def test_two_handlers_calibrate_the_same_settings_once(session: Session, monkeypatch: pytest.MonkeyPatch):
    state, calm, entered, second = (
        session.of(PrivacyState),
        privacy_state.plan_for,
        threading.Event(),
        threading.Event(),
    )

    def slow(*given: Any) -> Any:
        (second if entered.is_set() else entered).set()
        second.wait(0.3)
        return calm(*given)

    monkeypatch.setattr(privacy_state, "plan_for", slow)
    with ThreadPoolExecutor() as pool:
        run = pool.submit(state.calibrate, FIRST, None)
        assert entered.wait(10)
        assert pool.submit(state.look, FIRST, None).result() is run.result()
    assert not second.is_set()


# The app and Python plan the same run where nobody says otherwise; the command line and Python share one function.


@pytest.mark.parametrize("user", [None, "who"])
def test_a_file_is_planned_alike_in_the_app_and_in_python(step: PrivacyStep, tmp_path: Path, user):
    path = tmp_path / "notes.csv"
    rows = [f"text {i},{'Yes' if i % 3 else 'No'},p{i % 61}" for i in range(150)]
    path.write_text("the text,topic,who\n" + "\n".join(rows), encoding="utf-8")
    data = api.load(path, ["No", "Yes"], text="the text", label="topic", user=user, name="my notes")
    python = api.plan(data, sizes="counted", kind="note", writer="a nurse", label_field="Topic", text_field="Note")
    session = step._app.session(TAB)
    state = session.of(DataState)
    state.open(read_table(path), Asked("note", "a nurse"), "Topic", ("the text", "topic"))
    columns = state.read(ColumnMapping("the text", "topic", user))
    state.confirm(privacy_state.Confirmed(columns, data))
    assert state.confirmed is not None
    app = session.of(PrivacyState).calibrate(spec(step, delta="1e-5"), None).plan
    assert app == python
