"""A finished set does not give way to the next run unasked."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.export import WITHOUT_DEMONSTRATIONS, ExportStep
from dpicl_ui.generate.replay import own_recording
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import Cap
from mechanisms.errors import UsageError
from mechanisms.runs.events import DemoCompleted
from mechanisms.runs.recipe import Division, Kind
from mechanisms.runs.run_file import ENDS
from tests.recipes.running import CAP, Embedding, Log, Reading, data, planned, recipe, rows
from tests.ui.generate.test_cut_off import App, at_once, cut_off, until, whole
from tests.ui.trees import text_of

pytestmark = pytest.mark.slow
__all__ = ["at_once"]


def staged(patch: pytest.MonkeyPatch) -> tuple[App, Any]:
    """An app whose every run is one in stages."""
    records = data(rows(30))
    wanted = planned(records, recipe(Kind.VOTE, Division.ROLES))
    app = App(Reading(Log()), dataset=records)
    app.ledger.set_cap("d", "record", CAP)
    app.step._runner._embedder = SimpleNamespace(embedder=lambda: Embedding(Log()))
    tab = app.tab()
    confirmed = app.session(tab).of(DataState).confirmed
    patch.setattr(
        "dpicl_ui.generate.runner.PrivacyState.calibrate",
        lambda *_: SimpleNamespace(confirmed=confirmed, request=wanted),
    )
    patch.setattr("dpicl_ui.generate.runner.PrivacyForm.read", lambda *_: None)
    patch.setattr("dpicl_ui.generate.step.PrivacyForm.read", lambda *_: None)
    return app, tab


@pytest.fixture(params=["token by token", "in stages"])
def app(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[App, Any]]:
    if request.param == "in stages":
        yield staged(monkeypatch)
    else:
        made = App()
        yield made, made.tab()


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
    app.ledger.set_cap(app.dataset.name, "record", Cap(app.spent() + 0.01, CAP.delta))
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
