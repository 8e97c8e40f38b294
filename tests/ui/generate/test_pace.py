"""How much of a run is left."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from itertools import pairwise

import pytest
from dpicl_ui.generate.run_view import RecipeView, reduce_recipe
from hypothesis import example, given
from hypothesis import strategies as st
from mechanisms.runs.recipe import Stage

from dpicl_ui.generate.pace import Pace, left, paced, time_card
from dpicl_ui.privacy.cards import exactly
from mechanisms.records import Demonstration
from mechanisms.runs.events import (
    DemoCompleted,
    DemoStarted,
    Drafting,
    RunCompleted,
    RunStarted,
    RunStopped,
    StageProgress,
    StageStarted,
)
from tests.ui.generate.recipe_recording import STORIES, VOTING, recipe_set, started
from tests.ui.generate.recording import LABELS, demo_set, token
from tests.ui.trees import text_of

# Time and progress: how much of a run is left follows from when its tokens and stages came, and is never nonsense.


FORECAST = {Stage.WRITE: 60.0}
STAGES = {None: 10.0, Stage.VOTE: 20.0, Stage.CALIBRATE: 5.0, Stage.CHOOSE: 30.0, Stage.SCORE: 15.0}


def told(*events: tuple[float, object], forecast=None) -> tuple[Pace, RecipeView]:
    pace, view = Pace(forecast if forecast is not None else FORECAST), RecipeView()
    for now, event in events:
        pace, view = paced(pace, event, now), reduce_recipe(view, event)
    return pace, view


def steady(tokens: int = 10, wait: float = 20.0, step: float = 2.0, beside: bool = False) -> list[tuple[float, object]]:
    """A run of two demonstrations that keeps to a pace, one after the other or side by side."""
    now, events = 0.0, [(0.0, replace(RunStarted(demo_set(), 1, 3, None, expected_rows=8), tokens=tokens))]
    for group in [LABELS] if beside else [(label,) for label in LABELS]:
        events += [(now, DemoStarted(label, 1, None)) for label in group]
        now += wait - step
        for number in range(1, tokens + 1):
            now += step
            events += [(now, token(label, number, "x" * number)) for label in group]
        events += [(now, DemoCompleted(Demonstration("x" * tokens, label), 1)) for label in group]
    return [*events, (now, RunCompleted(demo_set(), None))]


@pytest.mark.parametrize("beside", [False, True])
def test_a_steady_pace_is_foretold_to_the_second(beside):
    events = steady(beside=beside)
    end, foretold = events[-1][0], 0
    for count in range(1, len(events) - 1):
        now = events[count][0]
        pace, view = told(*events[: count + 1])
        remaining = left(pace, view, now)
        if remaining is not None and remaining.bound and now == events[count + 1][0] == events[count][0]:
            continue  # the others of a step come at the same moment
        if remaining is not None and remaining.bound:
            foretold += 1
            assert remaining.seconds == pytest.approx(end - now, abs=4.0)
    assert foretold >= 6


def test_the_wait_for_the_first_token_is_no_token_of_the_pace():
    events = steady(tokens=60, wait=30.0, step=0.5, beside=True)
    place = next(i for i, (_, event) in enumerate(events) if getattr(event, "step", 0) == 6)
    pace, view = told(*events[:place])
    assert left(pace, view, events[place - 1][0]).seconds < 60  # spread over the tokens, the wait alone makes 300


def test_before_there_is_a_pace_the_forecast_is_left_and_then_nothing_is_claimed():
    pace, view = told(*steady()[:2])
    assert left(pace, view, 5.0).seconds == 55.0
    assert left(pace, view, 61.0) is None
    late = text_of(time_card(pace, view, 61.0))
    assert "longer than the forecast, about a minute: 61 seconds so far" in late
    assert left(*told(*steady()[:2], forecast={}), 5.0) is None


def test_while_records_are_read_the_line_says_so():
    pace, view = told(*steady(beside=True)[:3])
    said = text_of(time_card(pace, view, 1.0))
    assert said.startswith("Demonstrations 1 to 2 of 2, side by side: reading about 8 rows")
    pace, view = told(*steady()[:3])
    assert text_of(time_card(pace, view, 21.0)).startswith("Demonstration 1 of 2;")


def test_a_machine_that_is_slower_than_foreseen_is_slower_in_the_stages_to_come():
    opening = [(0.0, Drafting("News", 1, 2)), (10.0, Drafting("Sport", 2, 2)), (20.0, started(VOTING))]
    pace, view = told(*opening, forecast=STAGES)
    slower = left(pace, view, 20.0).seconds
    assert 70.0 < slower < 140.0, "twice as slow, but in a part of the whole alone"
    assert 20.0 + slower < 4 / 3 * sum(STAGES.values())
    voted = [*opening, (20.0, StageStarted(Stage.VOTE, None))]
    assert left(*told(*voted, forecast=STAGES), 30.0).seconds == pytest.approx(slower - 10.0)
    overdue = left(*told(*voted, forecast=STAGES), 90.0)
    assert overdue.bound == "at least "
    assert 50.0 < overdue.seconds < 200.0


SHAPES = [
    {None: 29.0, Stage.WRITE: 113.0, Stage.VOTE: 5.0, Stage.CALIBRATE: 55.0, Stage.CHOOSE: 108.0, Stage.SCORE: 38.0},
    {None: 40.0, Stage.WRITE: 140.0, Stage.VOTE: 20.0, Stage.CALIBRATE: 70.0, Stage.CHOOSE: 130.0, Stage.SCORE: 60.0},
    {None: 90.0, Stage.WRITE: 340.0, Stage.VOTE: 20.0, Stage.CALIBRATE: 120.0, Stage.CHOOSE: 200.0, Stage.SCORE: 90.0},
    {
        None: 400.0,
        Stage.WRITE: 900.0,
        Stage.VOTE: 30.0,
        Stage.CALIBRATE: 300.0,
        Stage.CHOOSE: 250.0,
        Stage.SCORE: 150.0,
    },
]
"""Forecasts of four labels, of long texts, of twelve labels, and of 77: which stages matter."""


def a_run(took: dict, tokens: int = 10) -> list[tuple[float, object]]:
    """A run that writes, drafts, and goes through the other stages, each of which takes as long as is said."""
    made = recipe_set()
    parameters = made.certificate.parameters
    parameters = parameters | {"written": parameters["written"] | {"tokens": tokens, "shots_per_label": 1}}
    made = replace(made, certificate=replace(made.certificate, parameters=parameters))
    stages = tuple(stage for stage in Stage if stage in took)
    begun = RunStarted(made, 1, 40, None, stages)
    events = [(0.0, begun), (0.0, StageStarted(Stage.WRITE, None))]
    now, each = 0.0, took[Stage.WRITE] / len(LABELS) / tokens
    for label in LABELS:
        events.append((now, DemoStarted(label, 1, None)))
        for number in range(1, tokens + 1):
            now += each
            events.append((now, token(label, number, "x" * number)))
        events.append((now, DemoCompleted(Demonstration("x" * tokens, label), 1)))
    for number, label in enumerate(LABELS, 1):
        events.append((now, Drafting(label, number, len(LABELS))))
        now += took[None] / len(LABELS)
    for stage in stages[1:]:
        events.append((now, StageStarted(stage, None)))
        now += took[stage]
    return [*events, (now, RunCompleted(recipe_set(), None))]


@given(st.sampled_from(SHAPES), st.lists(st.floats(0.75, 4 / 3), min_size=6, max_size=6))
@example(SHAPES[0], [4 / 3, 0.75, 4 / 3, 0.75, 0.75, 4 / 3])
def test_a_forecast_that_is_right_within_a_third_moves_by_no_more_than_a_third(forecast, factors):
    took = {part: seconds * factor for (part, seconds), factor in zip(forecast.items(), factors, strict=True)}
    events, whole = a_run(took), sum(forecast.values())
    pace, view, before = Pace(forecast), RecipeView(), whole
    for (now, event), (after, _) in pairwise(events):
        pace, view = paced(pace, event, now), reduce_recipe(view, event)
        for seen in (now, (now + after) / 2, now + 0.999 * (after - now)):
            if (remaining := left(pace, view, seen)) is None:
                continue
            total = seen + remaining.seconds
            assert 0.74 * before < total < 1.34 * before, "from one moment to the next"
            assert 0.66 * whole < total < 1.5 * whole
            before = total
        if event == StageStarted(Stage.WRITE, None):
            assert left(pace, view, now).seconds == pytest.approx(whole), "just after the charge it is the forecast"


def test_the_first_drafts_follow_the_labels_that_are_done():
    opening = [(0.0, Drafting("a", 1, 4)), (30.0, Drafting("b", 2, 4))]
    foreseen = STAGES | {None: 120.0}
    assert left(*told(*opening, forecast=foreseen), 40.0).seconds == pytest.approx(80.0 + 70.0)
    assert left(*told(*opening, forecast=STAGES), 40.0).seconds > 150.0, "the stages are slower too"


def test_how_far_a_stage_is_among_the_rows_changes_nothing():
    events = [(0.0, started(VOTING)), (1.0, StageStarted(Stage.VOTE, None))]
    plain, watched = (told(*events, *more, forecast=STAGES) for more in ([], [(2.0, StageProgress(Stage.VOTE, 0.9))]))
    assert left(*plain, 3.0) == left(*watched, 3.0)


def test_afterwards_it_stands_beside_the_forecast():
    pace, view = told(*steady())
    assert text_of(time_card(pace, view, 48.0)) == "Took 48 seconds; the forecast was about a minute."
    stopped = reduce_recipe(told(*steady()[:5])[1], RunStopped(demo_set()))
    assert "Stopped after 30 seconds; the whole run was forecast" in text_of(time_card(pace, stopped, 30.0))
    assert time_card(Pace(), RecipeView(), 1.0) == []


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0, "1 second"), (47.6, "48 seconds"), (200, "3 minutes 20 seconds"), (9000, "2.5 hours")]
)
def test_a_measured_duration_in_words(seconds, words):
    assert exactly(seconds) == words


@given(
    st.sampled_from(sorted(STORIES)),
    st.lists(st.floats(0, 1e4), min_size=40, max_size=40),
    st.dictionaries(st.sampled_from([None, *Stage]), st.floats(0, 1e5), max_size=5),
    st.floats(0, 1e5),
)
@example("vote", [1e4] * 40, dict.fromkeys((None, *Stage), 1e-308) | {Stage.SCORE: 1e5}, 1.0)
@example("both", [0.0] * 24 + [3.0] + [0.0] * 15, {Stage.VOTE: 1.1e-308}, 0.0)
def test_no_story_at_any_pace_says_nonsense(story, gaps, forecast, later):
    clock = itertools.accumulate(itertools.chain(gaps, itertools.repeat(1.0)))
    pace, view = Pace(forecast), RecipeView()
    for event in STORIES[story]:
        now = next(clock)
        pace, view = paced(pace, event, now), reduce_recipe(view, event)
        for seen in (now, now + later):
            remaining = left(pace, view, seen)
            assert remaining is None or (math.isfinite(remaining.seconds) and remaining.seconds >= 0)
            said = text_of(time_card(pace, view, seen))
            assert " 0 s" not in said
            assert "-" not in said
            assert "nan" not in said
            assert "inf" not in said


def test_a_recipe_that_writes_waits_for_its_stages_too():
    forecast = {None: 1.0, Stage.WRITE: 10.0, Stage.VOTE: 100.0}
    opening = [(0.0, Drafting("News", 1, 2)), (1.0, RunStarted(recipe_set(), 1, 40, None, tuple(Stage)))]
    pace, view = told(*opening, *((now + 1, each) for now, each in steady()[1:9]), forecast=forecast)
    assert left(pace, view, 40.0).seconds > 100.0


def test_drafts_that_come_after_the_writing_are_a_part_of_their_own():
    forecast = {None: 20.0, Stage.WRITE: 40.0, Stage.VOTE: 10.0}
    pace = Pace(forecast=forecast)
    for at, event in [
        (0.0, started(tuple(Stage))),
        (0.0, StageStarted(Stage.WRITE, None)),
        (40.0, Drafting("News", 1, 2)),
        (50.0, Drafting("Sport", 2, 2)),
    ]:
        pace = paced(pace, event, at)
    assert pace.past == {Stage.WRITE: 40.0}
    assert pace.part is None
    remaining = left(pace, RecipeView(), 50.0)
    assert remaining is not None
    assert remaining.seconds == pytest.approx(20.0)  # a label's drafts, and the vote
    assert paced(pace, StageStarted(Stage.VOTE, None), 60.0).past == {Stage.WRITE: 40.0, None: 20.0}
