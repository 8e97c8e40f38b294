"""The screen of a run is a function of its events."""

from __future__ import annotations

from dpicl_ui.generate.run_view import RunView, looked_back, one_by_one, reduce
from mechanisms.records import Demonstration
from mechanisms.runs.events import (
    DemoCompleted,
    DemoCutOff,
    RunCompleted,
    RunFailed,
    RunStopped,
    TokenReleased,
)
from tests.ui.generate.recording import CLEAN, demo_set, recording
from tests.ui.generate.replaying import replay


def places(events) -> list[RunView]:
    return [view.run for event, view in looked_back(events) if isinstance(event, TokenReleased)]


def test_a_recording_replays_the_whole_screen():
    view = replay(recording())
    assert view.phase == "completed"
    assert view.progress == 1.0
    assert [each.text for each in view.finished] == ["one two", "three"]
    assert view.demo_set.demonstrations == view.finished
    assert view.released == 4
    assert view.budget.epsilon == 1.0


def test_replaying_is_reducing_one_event_after_the_other():
    view = RunView()
    for event in recording():
        view = reduce(view, event)
    assert view == replay(recording())


def test_progress_never_falls():
    events = recording()
    progress = [replay(events[: i + 1]).progress for i in range(len(events))]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


def test_the_last_token_is_told_apart_from_the_text_before():
    view = places(recording())[1]
    assert (view.shown.before, view.shown.text) == ("one", "one two")


def test_looking_back_stops_at_every_token():
    views = places(recording())
    assert [view.released for view in views] == [1, 2, 3, 4]
    assert [view.shown.text for view in views] == ["one", "one two", "one two", "three"]
    assert {view.phase for view in views} == {"running"}


def test_clean_values_last_for_one_token_only():
    events = recording()
    view = reduce(replay(events[:3]), CLEAN)
    assert view.shown.clean == CLEAN.clean
    assert reduce(view, events[3]).shown.clean is None
    assert replay(events).shown.clean is None


def test_a_stop_keeps_whole_demonstrations():
    events = recording()[:8]
    view = reduce(replay(events), RunStopped(demo_set(*replay(events).finished)))
    assert view.phase == "stopped"
    assert [each.text for each in view.finished] == ["one two"]


def test_a_failure_says_why():
    assert reduce(RunView(), RunFailed("The cap is reached.")).message == "The cap is reached."


def side_by_side():
    """The recording, had its two demonstrations been written together."""
    run, news, *tokens, whole, sport, three, done, end = recording()
    return [run, news, sport, tokens[0], three, done, *tokens[1:], whole, end]


def test_demonstrations_written_side_by_side_keep_their_own_tokens():
    view = replay(side_by_side()[:5])
    assert [(draft.label, draft.text) for draft in view.drafts] == [("News", "one"), ("Sport", "three")]
    assert view.shown.label == "News", "the screen stays with one demonstration until it is whole"
    assert reduce(view, CLEAN).drafts[1].clean is None
    assert {each.text for each in replay(side_by_side()).finished} == {"one two", "three"}


def test_looking_back_shows_them_one_after_the_other():
    for mine, plain in zip(places(side_by_side()), places(recording()), strict=True):
        assert (mine.shown, mine.drafts, mine.finished) == (plain.shown, plain.drafts, plain.finished)


def test_looking_back_at_a_stopped_run_shows_every_token():
    assert [view.shown.text for view in places(side_by_side()[:5])] == ["one", "three"]


def test_what_a_crash_has_cut_off_is_finished_or_goes_from_the_screen():
    begun = [each for each in recording() if not isinstance(each, DemoCompleted | RunCompleted)]
    left_out = replay([*begun, DemoCutOff("Sport", 1, finished=False), DemoCutOff("Sport", 2, finished=False)])
    assert [draft.label for draft in left_out.drafts] == ["News"]
    finished = replay([*begun, DemoCutOff("Sport", 1, finished=True), DemoCompleted(Demonstration("x", "Sport"), 1)])
    assert [each.demonstration.text for each in finished.completed] == ["x"]
    mixed = [begun[0], DemoCutOff("Sport", 2, finished=False), *begun[1:]]
    assert [type(each) for each in one_by_one(mixed)][-1] is DemoCutOff
