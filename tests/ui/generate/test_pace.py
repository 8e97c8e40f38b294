"""How much of a run is left follows from its stages' forecasts and its progress, and is never nonsense."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.generate.pace import Pace, forecast, time_card
from dpicl_ui.privacy.cards import exactly
from mechanisms.runs.events import RunStopped, StageProgress
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WRITE
from mechanisms.runs.stage import Speed
from mechanisms.runs.view import RunView, fold
from tests.ui.generate.recording import STORIES, plan
from tests.ui.generate.test_run_view import folded
from tests.ui.trees import text_of

STAGES = {OPENINGS: 5.0, WRITE: 60.0, VOTE: 20.0, CALIBRATE: 20.0, SCORE: 15.0}
WHOLE = sum(STAGES.values())


def before(stage: str) -> RunView:
    """A run whose stage has just begun."""
    events = STORIES["both"]
    return folded(events[: 1 + next(i for i, event in enumerate(events) if getattr(event, "stage", "") == stage)])


@pytest.mark.parametrize("pace", [0.5, 1.0, 2.0])
def test_a_steady_machine_is_foretold_the_better_the_more_it_has_done(pace):
    errors, passed = [], 0.0
    for stage, seconds in STAGES.items():
        left = (WHOLE - passed) * pace
        errors.append(abs(Pace(0.0, STAGES).left(before(stage), passed * pace) - left) / (WHOLE * pace))
        passed += seconds
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(errors))
    assert errors[-1] < 0.05
    assert pace != 1.0 or max(errors) < 1e-9


def test_within_a_stage_its_progress_counts():
    view = before(VOTE)
    half = fold(view, StageProgress(VOTE, 0.5))
    pace = Pace(0.0, STAGES)
    assert pace.left(half, 75.0) == pytest.approx(45.0)
    assert pace.left(view, 75.0) > pace.left(half, 75.0)


def test_without_a_forecast_nothing_is_claimed_before_there_is_progress():
    assert Pace(0.0).left(before(OPENINGS), 5.0) is None
    assert Pace(0.0).left(before(VOTE), 40.0) == pytest.approx(60.0), "two of five stages are over"
    resumed = Pace(0.0, before=0.4)
    assert resumed.left(before(VOTE), 40.0) is None
    assert resumed.left(before(CALIBRATE), 20.0) == pytest.approx(40.0)


def test_a_forecast_is_of_each_stage_in_order():
    found = forecast(plan("both"), Speed(1e-3, 1e-3, 1e-3))
    assert list(found) == list(STAGES)
    assert all(seconds > 0 for seconds in found.values())
    assert forecast(plan("both"), None) == {}


def test_while_rows_are_read_the_line_says_so():
    events = STORIES["tokens"]
    view = folded(events[:3])
    said = text_of(time_card(Pace(0.0, {WRITE: 60.0}), view, 1.0))
    assert said.startswith("Demonstration 1 of 2: reading about 8 rows; ")
    assert "left" in said
    assert "reading" not in text_of(time_card(Pace(), folded(events[:4]), 21.0))


def test_afterwards_it_stands_beside_the_forecast():
    view, pace = folded(STORIES["both"]), Pace(0.0, {WRITE: 60.0})
    assert text_of(time_card(pace, view, 48.0)) == "Took 48 seconds; the forecast was about a minute."
    stopped = fold(before(VOTE), RunStopped(view.demo_set))
    assert "Stopped after 30 seconds; the whole run was forecast" in text_of(time_card(pace, stopped, 30.0))
    assert time_card(Pace(), RunView(), 1.0) == []


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0, "1 second"), (47.6, "48 seconds"), (200, "3 minutes 20 seconds"), (9000, "2.5 hours")]
)
def test_a_measured_duration_in_words(seconds, words):
    assert exactly(seconds) == words


@given(
    st.sampled_from(sorted(STORIES)),
    st.lists(st.floats(0, 1e4), min_size=40, max_size=40),
    st.one_of(
        st.just({}),
        st.lists(st.floats(1e-300, 1e5), min_size=5, max_size=5).map(lambda s: dict(zip(STAGES, s, strict=True))),
    ),
    st.floats(0, 1e5),
)
def test_no_story_at_any_pace_says_nonsense(story, gaps, foreseen, later):
    clock = itertools.accumulate(itertools.chain(gaps, itertools.repeat(1.0)))
    pace, view = Pace(0.0, foreseen), RunView("waiting")
    for event in STORIES[story]:
        now, view = next(clock), fold(view, event)
        for seen in (now, now + later):
            remaining = pace.left(view, seen)
            assert remaining is None or (math.isfinite(remaining) and remaining >= 0)
            said = text_of(time_card(pace, view, seen))
            assert not any(each in said for each in (" 0 s", "-", "nan", "inf"))
