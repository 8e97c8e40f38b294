"""Who waits behind another's run reads that, with its own place and what is left of the one before it."""

from __future__ import annotations

import pytest

from dpicl_ui.generate.line import Line
from dpicl_ui.generate.live_chart import live
from dpicl_ui.generate.pace import Left
from dpicl_ui.generate.run_view import RunView
from dpicl_ui.generate.state import Run


def test_places_count_those_that_wait_and_have_not_given_up():
    line, runs = Line(), [Run() for _ in range(4)]
    first, second, third, last = runs
    for run in runs:
        line.join(run)
    with line.turn(first):
        assert line.words(first, 0) is None
        assert "yours is next" in (line.words(second, 0) or "")
        assert "number 3 of" in (line.words(last, 0) or "")
        third.stop.set()
        assert "number 2 of" in (line.words(last, 0) or "")
        assert "nothing is spent" in (line.words(third, 0) or "")


def test_what_is_left_runs_down_and_is_not_said_of_the_run_after_it():
    line, first, second, third = Line(), Run(), Run(), Run()
    for run in (second, third):
        line.join(run)
    with line.turn(first):
        assert "left" not in (line.words(second, 5) or "")
        line.tell(Left(600, "at most "), 10)
        assert "at most about 10 minutes left" in (line.words(second, 10) or "")
        assert "at most about 5 minutes left" in (line.words(second, 310) or "")
        assert "a few seconds left" in (line.words(second, 9999) or "")
    with line.turn(second):
        assert "left" not in (line.words(third, 20) or "")


def test_a_run_has_ended_with_its_turn_even_when_it_is_cut_off():
    line, first, second = Line(), Run(), Run()
    line.join(second)
    with pytest.raises(GeneratorExit), line.turn(first):
        raise GeneratorExit
    assert first.ended.is_set()
    assert "Another run" not in (line.words(second, 0) or "")


def test_a_refused_run_leaves_the_line():
    line, first, second = Line(), Run(), Run()
    line.join(first)
    line.join(second)
    line.leave(first)
    assert line.words(first, 0) is None
    assert "Another run" not in (line.words(second, 0) or "")


def test_nobody_who_waits_reads_that_nothing_runs():
    screen = live(RunView(phase="queued", message="Another run is using the model; yours is next"))
    assert screen["where"].startswith("Another run")
    assert "Press Generate" not in screen["hint"]
