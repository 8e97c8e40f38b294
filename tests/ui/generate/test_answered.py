"""A run that writes texts with answers, from the confirmed data to the file that is saved, with the toy model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np
import pandas as pd
import pytest

from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.export import DEMO_SET, ExportStep
from dpicl_ui.frame.model_loader import EmbedderLoader, Loaded, ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Session, Sessions
from dpicl_ui.generate.cards import demonstration, finished
from dpicl_ui.generate.charts import live
from dpicl_ui.generate.run_view import replay_recipe
from dpicl_ui.generate.runner import Runner
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.state import PrivacyState
from dpicl_ui.test.state import TestState
from dpicl_ui.test.step import EvaluationStep
from mechanisms.accounting import PrivacyLedger
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import loads, longest_output
from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import answering
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.verification import verify
from tests.cli.test_outputs import Plain
from tests.toy_model import VOCABULARY
from tests.ui.generate.recording import HOSTILE, demo_set
from tests.ui.privacy.test_form import DATASET, VALUES
from tests.ui.tabs import confirm, downloaded, services
from tests.ui.test_drawing import tags
from tests.ui.trees import text_of

TAB: Any = SimpleNamespace(username=None, session_hash="tab")
SECRET = "zanzibar"


class Spaceless(Plain):
    """Writes no spaces: an answer of nothing else is none, and came once in 9,000 times."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        plain = session._row
        session._row = lambda tokens: np.where(np.arange(VOCABULARY) == ord(" "), -100.0, plain(tokens))
        return session


def confirm_answered(session: Session) -> Confirmed:
    state = session.of(DataState)
    rows = [(f"who was it {i}", f"{SECRET}{i}") for i in range(30)]
    state.open(Table(pd.DataFrame(rows, columns=["question", "said"])), ("Question", "Answer"))
    columns = state.read_answered("Query", ColumnMapping("question", "said"))
    state.confirm(confirmed := Confirmed(columns, to_dataset(columns.table, columns.mapping, "asked", ("Query",))))
    return confirmed


def form(answers: str) -> PrivacyForm:
    values = [*VALUES]
    values[7:9] = [12, 2]  # tokens, demonstrations
    values[12:17] = ["Answer each.", "Question", "Answer", answers, 4]
    return PrivacyForm.read(*values)


def written(folder: Path, answers: str) -> Any:
    sessions, ledger = Sessions(), PrivacyLedger(folder)
    session, loader = sessions.of(TAB), ModelLoader("none")
    loader._loaded = Loaded(Spaceless(), ModelSpeed(1e-3, 1e-3, 1e-3), 0)
    loader._done.set()
    confirm_answered(session)
    run = session.of(GenerateState).begin()
    runner = Runner(loader, EmbedderLoader(loader))
    events = list(runner.events(session, ledger, run, form(answers), False))
    return SimpleNamespace(sessions=sessions, session=session, ledger=ledger, loader=loader, events=events)


@pytest.fixture(scope="module", params=["private", "model"])
def tab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tab in which two texts with answers were written."""
    made = written(tmp_path_factory.mktemp("home"), request.param)
    made.answers = request.param
    return made


def step_of(tab: Any, step: Any) -> Any:
    async def built() -> Any:
        with gr.Blocks():
            return step(services(tab.sessions, CuratorLedger(tab.ledger), tab.loader))

    return asyncio.run(built())


@pytest.fixture(scope="module")
def testing(tab: Any) -> EvaluationStep:
    made: EvaluationStep = step_of(tab, EvaluationStep)
    made._show_set(TAB)
    return made


@pytest.mark.slow
def test_texts_and_answers_are_written_and_the_certificate_says_by_whom(tab):
    made = tab.session.of(GenerateState).made.demo_set
    assert len(made.demonstrations) == 2
    assert all(each.output for each in made.demonstrations)
    assert made.certificate.parameters["outputs"]["answers"] == tab.answers
    assert (made.template.text, made.template.output, made.labels) == ("Question", "Answer", ("Query",))
    spent = tab.ledger.snapshot("asked", "record").epsilon
    assert spent == pytest.approx(made.certificate.claim.epsilon)


@pytest.mark.slow
def test_the_running_text_shows_both_fields_and_marks_what_was_decided(tab):
    shown = []
    for place, event in enumerate(tab.events):
        if isinstance(event, TokenReleased):
            screen = live(replay_recipe(tab.events[: place + 1]).run)
            shown.append(screen["text"] + screen["fresh"])
            assert len(screen["fresh"]) <= 1  # the toy's tokens are single bytes
            assert screen["count"].startswith("charged token")
    assert any("\nAnswer:" in each for each in shown) == (tab.answers == "private")


@pytest.mark.slow
def test_a_finished_card_has_the_text_and_the_answer_by_name(tab):
    cards = finished(replay_recipe(tab.events))
    words = text_of(cards)
    for each in tab.session.of(GenerateState).made.demo_set.demonstrations:
        assert each.text in words
        assert each.output in words
    assert words.count("Question") == words.count("Answer") == 2


def test_a_text_and_its_answer_are_drawn_as_text_nodes():
    made = demo_set()
    object.__setattr__(made, "template", PromptTemplate("Answer.", "Text", "Kind", HOSTILE))
    drawn = demonstration(Demonstration(HOSTILE, HOSTILE, HOSTILE), made)
    assert tags([drawn]) <= {"dl", "dt", "dd", "div", "span"}
    assert text_of(drawn).count(HOSTILE) == 4


@pytest.mark.slow
def test_the_set_is_shown_and_saved_with_its_answers(tab):
    step = step_of(tab, ExportStep)
    certificate, content, *_ = step._show(TAB)
    made = tab.session.of(GenerateState).made.demo_set
    assert all(each.output in text_of(content) for each in made.demonstrations)
    saved = loads(downloaded(step._save(DEMO_SET, TAB)[step.sink]))
    assert saved.demonstrations == made.demonstrations
    assert verify(saved).problems == ()
    assert SECRET not in text_of(certificate)


@pytest.mark.slow
def test_a_query_is_answered_with_text_by_every_arm(tab, testing):
    shown = testing._show_set(TAB)
    assert shown[testing.ask].value == "Answer"
    assert "answers: they are measured as text" in text_of(shown[testing.subject])
    *_, last = testing._ask("who knows", False, TAB)
    made = tab.session.of(GenerateState).made.demo_set
    model = tab.loader.model()
    [own] = answering(model, made.template, made.demonstrations, longest_output(made)).answers(["who knows"])
    words = text_of(last[testing.answer])
    assert own in words
    assert all(name in words for name in ("Zero-shot", "Public only", "Your demonstrations"))


def measured(testing: EvaluationStep, own_rows: bool = False) -> Iterator[dict[Any, Any]]:
    return testing.measurement._measure("question", "said", 10, own_rows, False, TAB)


@pytest.mark.slow
def test_a_file_with_answers_is_measured_with_intervals(tab, testing):
    made, model = tab.session.of(GenerateState).made.demo_set, tab.loader.model()
    [own] = answering(model, made.template, made.demonstrations, longest_output(made)).answers(["who knows"])
    state = tab.session.of(TestState)
    rows = [("who knows", own), ("who knows", "something else entirely"), ("who knows", "")]
    state.table = Table(pd.DataFrame(rows, columns=["question", "said"]))
    with pytest.raises(UsageError, match="1 of 3 rows is left out: 1 with an empty output"):
        list(measured(testing))
    state.allow_left_out = True
    updates = list(measured(testing))
    scored = state.scored
    assert [card.name for card in scored.answers] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]
    assert (scored.answers[-1].exact.correct, scored.answers[-1].exact.total) == (1, 2)
    words = [text_of(update[testing.measurement.scores]) for update in updates if testing.measurement.scores in update]
    assert "50% (" in " ".join(words[-1].split())
    assert "F1" in words[-1]
    assert not any(update.get(testing.measurement.plot) for update in updates)


@pytest.mark.slow
def test_private_rows_are_not_measured_unasked(tab, testing):
    state = tab.session.of(TestState)
    state.table = tab.session.of(DataState).file.table
    with closing(measured(testing)) as measuring, pytest.raises(UsageError, match="shares rows with"):
        list(measuring)


@pytest.mark.slow
def test_what_asks_for_labels_says_in_one_line_that_there_are_none(tab, testing):
    tab.session.of(TestState).table = Table(pd.DataFrame([("a", "b")], columns=["question", "said"]))
    assert "means of labels" in text_of(testing.prototypes._look(0.5, TAB)[testing.prototypes.cost])
    with pytest.raises(UsageError, match="means of labels"):
        testing.prototypes._order(0.5, TAB)
    with pytest.raises(UsageError, match="have answers"):
        _ = tab.session.of(TestState).classifying


def test_votes_on_drafts_are_refused_for_answers():
    session = Session()
    confirm_answered(session)
    values = [*VALUES]
    values[values.index("tokens")] = "vote"
    with pytest.raises(UsageError, match="know no answers"):
        session.of(PrivacyState).calibrate(PrivacyForm.read(*values), None)
    confirm(session, DATASET)
    assert session.of(PrivacyState).calibrate(PrivacyForm.read(*values), None) is not None
