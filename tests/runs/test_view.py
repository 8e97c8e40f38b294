"""The fold of a run's events: a view is a function of what was told, and what a recording shows is what was shown."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.runs.events import (
    DemoCompleted,
    DemoRefused,
    DemoStarted,
    PrivateDiagnostics,
    Release,
    RunFailed,
    RunStopped,
    SetSoFar,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.view import RunView, fold, one_by_one
from tests.runs.running import KINDS, recorded, told

ALL = pytest.mark.parametrize("kind", KINDS)


def views(events) -> list[RunView]:
    return list(accumulate(events, fold, initial=RunView()))


def seen(events) -> RunView:
    return reduce(fold, events, RunView())


@ALL
def test_a_view_counts_what_was_told(kind):
    events = told(kind)
    last = seen(events)
    assert last.phase == "completed"
    assert last.demo_set == events[-1].demo_set
    assert last.standing == events[-1].demo_set.demonstrations
    assert last.tokens == sum(isinstance(each, TokenReleased) for each in events)
    assert last.moved == sum(isinstance(each, TokenReleased) and each.moved for each in events)
    assert last.completed == tuple(each for each in events if isinstance(each, DemoCompleted))
    assert last.refused == tuple(each for each in events if isinstance(each, DemoRefused))
    assert last.releases == dict(zip(stages_of(events), releases_of(events), strict=True))
    assert last.writing == ()
    assert last.budget is not None


def releases_of(events):
    return [each for each in events if isinstance(each, Release)]


def stages_of(events):
    now = ""
    for each in events:
        now = each.stage if isinstance(each, StageStarted) else now
        if isinstance(each, Release):
            yield now


@ALL
def test_progress_goes_from_nothing_to_the_end_and_stays_within(kind):
    progress = [view.progress for view in views(told(kind))]
    assert progress[0] == 0
    assert progress[-1] == 1
    assert all(0 <= each <= 1 for each in progress)
    starts = [
        view for view, event in zip(views(told(kind))[1:], told(kind), strict=True) if isinstance(event, StageStarted)
    ]
    assert [view.progress for view in starts] == [i / len(starts) for i in range(len(starts))]


@ALL
def test_clean_values_are_shown_beside_the_last_token_alone_and_in_no_replay(kind):
    for view, event in zip(views(told(kind))[1:], told(kind), strict=True):
        if isinstance(event, PrivateDiagnostics):
            assert view.draft(event.label, event.number).private is event
        if isinstance(event, TokenReleased):
            assert view.draft(event.label, event.number).private is None
    for view in views(recorded(kind)):
        assert all(each.private is None for each in (*view.writing, *([view.last] if view.last else [])))


@pytest.mark.parametrize("kind", ["alone", "both"])
def test_a_demonstration_in_progress_is_its_opening_and_its_tokens(kind):
    texts: dict[tuple[str, int], str] = {}
    for view, event in zip(views(recorded(kind))[1:], recorded(kind), strict=True):
        match event:
            case DemoStarted(label, number, opening):
                texts[label, number] = opening
                assert view.draft(label, number).before == opening
            case TokenReleased(label, number):
                assert view.draft(label, number).before == texts[label, number]
                texts[label, number] = event.text
            case DemoCompleted(demonstration, number):
                del texts[demonstration.label, number]
                assert (view.last.label, view.last.number) == (demonstration.label, number)
        assert {(each.label, each.number): each.text for each in view.writing} == texts
        assert view.shown is (view.writing[0] if view.writing else view.last)


@pytest.mark.parametrize("kind", ["alone", "both"])
def test_one_by_one_is_another_order_of_the_same_events(kind):
    events = [each for each in recorded(kind) if not isinstance(each, SetSoFar)]
    ordered = one_by_one(events)
    assert sorted(map(repr, ordered)) == sorted(map(repr, events))
    assert one_by_one(ordered) == ordered
    others = [each for each in events if not hasattr(each, "number")]
    assert [each for each in ordered if not hasattr(each, "number")] == others
    for view in views(ordered):
        assert len(view.writing) <= 1
    before, after = seen(events), seen(ordered)
    assert (before.tokens, before.moved, set(before.completed)) == (after.tokens, after.moved, set(after.completed))


@ALL
@given(st.data())
def test_wherever_it_ends_a_view_says_how(kind, data):
    events = recorded(kind)
    place = data.draw(st.integers(1, len(events) - 1))
    before = seen(events[:place])
    assert before.phase == "running"
    stopped = fold(before, RunStopped(before.demo_set))
    assert (stopped.phase, stopped.demo_set) == ("stopped", before.demo_set)
    failed = fold(before, RunFailed("what to do"))
    assert (failed.phase, failed.message) == ("failed", "what to do")
    assert failed.standing == before.standing, "what was released is not lost"
    again = fold(failed, events[0])
    assert again == seen(events[:1]), "a run that begins knows nothing of the one before"
