"""Previews of step 2, and the defaults that app, command line and Python share."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dpicl_ui.privacy.form import PrivacyForm, RecipeForm, Stages
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.recipe import Kind
from mechanisms.runs.recipe_forecast import predicted_seconds
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest

from dpicl_ui.data.state import Columns, Confirmed, DataState, Records
from dpicl_ui.frame.sessions import Session
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.state import PrivacyState, gate
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms import api
from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.data.sources import KIND
from mechanisms.errors import UsageError
from tests.cli.test_settings import SCHEMA, columns_of, dataset_of, from_command_line, unsolved
from tests.ui.privacy.test_form import DATASET, VALUES
from tests.ui.privacy.test_step import TAB
from tests.ui.tabs import confirm

# A preview belongs to the settings and to the confirmed data set that it was made for.


FIRST = PrivacyForm.read(*VALUES)
LATER = replace(FIRST, epsilon=2.0)
VOTE = replace(FIRST, recipe=RecipeForm("vote", score=True))
SPEED = ModelSpeed(position=1e-3, row=1e-3, step=1e-3)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    made, real = itertools.count(), privacy_state.preview

    def counted(request: Any, speed: Any) -> Any:
        return real(request, speed) if request.stages else SimpleNamespace(number=next(made), seconds=1.0)

    monkeypatch.setattr(privacy_state, "preview", counted)
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


def test_a_run_and_the_screen_calibrate_the_same_settings_once(session: Session, monkeypatch: pytest.MonkeyPatch):
    state, calm, entered, second = session.of(PrivacyState), privacy_state.preview, threading.Event(), threading.Event()

    def slow(*given: Any) -> Any:
        (second if entered.is_set() else entered).set()
        second.wait(0.3)
        return calm(*given)

    monkeypatch.setattr(privacy_state, "preview", slow)
    with ThreadPoolExecutor() as pool:
        run = pool.submit(state.calibrate, FIRST, None)
        assert entered.wait(10)
        assert pool.submit(state.look, FIRST, None).result() is run.result()
    assert not second.is_set()


def test_what_was_overtaken_while_it_waited_is_not_calibrated_for_the_screen(
    session: Session, monkeypatch: pytest.MonkeyPatch
):
    state = session.of(PrivacyState)

    @contextmanager
    def waiting() -> Iterator[None]:
        monkeypatch.setattr(state, "_calibrating", nullcontext())
        later = state.look(LATER, None)
        assert later is not None
        assert later is state.planned
        monkeypatch.setattr(privacy_state, "preview", lambda *_: pytest.fail("calibrated in vain"))
        yield

    monkeypatch.setattr(state, "_calibrating", waiting())
    assert state.look(FIRST, None) is None
    assert state.planned is not None
    assert state.planned.form is LATER


def test_a_run_that_waited_is_of_the_data_that_were_there_when_it_was_asked_for(
    session: Session, monkeypatch: pytest.MonkeyPatch
):
    state, before = session.of(PrivacyState), session.of(DataState).confirmed

    @contextmanager
    def waiting() -> Iterator[None]:
        monkeypatch.setattr(state, "_calibrating", nullcontext())
        confirm(session, DATASET)
        state.look(FIRST, None)
        yield

    monkeypatch.setattr(state, "_calibrating", waiting())
    assert state.calibrate(FIRST, None).confirmed is before
    assert state.planned is not None
    assert state.planned.confirmed is session.of(DataState).confirmed is not before


def test_settings_that_cannot_be_used_leave_no_preview(session: Session, monkeypatch: pytest.MonkeyPatch):
    state = session.of(PrivacyState)
    state.calibrate(FIRST, None)

    def refused(*_: Any) -> Any:
        raise UsageError("No noise meets this.")

    monkeypatch.setattr(privacy_state, "preview", refused)
    with pytest.raises(UsageError):
        state.calibrate(LATER, None)
    assert state.planned is None


def test_both_kinds_of_run_are_planned_in_one_place(session: Session, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    state, confirmed = session.of(PrivacyState), session.of(DataState).confirmed
    assert confirmed is not None
    made = state.calibrate(VOTE, None)
    assert state.planned is made
    assert made.request == VOTE.spec(confirmed.dataset).staged(confirmed.dataset)
    assert made.claim.epsilon == made.charge == pytest.approx(1.0)
    assert state.time(SPEED) is state.planned is not made
    assert state.planned.preview.seconds == predicted_seconds(
        VOTE.spec(confirmed.dataset).staged(confirmed.dataset), SPEED
    )
    assert made.parts == {}
    assert list(state.planned.parts) == [None, *made.request.recipe.stages]
    assert sum(state.planned.parts.values()) == pytest.approx(state.planned.preview.seconds)


def test_durations_follow_the_model(session: Session):
    state = session.of(PrivacyState)
    first = state.calibrate(VOTE, SPEED).preview.seconds
    assert state.time(SPEED) is None
    assert state.time(None).preview.seconds is None  # while another one is loaded
    twice = state.time(SPEED.scaled(2.0))
    embedded = predicted_seconds(twice.request, ModelSpeed(0, 0, 0, embedded=SPEED.embedded))
    assert twice.preview.seconds == pytest.approx(2 * first - embedded), "the embedding model stays the same"
    assert state.planned is twice
    assert state.calibrate(VOTE, SPEED).preview.seconds == first


def test_another_preset_is_another_run(session: Session):
    state = session.of(PrivacyState)
    voted = state.calibrate(VOTE, None)
    assert state.calibrate(FIRST, None) is state.planned is not voted
    assert isinstance(voted.request, RecipeRequest)


def test_stages_that_cannot_be_used_leave_no_preview(session: Session):
    state = session.of(PrivacyState)
    state.calibrate(VOTE, None)
    too_much = Stages("roles", 8, 1, 3, 40, (0.0, 0.9, 0.9, 0.1, 0.1))
    with pytest.raises(UsageError, match="more than 1"):
        state.calibrate(replace(VOTE, recipe=replace(VOTE.recipe, stages=too_much)), None)
    assert state.planned is None
    assert not gate(session).done


def test_counting_is_charged_once(session: Session):
    measured = MeasuredSizes({"a": 70, "b": 80}, 0.25, 1e-9, fingerprint(DATASET).content)
    confirm(session, DATASET, measured)
    made = session.of(PrivacyState).calibrate(VOTE, None)
    assert made.claim.epsilon == pytest.approx(1.0)
    assert made.charge == pytest.approx(0.75)


# The app, the command line and Python plan the same run where nobody says otherwise.

LABELS = ("Yes", "No")
REQUIRED = "epsilon: 1\ndelta: 1e-5\nsizes: counted\nname: my notes\nlabels: "


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.csv"
    rows = [f"text {i},{'Yes' if i % 3 else 'No'},p{i % 61},answer {i}" for i in range(150)]
    path.write_text("the text,topic,who,answer\n" + "\n".join(rows), encoding="utf-8")
    return path


def shown(component: Any, update: Any) -> Any:
    """What a component holds after an update: of one that says nothing about the value, what it held before."""
    return getattr(update, "constructor_args", {"value": update}).get("value", component.value)


def planned_in_the_app(step: PrivacyStep, columns: Columns, *labels: str) -> SynthesisRequest | RecipeRequest:
    """The request of step 2 as it stands once step 1 is confirmed."""
    dataset = dataset_of(columns, *labels)
    step._app.session(TAB).of(DataState).confirm(Confirmed(columns, dataset))
    suggested = step._suggest(TAB)
    form = PrivacyForm.read(*(shown(each, suggested.get(each, each.value)) for each in step.form))
    form = replace(form, epsilon=1.0, delta=1e-5)  # which no other end fills in
    if form.recipe.in_stages:
        return form.spec(dataset).staged(dataset)
    return form.spec(dataset, schema=columns.records.schema if columns.records else None).writing(dataset)


def settled(request: SynthesisRequest | RecipeRequest, app: SynthesisRequest | RecipeRequest) -> Any:
    """A request before calibration, in the app's words: no other end may take a prompt's words from a list."""
    named = replace(request, template=app.template)
    if isinstance(named, RecipeRequest) and named.written is not None:
        named = replace(named, written=replace(named.written, template=app.template))
    return unsolved(named)


def planned_in_python(file: Path, monkeypatch: pytest.MonkeyPatch, user: str | None) -> RecipeRequest:
    """The request that `api.plan` calibrates."""
    monkeypatch.setattr(api, "preview", lambda request: request)
    data = api.load(file, LABELS, text="the text", label="topic", user=user, name="my notes")
    return api.plan(data, sizes="counted", epsilon=1.0, delta=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("user", [None, "who"])
def test_rows_with_labels_are_planned_alike_at_all_ends(step, file, monkeypatch, user):
    tab = step._app.session(TAB)
    app = planned_in_the_app(step, columns_of(file, ColumnMapping("the text", "topic", user), session=tab), *LABELS)
    assert isinstance(app, RecipeRequest)
    assert (app.recipe.kind, app.written.plan.tokens, app.written.candidates) == (Kind.BOTH, 24, 16)
    assert app.written.plan.subsets == min(app.sizes.values()) < 100

    unit = f"unit-column: {user}\n" if user else ""
    columns = f"{unit}text-column: the text\nlabel-column: topic\n"
    line, _ = from_command_line(f"{REQUIRED}'Yes,No'\n{columns}", file)
    assert settled(line, app) == unsolved(app)

    python = planned_in_python(file, monkeypatch, user)
    assert settled(python, app) == unsolved(app)


@pytest.mark.slow
def test_other_rows_are_planned_alike_in_the_app_and_on_the_command_line(step, file):
    schema = file.with_name("schema.json")
    schema.write_text(json.dumps(SCHEMA.document), encoding="utf-8")
    tab = step._app.session(TAB)
    answers = {"kind": "Question", "mapping": ColumnMapping("the text", "answer")}
    records = {"records": Records("Note", SCHEMA), "mapping": ColumnMapping("the text", "answer")}
    alone = {"kind": "Letter", "mapping": ColumnMapping("the text", KIND)}
    for rows, kind, own in (
        (records, "Note", f"schema: {schema}\n"),
        (answers, "Question", "text-column: the text\noutput-column: answer\noutput-field: Answer\n"),
        (alone, "Letter", "text-column: the text\nlabel-column: ''\n"),
    ):
        app = planned_in_the_app(step, columns_of(file, session=tab, **rows), kind)
        line, _ = from_command_line(f"{REQUIRED}{kind}\n{own}", file)
        assert isinstance(line, SynthesisRequest)
        assert settled(line, app) == unsolved(app)
