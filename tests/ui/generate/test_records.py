"""A run that writes records, from the confirmed data to the files that are saved, with the toy model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pandas as pd
import pytest

from dpicl_ui.data.state import Confirmed, DataState, Records
from dpicl_ui.export import DEMO_SET, ExportStep
from dpicl_ui.frame.model_loader import EmbedderLoader, Loaded, ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Session, Sessions
from dpicl_ui.generate.cards import counts, finished, record
from dpicl_ui.generate.charts import live
from dpicl_ui.generate.run_view import replay_recipe
from dpicl_ui.generate.runner import Runner
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.state import PrivacyState
from dpicl_ui.test.state import TestState
from dpicl_ui.test.step import EvaluationStep
from mechanisms.accounting import PrivacyLedger
from mechanisms.data.columns import to_dataset
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import loads
from mechanisms.demos.signature import Signature, check_signature
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
from mechanisms.runs.events import DemoCompleted, TokenReleased
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.verification import verify
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set, recording
from tests.ui.privacy.test_form import DATASET, VALUES
from tests.ui.tabs import confirm, downloaded, services, write
from tests.ui.test_drawing import tags
from tests.ui.trees import text_of

TAB: Any = SimpleNamespace(username=None, session_hash="tab")
HOSTILE = "<img src=x onerror=alert(1)>"
SCHEMA = RecordSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 12},
            HOSTILE: {"enum": ["yes", "no"]},
            "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        },
        "required": ["name", HOSTILE, "tags"],
    }
)


def confirm_records(session: Session) -> Confirmed:
    state = session.of(DataState)
    rows = [(f"name {i}", "yes") for i in range(30)]
    state.open(Table(pd.DataFrame(rows, columns=["name", HOSTILE])), ("Text", "Label"))
    columns = state.read_records(Records("Film", SCHEMA), None, False)
    state.confirm(confirmed := Confirmed(columns, to_dataset(columns.table, columns.mapping, "films", ("Film",))))
    return confirmed


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tab in which two records were written."""
    sessions, ledger = Sessions(), PrivacyLedger(tmp_path_factory.mktemp("home"))
    session, loader = sessions.of(TAB), ModelLoader("none")
    loader._loaded = Loaded(ToyModel(), ModelSpeed(1e-3, 1e-3, 1e-3), 0)
    loader._done.set()
    confirm_records(session)
    values = list(VALUES)
    values[7:9] = [5, 2]  # tokens, demonstrations
    runner = Runner(loader, EmbedderLoader(loader))
    run = session.of(GenerateState).begin()
    events = list(runner.events(session, ledger, run, PrivacyForm.read(*values), False))
    return SimpleNamespace(sessions=sessions, session=session, ledger=ledger, loader=loader, events=events)


@pytest.mark.slow
def test_records_are_written_token_by_token_and_all_are_of_the_schema(tab):
    made = tab.session.of(GenerateState).made.demo_set
    assert len(made.demonstrations) == 2
    assert made.schema == SCHEMA
    assert all(SCHEMA.holds(each.text) for each in made.demonstrations)
    assert "min_tokens" not in made.certificate.parameters
    assert made.template.instruction == "Classify."  # as the form says


@pytest.mark.slow
def test_each_record_says_who_decided_its_tokens(tab):
    view = replay_recipe(tab.events)
    told = {each.number: each for each in tab.events if isinstance(each, DemoCompleted)}
    assert [told[i + 1].tokens for i in range(2)] == counts(view)
    for each in counts(view):
        assert 0 < each.charged <= 5
        assert f"{each.charged} charged, {each.forced} forced by the schema, {each.rest} public" in text_of(
            finished(view)
        )


@pytest.mark.slow
def test_the_screen_marks_the_token_that_was_decided_and_not_what_the_schema_forced(tab):
    for place, event in enumerate(tab.events):
        if isinstance(event, TokenReleased):
            screen = live(replay_recipe(tab.events[: place + 1]).run)
            shown = {screen["text"] + screen["fresh"], *(each["text"] for each in screen["others"])}
            assert event.text in shown
            assert len(screen["fresh"]) <= 1  # the toy's tokens are single bytes
            assert screen["count"].startswith("charged token")


def test_texts_are_told_as_before():
    assert live(replay_recipe(recording()[:3]).run)["count"].startswith("token 1")
    assert set(counts(replay_recipe(recording()))) == {None}
    assert "charged" not in text_of(finished(replay_recipe(recording())))


@pytest.mark.parametrize("text", ["", "{", "[1]", '"a"', "[" * 100_000, HOSTILE])
def test_what_is_no_record_is_drawn_as_it_stands(text):
    assert text_of(record(text)) == text


def test_a_record_is_drawn_as_text_nodes_name_by_name():
    said = {HOSTILE: HOSTILE, "n": 3, "b": True, "nothing": None, "in": {"list": ["a", {"deep": [1]}]}}
    drawn = record(json.dumps(said))
    assert tags(drawn) <= {"dl", "dt", "dd", "div", "ul", "li", "span"}
    words = text_of(drawn)
    for each in (HOSTILE, "n", "3", "true", "null", "list", "a", "deep", "1"):
        assert each in words


def export(tab) -> ExportStep:
    async def built() -> ExportStep:
        with gr.Blocks():
            return ExportStep(services(tab.sessions, CuratorLedger(tab.ledger)))

    return asyncio.run(built())


@pytest.mark.slow
def test_the_set_its_lines_and_its_schema_are_saved(tab, tmp_path: Path):
    step = export(tab)
    files = [step._save(shape, TAB)[step.sink] for shape in (DEMO_SET, "records", "schema")]
    assert len({each["name"] for each in files}) == len({each["ticket"] for each in files}) == 3
    whole, lines, schema = map(downloaded, files)
    assert check_signature(whole) is Signature.VALID
    saved = loads(whole)
    assert verify(saved).problems == ()
    assert RecordSchema.read(schema) == SCHEMA
    assert lines.splitlines() == [each.text for each in saved.demonstrations]
    assert {"records", "schema"} <= offered(step)


def offered(step: ExportStep) -> set[str]:
    [dropdown] = [each for each in step._show(TAB) if isinstance(each, gr.Dropdown)]
    return {name for _, name in dropdown.choices}


def test_texts_have_no_lines_and_no_schema_to_save(tmp_path: Path):
    sessions = Sessions()
    write(sessions.of(TAB), demo_set(Demonstration("A goal.", "Sport")), DATASET)
    step = export(SimpleNamespace(sessions=sessions, ledger=PrivacyLedger(tmp_path)))
    assert not {"records", "schema"} & offered(step)
    for shape in ("records", "schema"):
        with pytest.raises(UsageError, match="no records"):
            step._save(shape, TAB)


@pytest.mark.slow
def test_nothing_is_classified_with_records_and_the_page_says_so(tab):
    async def built() -> EvaluationStep:
        with gr.Blocks():
            return EvaluationStep(services(tab.sessions, CuratorLedger(tab.ledger), tab.loader))

    step = asyncio.run(built())
    assert "which have no labels" in text_of(step._show_set(TAB)[step.subject])
    asking = step._ask("anything", False, TAB)
    next(asking)
    with pytest.raises(UsageError, match="which have no labels"):
        next(asking)
    with pytest.raises(UsageError, match="which have no labels"):
        next(step.measurement._measure("text", "label", 10, False, False, TAB))
    with pytest.raises(UsageError, match="means of labels"):
        step.prototypes._order(0.5, TAB)
    assert "means of labels" in text_of(step.prototypes._look(0.5, TAB)[step.prototypes.cost])
    assert tab.session.of(TestState).scored is None


def test_votes_on_drafts_are_refused_for_records_and_not_for_texts():
    session = Session()
    confirm_records(session)
    values = list(VALUES)
    values[values.index("tokens")] = "vote"
    with pytest.raises(UsageError, match="know no schemas"):
        session.of(PrivacyState).calibrate(PrivacyForm.read(*values), None)
    assert session.of(PrivacyState).planned is None
    confirm(session, DATASET)
    assert session.of(PrivacyState).calibrate(PrivacyForm.read(*values), None) is not None
