"""A stop reaches the run that it was meant for."""

from __future__ import annotations

from dpicl_ui.frame.sessions import Session
from dpicl_ui.generate.state import GenerateState


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
