"""A run in the app whose tab was closed: it is offered when its data are there again, and goes on for nothing more."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.frame.model_loader import LoadedModel, ModelLoader
from dpicl_ui.frame.services import CuratorLedger, Ledgers, Session, Sessions, TabLedgers
from dpicl_ui.generate.replay import own_run
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.generate.step import GenerateStep
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.accounting import PrivacyLedger
from mechanisms.accounting import ledger as ledger_module
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import DemoCompleted, DemoCutOff, RunCompleted, TokenReleased
from mechanisms.runs.run_file import from_lines, line_of
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.stages.vote import VotesReleased
from mechanisms.runs.work import Speed
from tests.toy_embedder import ToyEmbedder
from tests.ui.tabs import confirm, in_page, services, text_of
from tests.word_model import WordModel

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("any_text_passes")]

DATASET = Dataset("d", ("a", "b"), tuple(Record(f"canary {i}", label) for label in "ab" for i in range(30)))
SPEC = RunSpec.of(sizes="counted", recipe="tokens", shots=2, tokens=4, min_tokens=0, subsets=10)
"""Two texts a label, four tokens each."""
STAGED = RunSpec.of(sizes="counted", recipe="vote", shots=1)


class App:
    """A server with one model, and a fresh tab for each name."""

    def __init__(
        self,
        model: Any = None,
        ledgers: Ledgers | None = None,
        dataset: Dataset = DATASET,
        folder: Path | None = None,
        spec: RunSpec = SPEC,
    ) -> None:
        self.spec = spec
        self.ledger, self.sessions, self.dataset = PrivacyLedger(folder), Sessions(), dataset
        self.loader = ModelLoader("none")
        self.loader._loaded = LoadedModel(model or WordModel(), Speed(1.0, 1.0, 1.0), 0, 0)
        self.loader._done.set()
        self.step = in_page(lambda: self._built(ledgers or CuratorLedger(self.ledger)))
        self.step._privacy.spec = lambda session, values: self.spec
        self.step._runner._embedder = SimpleNamespace(embedder=ToyEmbedder)

    def _built(self, ledgers: Ledgers) -> GenerateStep:
        app = services(ledgers, self.loader, sessions=self.sessions)
        return GenerateStep(app, PrivacyStep(app))

    def tab(self, name: str = "tab", dataset: Dataset | None = None) -> Any:
        request = SimpleNamespace(username=None, session_hash=name)
        confirm(self.sessions.of(request), dataset or self.dataset)
        return request

    def session(self, tab: Any) -> Session:
        return self.sessions.of(tab)

    def generate(self, tab: Any, curator: bool = False) -> Iterator[dict[Any, Any]]:
        return self._pressed(tab, False, curator)

    def go_on(self, tab: Any) -> Iterator[dict[Any, Any]]:
        return self._pressed(tab, True, False)

    def _pressed(self, tab: Any, resume: bool, curator: bool) -> Iterator[dict[Any, Any]]:
        begun = self.step.replacing._begin(self.session(tab).of(GenerateState), resume)[self.step.replacing.press]
        return self.step._pressed({self.step.curator: curator, self.step.replacing.press: begun}, tab)

    def recorded(self, tab: Any) -> list[Any]:
        return self.session(tab).of(GenerateState).run.recording

    def card(self, tab: Any) -> str:
        shown = self.step.cut_off.shown(tab)
        return text_of(shown[self.step.cut_off.words]) if shown[self.step.cut_off.body].visible else ""

    def notice(self, updates: list[dict[Any, Any]]) -> str:
        return text_of([each for update in updates for each in update.get(self.step.notice, [])])

    def journals(self) -> list[Path]:
        return [path for path in self.ledger.folder.rglob("journals/*") if path.is_file()]

    def leave(self, tab: Any) -> str:
        return text_of(self.step.cut_off._discard(tab)[self.step.notice])

    def kept(self) -> list[str]:
        """What the ledger holds of released texts, for runs to go on with."""
        with self.ledger.transaction() as database:
            return [told for (told,) in database.execute("SELECT told FROM released WHERE told <> ''")]

    def charges(self) -> Counter[Any]:
        with self.ledger.transaction() as database:
            return Counter(database.execute("SELECT list, event FROM charges"))

    def spent(self) -> float:
        return self.ledger.snapshot(self.dataset.name, self.dataset.unit).epsilon


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpicl_ui.generate.step.UpdateLimit", lambda *_: SimpleNamespace(due=lambda: True))


def until(app: App, tab: Any, running: Iterator[Any], wanted: Callable[[Any], bool]) -> None:
    next(running)
    while not any(wanted(event) for event in app.recorded(tab)):
        next(running)


def cut_off(app: App, tab: Any, wanted: Callable[[Any], bool], run: Any = None) -> list[Any]:
    """A run whose tab is closed as soon as something wanted is on the screen; what had been told by then."""
    with closing(run or app.generate(tab)) as running:
        until(app, tab, running, wanted)
    told = app.recorded(tab)
    app.sessions.drop(tab)
    return told


def whole(event: Any) -> bool:
    return isinstance(event, DemoCompleted)


def test_a_run_whose_tab_was_closed_goes_on_where_it_was_and_costs_what_one_run_costs():
    app = App()
    told = cut_off(app, app.tab(), whole)
    [path] = app.journals()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "canary" not in path.read_text()
    assert app.dataset.name not in path.name.split("-")
    again = app.tab("again")
    assert "1 of 4 demonstrations was complete" in app.card(again)
    updates = list(app.go_on(again))
    recording = app.recorded(again)
    before = list(filter(None, map(line_of, told)))
    assert list(filter(None, map(line_of, recording)))[: len(before)] == before
    assert isinstance(recording[-1], RunCompleted)
    assert len(recording[-1].demo_set.demonstrations) == 4
    assert app.notice(updates).startswith("Done.")
    assert app.session(again).of(GenerateState).made.demo_set == recording[-1].demo_set
    assert (app.journals(), app.card(again)) == ([], "")
    once = App(folder=app.ledger.folder / "once")
    list(once.generate(once.tab()))
    assert app.charges() == once.charges()
    assert app.spent() == pytest.approx(once.spent())


def test_a_page_that_is_loaded_says_which_runs_were_left_until_their_data_are_there():
    app = App()
    empty = SimpleNamespace(username=None, session_hash="was reloaded")
    assert app.step.cut_off.notices_elsewhere(empty) == []
    tab = app.tab()
    running = app.generate(tab)
    until(app, tab, running, whole)
    assert "running in another tab, or is being stopped" in text_of(app.step.cut_off.notices_elsewhere(empty))
    running.close()
    app.sessions.drop(tab)
    assert text_of(app.step.cut_off.notices_elsewhere(empty)).startswith(
        f"A run on '{DATASET.name}' was cut off. Its charge stays spent."
    )
    later = App(folder=app.ledger.folder)  # a server that was started anew
    assert "was cut off" in text_of(later.step.cut_off.notices_elsewhere(empty))
    other = later.tab("other", Dataset(DATASET.name, DATASET.labels, (*DATASET.records[1:],)))  # of the same name
    assert "was cut off" in text_of(later.step.cut_off.notices_elsewhere(other))
    assert later.card(other) == ""
    again = later.tab("again")
    assert later.step.cut_off.notices_elsewhere(again) == []
    assert "was cut off" in later.card(again)
    list(later.go_on(again))
    assert later.step.cut_off.notices_elsewhere(empty) == []


def test_strangers_are_told_of_no_run():
    app = App(ledgers=TabLedgers())
    assert app.step.cut_off.notices_elsewhere(SimpleNamespace(username=None, session_hash="one")) == []


def test_after_a_server_has_died_what_was_being_written_is_finished_from_public_text(monkeypatch: pytest.MonkeyPatch):
    spec = SPEC.with_(min_tokens=4)  # noise may end a shorter text at its second token
    app = App(spec=spec)
    tab = app.tab()
    running = app.generate(tab)  # and is never closed
    until(app, tab, running, lambda event: isinstance(event, TokenReleased) and event.step == 2)
    monkeypatch.setattr(ledger_module, "_is_alive", lambda holder: False)
    later = App(folder=app.ledger.folder, spec=spec)
    again = later.tab()
    assert "0 of 4 demonstrations were complete" in later.card(again)
    assert "finished from public text alone: 1." in later.notice(list(later.go_on(again)))
    recording = later.recorded(again)
    assert from_lines(own_run(later.session(again), later.ledger))[-1].demo_set == recording[-1].demo_set
    assert [event.finished for event in recording if isinstance(event, DemoCutOff)] == [True]
    assert len(recording[-1].demo_set.demonstrations) == 4


def test_a_stop_is_an_end_and_a_closed_tab_is_none():
    app = App()
    tab = app.tab()
    running = app.generate(tab)
    until(app, tab, running, whole)
    assert len(app.journals()) == 1
    app.session(tab).of(GenerateState).stop()
    assert app.notice(list(running)).startswith("Stopped.")
    assert (app.journals(), app.card(tab)) == ([], "")
    running = app.generate(tab)
    until(app, tab, running, whole)
    app.sessions.drop(tab)  # the run notices before its iterator is closed
    list(running)
    assert "was cut off" in app.card(app.tab("again"))


@pytest.mark.parametrize("told", [0, 1, 2])
def test_a_run_that_is_stopped_before_it_has_gone_on_can_still_be_resumed(told: int):
    app = App()
    cut_off(app, app.tab(), whole)
    again, spent = app.tab("again"), app.spent()
    state = app.session(again).of(GenerateState)
    running = app.go_on(again)
    next(running)
    recording = state.run.recording

    class Pressed:
        """Stop, pressed behind so many events."""

        def is_set(self) -> bool:
            return len(recording) > told

    object.__setattr__(state.run, "stop", Pressed())
    assert app.notice(list(running)).endswith("the run can still be resumed.")
    assert app.spent() == spent
    list(app.go_on(again))
    assert len(state.made.demo_set.demonstrations) == 4


@pytest.mark.parametrize("how", ["gone on with", "left", "replaced", "replaced while at work"])
def test_what_the_ledger_keeps_of_a_run_goes_with_its_file(how: str):
    app = App()
    cut_off(app, app.tab(), whole)
    assert len(app.kept()) == 1
    again = app.tab("again")
    if how == "left":
        spent = app.spent()
        assert "stays spent" in app.leave(again)
        assert (app.card(again), app.spent()) == ("", spent)
    elif how == "gone on with":
        list(app.go_on(again))
    elif how == "replaced":
        list(app.generate(again))
    else:
        with closing(app.go_on(again)) as first:
            until(app, again, first, lambda event: isinstance(event, DemoCutOff | RunCompleted) or whole(event))
            list(app.generate(app.tab("another")))
    assert (app.journals(), app.kept()) == ([], [])


def test_other_data_show_no_card_and_a_new_run_takes_the_place_of_the_old():
    app = App()
    cut_off(app, app.tab(), whole)
    changed = replace(DATASET, records=(*DATASET.records[1:], Record("new", "a")))
    assert app.card(app.tab("renamed", replace(DATASET, name="e"))) == ""
    assert app.card(app.tab("changed", changed)) == ""
    assert app.card(app.tab("same")) != ""
    somebody_else = App(folder=app.ledger.folder / "another")
    assert somebody_else.card(somebody_else.tab()) == ""
    [old] = app.journals()
    cut_off(app, app.tab("anew"), whole)
    [new] = app.journals()
    assert new != old


def test_two_tabs_cannot_both_go_on():
    app = App()
    cut_off(app, app.tab(), whole)
    one, two = app.tab("one"), app.tab("two")
    first = app.go_on(one)
    next(first)
    next(first)
    assert "still running in another tab" in app.card(two)
    assert "still active" in app.notice(list(app.go_on(two)))
    assert app.notice(list(first)).startswith("Done.")
    with pytest.raises(Exception, match="no interrupted run on these data to resume"):
        list(app.go_on(two))
    once = [event for event in app.recorded(one) if isinstance(event, TokenReleased)]
    assert len({(each.label, each.number, each.step) for each in once}) == len(once)


@pytest.mark.parametrize("damage", ["another", "parameters", "token"])
def test_a_damaged_or_edited_file_can_only_be_discarded(damage):
    app = App()
    cut_off(app, app.tab(), whole)
    [path] = app.journals()
    text = path.read_text()
    edited = {
        "another": "{}\n",
        "parameters": text.replace('"noise_multiplier": ', '"noise_multiplier": 1'),
        "token": text.replace('"chosen":', '"chosen": '),
    }[damage]
    assert edited != text
    path.write_text(edited)
    tab = app.tab("again")
    shown = app.step.cut_off.shown(tab)
    assert not shown[app.step.cut_off.go_on].visible
    assert shown[app.step.cut_off.discard].visible
    app.leave(tab)
    assert (app.journals(), app.kept()) == ([], [])


def test_nothing_is_written_down_where_nothing_outlives_the_tab():
    ledgers = TabLedgers()
    app = App(ledgers=ledgers)
    app.ledger = ledgers.of(tab := app.tab())
    told = cut_off(app, tab, whole)
    assert told
    assert app.journals() == []
    assert not (app.ledger.folder / "journals").exists()
    assert app.card(app.tab()) == ""
    ledgers.drop(tab)
    assert not app.ledger.folder.exists()


def test_a_run_that_is_not_private_is_not_written_down():
    app = App(spec=SPEC.with_(mechanism="non-private"))
    cut_off(app, app.tab(), whole)
    assert app.journals() == []


def test_a_run_in_stages_goes_on_from_the_vote():
    app = App(spec=STAGED)
    told = cut_off(app, app.tab(), lambda event: isinstance(event, VotesReleased))
    again = app.tab("again")
    assert "It had reached the vote" in app.card(again)
    list(app.go_on(again))
    recording = app.recorded(again)
    assert isinstance(recording[-1], RunCompleted)
    assert next(each for each in told if isinstance(each, VotesReleased)) in recording
    assert from_lines(own_run(app.session(again), app.ledger))[-1].demo_set == recording[-1].demo_set
    assert app.journals() == []
