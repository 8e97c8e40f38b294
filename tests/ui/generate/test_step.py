"""Step 3 without a run, and its stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.guard import Line
from dpicl_ui.frame.sessions import CuratorLedger, Session, Sessions
from dpicl_ui.generate import step as module
from dpicl_ui.generate.pace import Pace
from dpicl_ui.generate.run_view import RecipeView, RunView
from dpicl_ui.generate.state import GenerateState, Run
from dpicl_ui.generate.step import GenerateStep
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.accounting import PrivacyLedger
from mechanisms.runs.events import Drafting
from mechanisms.runs.recipe import Stage
from mechanisms.runs.run_file import from_lines
from tests.runs.runs import file_of
from tests.ui.generate.recipe_recording import STORIES
from tests.ui.tabs import services
from tests.ui.trees import text_of

# What stands beside a run that has just begun.


DRAFTS = [Drafting("News", 1, 2), Drafting("Sport", 2, 2)]
FORECAST = {None: 20.0, **dict.fromkeys(Stage, 40.0)}


@pytest.fixture
def step(tmp_path: Path) -> GenerateStep:
    async def built() -> GenerateStep:
        with gr.Blocks() as page:
            app = services(Sessions(), CuratorLedger(PrivacyLedger(tmp_path)))
            return GenerateStep(app, PrivacyStep(app), Line(page))

    return asyncio.run(built())


def test_no_button_leads_to_an_older_set_while_one_is_written(step: GenerateStep):
    begun = step._begun()
    assert begun[step.test].visible == "hidden"
    assert begun[step.export].visible == "hidden"


def test_the_budget_stays_on_the_page_until_a_run_is_charged(step: GenerateStep, tmp_path: Path):
    drafting = RecipeView(RunView(phase="waiting"))
    assert step.budget not in step._begun()
    assert step.budget not in step._shown(drafting, whole=True)
    snapshot = PrivacyLedger(tmp_path).snapshot("a", "record")
    assert step._shown(RecipeView(RunView(phase="running", budget=snapshot)), whole=True)[step.budget]


class Pressed:
    """A button for files, elsewhere than in step 3."""

    def upload(self, handler: Any, *_: Any, **__: Any) -> None:
        self.chosen = handler


@pytest.mark.parametrize("readable", [True, False])
def test_nothing_turns_for_ever_after_a_saved_run_was_chosen_elsewhere(step: GenerateStep, monkeypatch, readable: bool):
    button, where, shown = Pressed(), gr.HTML(), {}
    if readable:
        monkeypatch.setattr("dpicl_ui.generate.step.loaded", lambda _: from_lines(file_of("tokens")))
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


def heard(step: GenerateStep, monkeypatch: pytest.MonkeyPatch, story: list[Any], pause: float) -> dict[int, Any]:
    """What is left of a run, second by second, for who waits: its drafts take 40 s, each further event a `pause`."""
    now, left = [0.0], dict[int, Any]()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(module, "_TO_BE_SEEN", 0.0)
    monkeypatch.setattr(module, "_foreseen", lambda *_: Pace(FORECAST))

    def begin(_: Run) -> Iterator[Any]:
        for event in story:
            yield event
            until = now[0] + (20.0 if isinstance(event, Drafting) else pause)
            left.update((second, step.waiting._left(second)) for second in range(int(now[0]), int(until)))
            now[0] = until

    tab: Any = SimpleNamespace(session_hash="tab", username=None)
    list(step._followed(step._app.sessions.of(tab), step._app.ledgers.of(tab), Run(), begin, False))
    return left


@pytest.mark.parametrize("story", sorted(STORIES))
def test_how_long_private_stages_and_tokens_take_is_not_told_to_who_waits(
    story: str, step: GenerateStep, monkeypatch: pytest.MonkeyPatch
):
    """It follows from the rows. The first drafts are public, and here twice as slow as foreseen."""
    events = STORIES[story] if story == "tokens" else [*DRAFTS, *STORIES[story]]
    quick, slow = (heard(step, monkeypatch, events, pause) for pause in (1.0, 7.0))
    assert {second: slow[second] for second in quick} == quick
    assert len(quick) >= len(events) - 1
    last, whole = max(quick), sum(FORECAST.values())
    told = quick[last] + last
    if story == "tokens":
        assert told == pytest.approx(whole)
    else:  # twice as slow in what is a small part of the whole
        assert whole < told < 4 / 3 * whole


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
