"""Finished runs: found again after a reload, and not replaced unasked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.export import WITHOUT_DEMONSTRATIONS, ExportStep
from dpicl_ui.frame.services import CuratorLedger, TabLedgers
from dpicl_ui.generate import kept_runs as module
from dpicl_ui.generate.replay import own_recording, own_run
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import Cap
from mechanisms.runs.events import ENDS, PrivateDiagnostics
from mechanisms.runs.run_file import line_of
from tests.ui.generate.test_cut_off import SPEC, App, at_once, until, whole
from tests.ui.tabs import in_page, services, text_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("any_text_passes")]


# A reload of a page finds its finished run again, and nobody else does.


__all__ = ["at_once"]
KEY, OTHER = "a" * 32, "b" * 32


class Kept:
    """An app that keeps the runs of its pages."""

    def __init__(self, ledgers: Any = None) -> None:
        self.app = App(ledgers=ledgers)
        self.runs = self.app.step.kept

    def tab(self, name: str, key: object = KEY) -> Any:
        """A page that was loaded, and has told its key; without data."""
        tab = SimpleNamespace(username=None, session_hash=name)
        self.runs.know(self.app.sessions.of(tab), key)
        return tab

    def finished(self, name: str = "tab", key: str = KEY, **settings: Any) -> Any:
        """A page whose run has ended."""
        tab = self.tab(name, key)
        self.app.tab(name)
        list(self.app.generate(tab, **settings))
        return tab

    def found(self, tab: Any) -> bool:
        return self.runs.restore(self.app.sessions.of(tab))

    def close(self, tab: Any) -> None:
        """As the page does it."""
        self.app.sessions.drop(tab)

    def state(self, tab: Any) -> GenerateState:
        return self.app.session(tab).of(GenerateState)


@pytest.fixture
def kept() -> Kept:
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
    state = kept.state(new)
    assert state.made.demo_set == made.demo_set
    assert own_run(kept.app.session(new), kept.app.ledger) == file
    assert len(state.made.data.rows) == 0
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


def test_it_goes_with_another_run(kept: Kept):
    tab = kept.finished()
    running = kept.app.generate(tab)
    until(kept.app, tab, running, whole)
    running.close()
    kept.close(tab)
    assert not kept.found(kept.tab("cut off")), "that run had not ended, and the one before had given way"


def test_a_server_keeps_a_bounded_number(kept: Kept, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST_RUNS", 2)
    keys = [f"{number:032x}" for number in range(3)]
    for key in keys:
        kept.close(kept.finished(f"tab {key}", key=key))
    assert [kept.found(kept.tab(f"again {key}", key)) for key in keys] == [False, True, True]


def test_neither_a_run_that_is_not_private_nor_one_whose_ledger_goes_with_its_page_is_kept(kept: Kept):
    kept.app.spec = SPEC.with_(mechanism="non-private")
    tab = kept.finished()
    assert kept.state(tab).made is not None
    kept.close(tab)
    assert not kept.found(kept.tab("again"))
    public = Kept(ledgers := TabLedgers())
    public.close(tab := public.finished())
    again = public.tab("again")
    assert not public.found(again)
    for each in (tab, again):
        ledgers.drop(each)


def test_clean_values_are_not_kept_and_a_tab_that_has_a_run_gets_no_other(kept: Kept):
    tab = kept.finished(curator=True)
    told = list(filter(None, map(line_of, kept.app.recorded(tab))))
    assert not kept.found(tab)
    kept.close(tab)
    assert kept.found(new := kept.tab("again"))
    assert list(filter(None, map(line_of, own_recording(kept.app.session(new))))) == told
    assert not any(isinstance(event, PrivateDiagnostics) for event in own_recording(kept.app.session(new)))
    assert kept.state(new).made.demo_set.certificate.disclosures, "the mark is kept"


# A finished set does not give way to the next run unasked.


@pytest.fixture
def app() -> App:
    return App()


def press(app: App, tab: Any, resume: bool = False) -> dict[Any, Any]:
    return app.step.replacing.pressed(app.session(tab), resume)


def asks(app: App, tab: Any, resume: bool = False) -> str:
    """What is asked; empty where a run begins."""
    shown, replacing = press(app, tab, resume), app.step.replacing
    begun = replacing.press in shown
    assert not begun or replacing.resumes(shown[replacing.press]) is resume
    assert begun is not (shown[replacing.body].visible is True)
    return "" if begun else text_of(shown[replacing.words])


def test_a_first_run_asks_nothing_and_one_over_a_finished_set_does(app: App):
    tab = app.tab()
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
    assert not app.step.replacing.resumes(agreed[app.step.replacing.press])
    assert app.session(tab).of(GenerateState).made is made, "nothing goes before the run is there"


def test_who_saved_or_exported_is_not_asked(app: App):
    tab = app.tab()
    list(app.generate(tab))
    state = app.session(tab).of(GenerateState)
    app.step._save(tab)
    assert asks(app, tab) == ""
    list(app.generate(tab))
    assert asks(app, tab), "that was another set"
    step = in_page(lambda: ExportStep(services(CuratorLedger(app.ledger), sessions=app.sessions)))
    step._save(WITHOUT_DEMONSTRATIONS[0], tab)
    assert state.untaken, "a certificate is not the set"
    step._save("demo-set", tab)
    assert asks(app, tab) == ""


def test_a_press_on_generate_does_not_turn_a_waiting_resumption_into_a_new_run(app: App):
    """Both buttons can be pressed until the run of the first press begins."""
    tab, replacing = app.tab(), app.step.replacing
    resumed, anew = (press(app, tab, resume)[replacing.press] for resume in (True, False))
    assert resumed != anew
    assert replacing.resumes(resumed)
    assert not replacing.resumes(anew)


def test_keeping_the_set_changes_nothing_about_the_next_press(app: App):
    tab, replacing = app.tab(), app.step.replacing
    list(app.generate(tab))
    assert asks(app, tab, resume=True)
    replacing.hidden()
    assert asks(app, tab)
    assert not replacing.resumes(replacing.agreed(tab)[replacing.press])


def test_a_run_that_is_refused_leaves_the_finished_one_on_the_screen_and_for_its_file(app: App):
    tab = app.tab()
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
