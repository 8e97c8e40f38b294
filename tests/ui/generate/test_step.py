"""Step 3 without a run, and its stops."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Session
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.generate.step import GenerateStep
from dpicl_ui.page import build
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.accounting import PrivacyLedger
from tests.ui.generate.recording import recording
from tests.ui.tabs import in_page, owned
from tests.ui.trees import text_of

# What stands beside a run that has just begun.


@pytest.fixture
def step(tmp_path: Path) -> GenerateStep:
    return in_page(lambda: GenerateStep(app := owned(tmp_path), PrivacyStep(app)))


def test_a_press_is_answered_at_once_and_the_run_it_begins_waits_in_the_models_queue(tmp_path: Path):
    async def made() -> gr.Blocks:
        return build(CuratorLedger(PrivacyLedger(tmp_path)), ModelLoader("none"))

    page = asyncio.run(made())
    [button] = [each for each in page.blocks.values() if each.elem_id == "generate"]
    [press] = [each for each in page.fns.values() if (button._id, "click") in each.targets]
    assert not press.queue
    begins = {(each._id, "change") for each in press.outputs}
    runs = [each for each in page.fns.values() if begins & set(each.targets)]
    assert [(each.queue, each.concurrency_id, each.trigger_mode) for each in runs] == [(True, "model", "once")]
    assert max(len(each.inputs) for each in runs) > 10


class Pressed:
    """A button for files, elsewhere than in step 3."""

    def upload(self, handler: Any, *_: Any, **__: Any) -> None:
        self.chosen = handler


@pytest.mark.parametrize("readable", [True, False])
def test_nothing_turns_for_ever_after_a_saved_run_was_chosen_elsewhere(step: GenerateStep, monkeypatch, readable: bool):
    button, where, shown = Pressed(), gr.HTML(), {}
    if readable:
        monkeypatch.setattr("dpicl_ui.generate.step.loaded", lambda _: recording())
    step.loads(button, where)
    turned: list[Any] = []
    for update in button.chosen("nowhere", SimpleNamespace(username=None, session_hash="tab")):
        shown |= update
        turned += [place for place, tree in update.items() if isinstance(tree, list) and "Reading" in text_of(tree)]
    said = {place: text_of(shown.get(place) or []) for place in (where, step.notice)}
    assert turned == [where]
    assert not any("Reading" in each for each in said.values())
    assert ("A saved run" in said[step.notice]) is readable
    assert ("did not arrive" in said[where]) is not readable


# A stop reaches the run that it was meant for.


def test_a_stop_reaches_the_run_under_way_and_no_other():
    state = Session().of(GenerateState)
    state.stop()  # before there is one
    first = state.begin()
    state.stop()
    second = state.begin()
    assert first.stop.is_set()
    assert not second.stop.is_set()


def test_a_closed_tab_stops_its_run():
    session = Session()
    run = session.of(GenerateState).begin()
    session.close()
    assert run.stop.is_set()
