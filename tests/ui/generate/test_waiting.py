"""Who waits behind somebody else's run reads a place and seconds, and how a run starts stays as it is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.guard import Place
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Sessions
from dpicl_ui.generate import pace as module
from dpicl_ui.generate.pace import Waiting, waiting
from dpicl_ui.page import build
from mechanisms.accounting import PrivacyLedger
from tests.ui.tabs import services
from tests.ui.trees import text_of

TAB: Any = SimpleNamespace(session_hash="tab", username=None)


@pytest.mark.parametrize(
    ("place", "left", "said"),
    [
        (Place(2, False), 40.0, "Somebody else's run is before yours: place 2, about 40 seconds"),
        (Place(2, False), None, "Somebody else's run is before yours: place 2"),
        (Place(2, False), 2.0, "Somebody else's run is before yours: place 2, a few seconds"),
        (Place(2, True), 40.0, "Your own work with the model comes before this: place 2, about 40 seconds"),
        (Place(3, False), 40.0, "Other runs are before yours: place 3, at least about 40 seconds"),
        (Place(3, False), None, "Other runs are before yours: place 3"),
        (Place(1, True), None, "Your run is next"),
    ],
)
def test_no_more_is_said_than_is_known(place: Place, left: float | None, said: str):
    assert text_of(waiting(place, left)) == said


class Standing:
    """A line in which the tab has a place, until it leaves."""

    def __init__(self) -> None:
        self.now: Place | None = Place(2, own=False)

    async def place(self, request: Any, press: int) -> Place | None:
        return self.now

    async def leave(self, request: Any, press: int) -> bool:
        was, self.now = self.now, None
        return was is not None


class Watched:
    """The handlers beside a button, at a time that stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.line, self.words = 100.0, Standing(), list[Any]()
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))

        async def built() -> Waiting:
            with gr.Blocks():
                button = gr.Button()
                made = Waiting(services(Sessions(), None), self.line, button.click)  # type: ignore[arg-type]
                made.watch(button.click(lambda: None))
                return made

        self.waiting = asyncio.run(built())

    def look(self) -> dict[Any, Any]:
        return asyncio.run(self.waiting._look(TAB))

    def said(self) -> str:
        self.words = self.look().get(self.waiting.words, self.words)
        return text_of(self.words)

    def leave(self) -> None:
        asyncio.run(self.waiting._leave(TAB))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_what_is_left_runs_down_and_is_not_said_once_it_is_over(watched: Watched):
    assert "about" not in watched.said()
    watched.waiting.tell(600.0, 100.0)
    assert "about 10 minutes" in watched.said()
    watched.now = 400.0
    assert "about 5 minutes" in watched.said()
    watched.now = 701.0
    assert watched.said().endswith("place 2")
    watched.waiting.tell(600.0, 701.0)
    watched.waiting.tell(None, 702.0)
    assert watched.said().endswith("place 2")


def test_the_same_words_are_not_said_twice_but_after_another_press(watched: Watched):
    place = watched.line.now
    assert watched.waiting.words in watched.look()
    assert watched.waiting.words not in watched.look()
    watched.line.now = None
    watched.look()
    watched.line.now = place
    assert watched.waiting.words in watched.look()


def test_nobody_who_does_not_wait_reads_anything_and_the_clock_stops(watched: Watched):
    watched.line.now = None
    watched.waiting.tell(600.0, 100.0)
    update = watched.look()
    assert update[watched.waiting.words] == []
    assert not update[watched.waiting.leave].visible
    assert not update[watched.waiting._clock].active


def test_who_left_reads_that_nothing_is_spent_and_reads_it_once(watched: Watched):
    watched.leave()
    assert "nothing is spent" in watched.said()
    assert watched.said() == ""


def test_who_came_too_late_to_leave_does_not_read_that_they_left(watched: Watched):
    watched.line.now = None
    watched.leave()
    assert watched.said() == ""


def test_a_press_is_answered_at_once_and_the_run_it_begins_starts_behind_a_clock_that_asks_no_server(tmp_path):
    async def made() -> gr.Blocks:
        return build(CuratorLedger(PrivacyLedger(tmp_path)), ModelLoader("none"))

    page = asyncio.run(made())
    [button] = [each for each in page.blocks.values() if each.elem_id == "generate"]
    [press] = [each for each in page.fns.values() if (button._id, "click") in each.targets]
    assert not press.queue
    begins = {(each._id, "change") for each in press.outputs}
    one, other, anew, again = (each for each in page.fns.values() if begins & set(each.targets))
    for clock, run in ((one, anew), (other, again)):
        assert (clock.fn, clock.targets) == (None, run.targets)
        assert clock.js
        assert run.queue
        assert (run.concurrency_id, run.trigger_after, run.trigger_mode) == ("model", None, "once")
    assert len(anew.inputs) > 10
