"""Finished runs: found again after a reload, and not replaced unasked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.export import WITHOUT_DEMONSTRATIONS, ExportStep
from dpicl_ui.frame.sessions import TabLedgers
from dpicl_ui.generate import kept_runs as module
from dpicl_ui.generate.kept_runs import AGE, KeptRuns, forgotten
from dpicl_ui.generate.replay import own_recording, own_run
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import Cap, fingerprint
from mechanisms.errors import UsageError
from mechanisms.runs.events import ENDS, DemoCompleted
from mechanisms.runs.run_file import from_lines, line_of
from tests.ui.generate.test_cut_off import SPEC, STAGED, App, at_once, cut_off, until, whole
from tests.ui.trees import text_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("any_text_passes")]


# A reload of a page finds its finished run again, and nobody else does.


__all__ = ["at_once"]
KEY, OTHER = "a" * 32, "b" * 32


class Kept:
    """An app whose runs are kept by a clock that stands still."""

    def __init__(self, ledgers: Any = None) -> None:
        self.now, self.app = 0.0, App(ledgers=ledgers)
        self.runs = self.app.step.reload._runs = KeptRuns(lambda: self.now)

    def tab(self, name: str, key: object = KEY) -> Any:
        """A page that was loaded, and has told its key; without data."""
        tab = SimpleNamespace(username=None, session_hash=name)
        self.runs.know(self.app.sessions.of(tab), key)
        return tab

    def finished(self, name: str = "tab", key: str = KEY) -> Any:
        """A page whose run has ended."""
        tab = self.tab(name, key)
        self.app.tab(name)
        list(self.app.generate(tab))
        return tab

    def restored(self, name: str) -> Any:
        tab = self.tab(name)
        assert self.found(tab)
        return tab

    def found(self, tab: Any) -> bool:
        return self.runs.restore(self.app.sessions.of(tab), self.ledger(tab))

    def ledger(self, tab: Any) -> Any:
        return self.app.step._app.ledgers.of(tab)

    def close(self, tab: Any) -> None:
        """As the page does it."""
        self.app.sessions.drop(tab)
        self.app.step._app.ledgers.drop(tab)

    def state(self, tab: Any) -> GenerateState:
        return self.app.session(tab).of(GenerateState)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setattr(module.threading, "Timer", lambda *_: SimpleNamespace(start=lambda: None))
    return Kept()


@pytest.mark.parametrize("first", ["the old page closes", "the new page asks"])
def test_the_same_tab_finds_its_run_its_set_and_its_file_and_no_rows(kept: Kept, first: str):
    old = kept.finished()
    made, file = kept.state(old).made, own_run(kept.app.session(old), kept.app.ledger)
    new = kept.tab("reloaded")
    if first == "the old page closes":
        kept.close(old)
        assert kept.found(new)
    else:
        assert kept.found(new)
        kept.close(old)
        kept.now = 10 * AGE  # the new page has it for as long as it is open
    kept.runs.sweep()
    state = kept.state(new)
    assert state.made.demo_set.to_json() == made.demo_set.to_json()
    assert own_run(kept.app.session(new), kept.app.ledger) == file
    assert len(state.made.of.rows) == 0
    assert kept.app.session(new).of(DataState).file is None
    assert "canary" not in file
    assert state.untaken
    shown = kept.app.step._again(kept.app.session(new), kept.app.ledger, move=True)
    assert shown[kept.app.step.replay.bar] is not None
    assert shown[kept.app.step.export].visible is True
    assert shown[kept.app.step.start].value == "Write another set"
    kept.close(new)
    assert kept.found(kept.tab("once more"))


def test_nobody_else_finds_it(kept: Kept):
    kept.close(kept.finished())
    strangers = [kept.tab("other", OTHER)]
    strangers += [kept.tab(f"odd {key!r}", key) for key in (None, "", "a", KEY.upper(), f"{KEY}\n", [KEY], 7)]
    assert not any(kept.found(tab) for tab in strangers)
    assert kept.found(kept.tab("same"))


def test_it_goes_with_its_time_with_another_run_and_when_it_is_forgotten(kept: Kept):
    kept.close(kept.finished())
    kept.now = AGE - 1
    new = kept.tab("in time")
    assert kept.found(new)
    kept.close(new)
    kept.now += AGE
    assert not kept.found(kept.tab("late"))

    kept.close(kept.finished("second"))
    forgotten(kept.app.session(again := kept.restored("third")), kept.runs)
    assert kept.state(again).made is None
    assert not kept.found(kept.tab("after it was forgotten"))

    third = kept.finished("fourth")
    kept.app.tab("fourth")
    running = kept.app.generate(third)
    until(kept.app, third, running, whole)
    with pytest.raises(UsageError, match="under way"):
        forgotten(kept.app.session(third), kept.runs)
    running.close()
    kept.close(third)
    assert not kept.found(kept.tab("cut off")), "that run had not ended, and the one before had given way"


def test_a_server_keeps_a_bounded_number(kept: Kept, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST_RUNS", 2)
    keys = [f"{number:032x}" for number in range(3)]
    for key in keys:
        kept.close(kept.finished(f"tab {key}", key=key))
    assert [kept.found(kept.tab(f"again {key}", key)) for key in keys] == [False, True, True]
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    kept.runs.sweep()
    assert not kept.found(kept.tab("full", keys[-1]))


@pytest.mark.parametrize("open_yet", [True, False])
def test_a_mark_that_was_made_before_the_reload_stays_where_the_ledger_goes_with_its_page(
    monkeypatch: pytest.MonkeyPatch, open_yet: bool
):
    monkeypatch.setattr(module.threading, "Timer", lambda *_: SimpleNamespace(start=lambda: None))
    kept = Kept(TabLedgers())
    old = kept.finished()
    kept.ledger(old).rows.mark(fingerprint(kept.app.dataset), "figures of attacks")
    new = kept.tab("reloaded")
    if not open_yet:
        kept.close(old)
    assert kept.found(new)
    assert "figures of attacks" in kept.state(new).made.demo_set.certificate.disclosures
    assert "figures of attacks" in own_run(kept.app.session(new), kept.ledger(new))
    if open_yet:
        kept.close(old)
    kept.close(new)


def test_a_run_that_is_not_private_is_not_kept(kept: Kept):
    tab = kept.tab("tab")
    kept.app.tab("tab")
    kept.app.spec = SPEC.with_(mechanism="non-private")
    list(kept.app.generate(tab))
    assert kept.state(tab).made is not None
    kept.close(tab)
    assert not kept.found(kept.tab("again"))


def test_clean_values_are_not_kept_and_a_tab_that_has_a_run_gets_no_other(kept: Kept):
    tab = kept.tab("tab")
    kept.app.tab("tab")
    list(kept.app.generate(tab, curator=True))
    told = list(filter(None, map(line_of, kept.app.recorded(tab))))
    assert not kept.found(tab)
    kept.close(tab)
    new = kept.restored("again")
    events = from_lines(own_run(kept.app.session(new), kept.app.ledger))
    assert list(filter(None, map(line_of, events))) == told
    assert kept.state(new).made.demo_set.certificate.disclosures, "the mark is kept"


# A finished set does not give way to the next run unasked.


@pytest.fixture(params=["token by token", "in stages"])
def app(request: pytest.FixtureRequest) -> tuple[App, Any]:
    made = App(spec=STAGED if request.param == "in stages" else SPEC)
    return made, made.tab()


def press(app: App, tab: Any, resume: bool = False) -> dict[Any, Any]:
    return app.step.replacing.pressed(app.session(tab), resume)


def asks(app: App, tab: Any, resume: bool = False) -> str:
    """What is asked; empty where a run begins."""
    shown, replacing = press(app, tab, resume), app.step.replacing
    begun = (replacing.again if resume else replacing.anew) in shown
    assert begun is not (shown[replacing.body].visible is True)
    return "" if begun else text_of(shown[replacing.words])


def test_a_first_run_asks_nothing_and_one_over_a_finished_set_does(app: tuple[App, Any]):
    app, tab = app
    assert asks(app, tab) == ""
    last: dict[Any, Any] = {}
    for update in app.generate(tab):
        last |= update
    assert (last[app.step.start].value, last[app.step.start].variant) == ("Write another set", "secondary")
    assert last[app.step.test].visible is True
    assert last[app.step.export].visible is True
    assert "costs its epsilon again" in asks(app, tab)
    made = app.session(tab).of(GenerateState).made
    agreed = app.step.replacing.agreed(tab)
    assert agreed[app.step.replacing.anew] > 0
    assert app.session(tab).of(GenerateState).made is made, "nothing goes before the run is there"


def test_who_saved_or_exported_is_not_asked(app: tuple[App, Any]):
    app, tab = app
    list(app.generate(tab))
    state = app.session(tab).of(GenerateState)
    app.step._save(tab)
    assert asks(app, tab) == ""
    list(app.generate(tab))
    assert asks(app, tab), "that was another set"
    shared = SimpleNamespace(session=app.sessions.of, ledger=lambda _: app.ledger)
    step: Any = SimpleNamespace(_app=shared, sink=0, certificate=1, notice=2)
    step._marked = lambda session, ledger: ExportStep._marked(step, session, ledger)
    ExportStep._save(step, WITHOUT_DEMONSTRATIONS[0], tab)
    assert state.untaken, "a certificate is not the set"
    ExportStep._save(step, "demo-set", tab)
    assert asks(app, tab) == ""


def test_a_run_that_is_refused_leaves_the_finished_one_on_the_screen_and_for_its_file(app: tuple[App, Any]):
    app, tab = app
    list(app.generate(tab))
    before = app.recorded(tab)
    app.ledger.set_cap(app.dataset.name, "record", Cap(app.spent() + 0.01, 1e-4))
    *_, shown = app.generate(tab)
    assert "cap" in text_of(shown[app.step.notice])
    assert own_recording(app.session(tab)) == before
    assert isinstance(before[-1], ENDS)
    assert shown[app.step.replay.bar] is not None
    assert shown[app.step.replay.save].visible is True
    assert shown[app.step.export].visible is True
    assert asks(app, tab)


def test_no_data_are_asked_for_before_anything_else():
    app = App()
    tab = SimpleNamespace(username=None, session_hash="empty")
    with pytest.raises(UsageError, match="step 1"):
        press(app, tab)


def test_a_run_that_was_cut_off_asks_before_it_replaces_a_set_too():
    app = App()
    cut_off(app, app.tab(), whole)
    tab = app.tab("again")
    assert asks(app, tab, resume=True) == ""
    running = app.go_on(tab)
    until(app, tab, running, lambda event: isinstance(event, DemoCompleted) and event.number == 2)
    app.session(tab).of(GenerateState).stop()
    list(running)
    said = asks(app, tab, resume=True)
    assert "exported" in said
    assert "again" not in said
    assert app.step.replacing.again in app.step.replacing.agreed(tab)
