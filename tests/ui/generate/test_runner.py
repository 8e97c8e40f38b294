"""A run in a tab, of either kind: what is recorded, what a stop keeps, and what may be exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.services import Session
from dpicl_ui.generate import step
from dpicl_ui.generate.runner import Runner
from dpicl_ui.generate.state import GenerateState, WrittenSet, status
from dpicl_ui.generate.step import GenerateStep
from dpicl_ui.privacy.state import PrivacyState
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.accounting import fingerprint
from mechanisms.errors import StudioError
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import PrivateDiagnostics, RunStopped, SetSoFar, StageProgress
from mechanisms.runs.spec import VOTE, RunSpec
from tests.ui.generate.recording import CLEAN, STORIES, plan
from tests.ui.tabs import confirm, in_page, owned

LOADER, SPEC = ModelLoader("none"), RunSpec()
DATASET = Dataset("d", ("News", "Sport"), tuple(Record(f"text {i}", "News" if i % 2 else "Sport") for i in range(20)))


class Told(Runner):
    """Is driven by a story; closing it is noticed."""

    def __init__(self, story: list[Any]) -> None:
        super().__init__(LOADER, EmbedderLoader(LOADER))
        self.story, self.closed = story, False

    def _models(self, plan: Any) -> Any:
        return self, None

    def told(self) -> Iterator[Any]:
        try:
            yield from self.story
        finally:
            self.closed = True


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    tab = Session()
    confirm(tab, DATASET)
    planned = SimpleNamespace(confirmed=tab.of(DataState).confirmed, plan=plan())
    monkeypatch.setattr(PrivacyState, "calibrate", lambda *_: planned)
    monkeypatch.setattr("mechanisms.runs.driver.run", lambda plan, data, model, *_: model.told())
    return tab


def run(session: Session, story: list[Any], stop_after: Any = None) -> list[Any]:
    """The events of a story; the curator presses Stop when one of a type was seen."""
    runner, state = Told(story), session.of(GenerateState)
    seen: list[Any] = []
    for event in runner.events(session, None, state.begin(), SPEC, False):
        seen.append(event)
        if stop_after and isinstance(event, stop_after):
            state.stop()
    assert runner.closed
    return seen


@pytest.mark.parametrize("story", STORIES)
def test_a_finished_run_leaves_its_set(session: Session, story: str):
    assert run(session, STORIES[story]) == STORIES[story]
    made = session.of(GenerateState).made
    assert made is not None
    assert made.demo_set == STORIES[story][-1].demo_set
    assert status(session).done


@pytest.mark.parametrize("story", STORIES)
def test_a_stop_after_any_event_loses_nothing_that_was_released(session: Session, story: str):
    events = STORIES[story]
    for place, last in enumerate(events[:-1]):
        runner, state = Told(events), session.of(GenerateState)
        state.made = None
        *_, ended = stopped_at(runner, session, last)
        assert isinstance(ended, RunStopped)
        known = [each.demo_set for each in events[: place + 1] if isinstance(each, SetSoFar)]
        assert ended.demo_set == (known[-1] if known else events[0].demo_set)
        assert state.made == (WrittenSet(known[-1], fingerprint(DATASET)) if known else None)


def stopped_at(runner: Runner, session: Session, last: Any) -> Iterator[Any]:
    state = session.of(GenerateState)
    for event in runner.events(session, None, state.begin(), SPEC, False):
        yield event
        if event is last:
            state.stop()


class Gone(Told):
    """A stranger's ledger went with the tab, so that nothing can be settled in it."""

    def told(self) -> Iterator[Any]:
        try:
            yield from super().told()
        finally:
            raise StudioError("there is no such file")


@pytest.mark.parametrize("left", [True, False])
def test_a_tab_that_was_closed_is_told_nothing_and_an_open_one_is(session: Session, left: bool):
    runner, state = Gone(STORIES["both"]), session.of(GenerateState)
    events = runner.events(session, None, state.begin(), SPEC, False)
    next(events)
    if left:
        state.close()
    with nullcontext() if left else pytest.raises(StudioError):
        events.close()


@pytest.fixture
def generate(tmp_path: Path) -> GenerateStep:
    return in_page(lambda: GenerateStep(app := owned(tmp_path), PrivacyStep(app)))


def watched() -> Iterator[Any]:
    """The longest story as its curator sees it."""
    for event in STORIES["both"]:
        yield event
        if getattr(event, "step", None) == 1 and event.label == CLEAN.label:
            yield CLEAN
        yield StageProgress(VOTE, 0.123)


def test_what_only_the_curator_sees_is_never_recorded(
    generate: GenerateStep, session: Session, monkeypatch: pytest.MonkeyPatch
):
    story = list(watched())
    assert any(isinstance(event, PrivateDiagnostics) for event in story)
    generate._runner = Told(story)
    monkeypatch.setattr(generate._app.sessions, "of", lambda _: session)
    monkeypatch.setattr(PrivacyStep, "spec", lambda *_: SPEC)
    monkeypatch.setattr(step, "UpdateLimit", lambda *_: SimpleNamespace(due=lambda: True))
    request: Any = SimpleNamespace(session_hash="tab", username=None)
    updates = list(generate._pressed({generate.curator: True, generate.replacing.press: ""}, request))
    assert session.of(GenerateState).run.recording == STORIES["both"]
    assert "0.123" in str([update.get(generate.stages) for update in updates])
    looked = updates[-1][generate.replay.bar]
    assert "0.123" not in str(looked)
    charts = [each["chart"] for each in looked["parts"]["live"] if each]
    assert charts
    assert all(bar["clean"] is None for chart in charts for bar in chart["bars"])


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
