"""Which set is under test, and whose figures are on the screen."""

from __future__ import annotations

import pytest

from dpicl_ui.frame.sessions import Session
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.test.state import TestState, gate
from mechanisms.records import Demonstration
from mechanisms.studio.evaluation.evaluate import ZERO_SHOT
from tests.ui.generate.recording import demo_set
from tests.ui.privacy.test_form import DATASET
from tests.ui.tabs import write
from tests.ui.test_cards import scorecard

MADE, LOADED = demo_set(Demonstration("made", "News")), demo_set(Demonstration("loaded", "News"))


@pytest.fixture
def session() -> Session:
    tab = Session()
    write(tab, MADE, DATASET)
    return tab


def test_a_loaded_set_is_tested_until_a_later_run_writes(session: Session):
    state, generate = session.of(TestState), session.of(GenerateState)
    assert state.tested is MADE
    state.load(LOADED)
    run = generate.begin()
    assert state.tested is LOADED  # it has written nothing yet
    generate.written = run
    assert (state.loaded, state.tested) == (None, MADE)
    state.load(LOADED)
    assert state.tested is LOADED


def test_figures_belong_to_the_set_they_were_measured_on(session: Session):
    state = session.of(TestState)
    scored = state.score(MADE, ("clinic",))
    assert not gate(session).done
    state.show(scored.with_card(scorecard(ZERO_SHOT)))
    assert gate(session).done
    assert state.scored is not None
    assert state.scored.owners == ("clinic",)
    state.load(LOADED)
    assert state.scored is None
    assert not gate(session).done


def test_a_stop_reaches_the_figures_under_way_and_no_other(session: Session):
    state = session.of(TestState)
    first = state.score(MADE, ())
    shown = first.with_card(scorecard(ZERO_SHOT))
    state.show(shown)
    state.stop()
    assert first.stop.is_set()
    assert not state.score(MADE, ()).stop.is_set()
