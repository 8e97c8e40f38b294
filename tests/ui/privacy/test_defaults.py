"""The app, the command line and Python plan the same run where nobody says otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpicl_ui.data.state import Columns, Confirmed, DataState, Records
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms import api
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sources import KIND
from mechanisms.runs.recipe import Kind
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from tests.cli.test_settings import SCHEMA, columns_of, dataset_of, from_command_line, unsolved
from tests.ui.privacy.test_step import TAB

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
