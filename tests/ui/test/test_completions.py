"""Step 4 with a set of one kind of text: a text is gone on with by every arm, and what needs labels says so."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pandas as pd
import pytest

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Ledgers, Sessions
from dpicl_ui.test.state import TestState
from dpicl_ui.test.step import EvaluationStep
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.table import Table
from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import completing
from mechanisms.records import Demonstration
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set
from tests.ui.tabs import confirm, services
from tests.ui.test.test_elsewhere import LETTERS
from tests.ui.trees import text_of

TAB = cast(gr.Request, SimpleNamespace(session_hash="one", username=None))
NOTES = replace(demo_set(), labels=("Note",)).with_demonstrations((Demonstration("dear team", "Note"),))


@pytest.fixture
def tab(tmp_path) -> tuple[EvaluationStep, TestState]:
    sessions, loader = Sessions(), cast(ModelLoader, SimpleNamespace(model=ToyModel))

    async def built() -> EvaluationStep:
        with gr.Blocks():
            ledgers = cast(Ledgers, SimpleNamespace(of=lambda request: PrivacyLedger(tmp_path)))
            return EvaluationStep(services(sessions, ledgers, loader))

    state = sessions.of(TAB).of(TestState)
    state.load(NOTES)
    return asyncio.run(built()), state


def test_a_text_is_gone_on_with_by_every_arm(tab: Any):
    step, _ = tab
    shown = step._show_set(TAB)
    assert (shown[step.ask].value, shown[step.query].placeholder) == ("Complete", "Type how a text begins")
    assert "how a text goes on" in text_of(shown[step.subject])
    *_, last = step._ask("the parcel", False, TAB)
    [own] = completing(ToyModel(), NOTES, NOTES.demonstrations).answers(["the parcel"])
    words = text_of(last[step.answer])
    assert own in words
    assert all(name in words for name in ("Zero-shot", "Public only", "Your demonstrations"))


def test_an_attack_on_it_marks_no_row_of_labelled_data(tab: Any):
    step, state = tab
    session = step._app.session(TAB)
    confirm(session, LETTERS)
    state.load(NOTES)
    state.table = Table(pd.DataFrame({"text": ["a", "b"], "label": ["News", "Sport"]}))
    with pytest.raises(UsageError, match="texts with labels"):
        list(step.attack._attack("text", "label", True, TAB))
    assert step.attack._app.ledger(TAB).rows.disclosures(fingerprint(LETTERS)) == ()


def test_what_needs_labels_says_so(tab: Any):
    step, state = tab
    state.table = Table(pd.DataFrame({"text": ["a"], "label": ["Note"]}))
    with pytest.raises(UsageError, match="on the command line"):
        list(step.measurement._measure("text", "label", 10, False, False, TAB))
    with pytest.raises(UsageError, match="on the command line"):
        _ = state.classifying
