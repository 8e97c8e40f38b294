"""The screens of a run follow from its events, wherever these end."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.generate.cards import finished, outcome_of_run, score_of_run
from dpicl_ui.generate.charts import live, openings_card, stages_card, vote_card, writes
from dpicl_ui.generate.replay import looked_back, replayed, screens
from mechanisms.records import Demonstration
from mechanisms.runs.events import (
    DemoCompleted,
    DemoCutOff,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunStopped,
    SetKept,
    StageProgress,
    TokenReleased,
)
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.runs.spec import VOTE, WRITE
from mechanisms.runs.view import RunView, fold, one_by_one
from tests.ui.generate.recording import CLEAN, STORIES, demo_set, plan, recording
from tests.ui.trees import tags, text_of

IN_STAGES = ["both", "vote"]
TAGS = {
    "div", "span", "p", "h3", "h4", "ul", "li", "strong", "details", "summary", "dl", "dt", "dd", "table", "thead",
    "tbody", "tr", "th", "td",
}  # fmt: skip


def folded(events: Iterable[RunEvent]) -> RunView:
    return functools.reduce(fold, events, RunView())


def places(events: Iterable[RunEvent]) -> list[RunView]:
    return [view for event, view in looked_back(events) if isinstance(event, TokenReleased)]


def test_a_recording_replays_the_whole_screen():
    view = folded(recording())
    assert (view.phase, view.progress) == ("completed", 1.0)
    assert [each.text for each in view.standing] == ["Just one two", "three"]
    assert view.tokens == 4
    assert view.budget.epsilon == 1.0


@pytest.mark.parametrize("story", STORIES)
def test_progress_never_falls(story):
    events = STORIES[story]
    progress = [folded(events[: i + 1]).progress for i in range(len(events))]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


def test_the_last_token_is_told_apart_from_the_text_before():
    first, second, *_ = places(recording())
    assert (first.shown.before, first.shown.text) == ("Just", "Just one"), "what it begins with was there before"
    assert (second.shown.before, second.shown.text) == ("Just one", "Just one two")


def test_clean_values_last_for_one_token_only():
    events = recording()
    at = next(i for i, event in enumerate(events) if isinstance(event, TokenReleased))
    view = fold(folded(events[: at + 1]), CLEAN)
    assert view.shown.private == CLEAN
    assert fold(view, events[at + 1]).shown.private is None
    assert folded(events).shown.private is None


def test_a_failure_says_why_and_what_is_kept():
    failed = RunFailed("The cap is reached.")
    assert outcome_of_run(fold(RunView(), failed)) == ("The cap is reached.", "bad")
    assert outcome_of_run(fold(folded(recording()[:-1]), failed))[0].endswith("What was released before is kept.")


def side_by_side() -> list[RunEvent]:
    """The recording, had its two demonstrations been written together."""
    told = [event for event in recording() if not isinstance(event, SetKept)]
    begun, stage, news, *tokens, whole, sport, three, done, end = told
    return [begun, stage, news, sport, tokens[0], three, done, *tokens[1:], whole, end]


def test_demonstrations_written_side_by_side_keep_their_own_tokens():
    view = folded(side_by_side()[:6])
    assert [(each.label, each.text) for each in view.writing] == [("News", "Just one"), ("Sport", "three")]
    assert view.shown.label == "News", "the screen stays with one demonstration until it is whole"
    assert fold(view, CLEAN).writing[1].private is None


def test_looking_back_shows_them_one_after_the_other():
    for mine, plain in zip(places(side_by_side()), places(recording()), strict=True):
        assert (mine.shown, mine.writing, mine.completed) == (plain.shown, plain.writing, plain.completed)
    assert [view.shown.text for view in places(side_by_side()[:6])] == ["Just one", "three"], "of a stopped run too"


def test_what_a_crash_has_cut_off_is_finished_or_goes_from_the_screen():
    begun = [each for each in recording() if not isinstance(each, DemoCompleted | RunCompleted | SetKept)]
    left_out = folded([*begun, DemoCutOff("Sport", 1, finished=False), DemoCutOff("Sport", 2, finished=False)])
    assert [each.label for each in left_out.writing] == ["News"]
    whole = folded([*begun, DemoCutOff("Sport", 1, finished=True), DemoCompleted(Demonstration("x", "Sport"), 1)])
    assert [each.demonstration.text for each in whole.completed] == ["x"]
    mixed = [begun[0], DemoCutOff("Sport", 2, finished=False), *begun[1:]]
    assert [type(each) for each in one_by_one(mixed)][-1] is DemoCutOff


def numbers(tree) -> list[float]:
    if isinstance(tree, dict):
        return [*tree.get("numbers", {}).values(), *(n for child in tree["children"] for n in numbers(child))]
    return [n for each in tree for n in numbers(each)] if isinstance(tree, list) else []


def trees(view: RunView) -> list:
    cards = (stages_card, openings_card, vote_card, score_of_run, finished)
    return [tree for card in cards for tree in card(view)]


@pytest.mark.parametrize("story", STORIES)
def test_every_beginning_of_a_story_is_a_screen(story):
    view = RunView()
    for event in STORIES[story]:
        view = fold(view, event)
        json.dumps(screens(view), allow_nan=False)
        assert tags(trees(view)) <= TAGS
        assert all(0 <= number <= 1 for number in numbers(trees(view)))
        assert sum(map(bool, (writes(view), openings_card(view), vote_card(view)))) == 1, "one picture at a time"
    assert view.phase == "completed"


@given(st.sampled_from(sorted(STORIES)), st.integers(0, 40), st.lists(st.floats(0, 1), max_size=5), st.booleans())
def test_a_run_may_end_anywhere_and_progress_changes_nothing_that_lasts(story, place, done, fails):
    view = folded(STORIES[story][: 1 + place])
    seen = functools.reduce(fold, (StageProgress(VOTE, each) for each in done), view)
    end = RunFailed("The cap is reached.") if fails else RunStopped(view.demo_set)
    ended = fold(seen, end)
    json.dumps(screens(ended), allow_nan=False)
    assert ended.standing == view.standing
    assert ended.phase == ("failed" if fails else "stopped")
    assert outcome_of_run(ended)[0]


def test_a_run_that_only_writes_has_no_other_pictures():
    view = folded(recording())
    assert writes(view)
    assert (openings_card(view), vote_card(view), score_of_run(view)) == ([], [], [])
    assert stages_card(view) == []


def test_tokens_of_a_run_in_stages_use_the_same_chart():
    staged, plain = ([live(view)["chart"] for view in places(STORIES[story])] for story in ("both", "tokens"))
    assert staged == plain
    assert {each["noise"] for each in staged} == {20.0}
    assert {each["rows"] for each in staged} == {8}


@pytest.mark.parametrize("story", STORIES)
def test_looking_back_shows_one_more_thing_with_every_step(story):
    events = STORIES[story]
    views = [view for _, view in looked_back(events)]
    assert len(views) >= 4
    seen = [json.dumps(screens(view)) for view in views]
    assert all(one != other for one, other in itertools.pairwise(seen))
    assert screens(views[-1]) == screens(replayed(events))


def test_looking_back_has_no_progress_and_no_clean_values():
    events = STORIES["both"]
    view = replayed(events[: 2 + next(i for i, event in enumerate(events) if isinstance(event, TokenReleased))])
    watched = fold(fold(view, CLEAN), StageProgress(WRITE, 0.4))
    assert watched.shown.private == CLEAN
    assert 0.4 in numbers(stages_card(watched))
    assert numbers(stages_card(view)) == []


@pytest.mark.parametrize("story", IN_STAGES)
def test_the_openings_are_the_first_picture_and_stand_until_there_is_another(story):
    events = STORIES[story]
    first, *rest = [view for _, view in looked_back(events)]
    assert openings_card(first)
    assert not any(openings_card(view) for view in rest)
    assert not writes(first)


def test_demonstrations_are_those_known_best():
    events = STORIES["both"]
    seen = [folded(events[: place + 1]).standing for place in range(len(events))]
    assert seen[0] == ()
    assert ["Just one two", "three"] in [[each.text for each in standing] for standing in seen]
    assert [each.text for each in seen[-1]] == ["News draft 2", "Sport draft 2"]
    assert "2 of 2" in text_of(finished(folded(events)))
    out_of_its_file = from_lines(to_lines(events))
    assert folded(out_of_its_file[:-1]).standing == seen[-1], "the sets that rows read under are told"


def marks(view: RunView) -> list[str]:
    return [each["class"].split()[1] for each in stages_card(view)[0]["children"]]


def test_stages_are_done_one_after_the_other():
    events = STORIES["vote"]
    seen = [marks(folded(events[: place + 1])) for place in range(len(events))]
    assert seen[0] == ["later"] * 4
    assert seen[1] == ["current", "later", "later", "later"]
    assert seen[-2] == ["done", "done", "done", "current"]
    assert seen[-1] == ["done"] * 4
    assert all(each.count("current") <= 1 for each in seen)
    assert marks(fold(folded(events[:2]), RunFailed("No.")))[0] == "later"


def test_what_the_gate_refused_is_counted_with_its_reason():
    view = folded(STORIES["refused"])
    assert "1 text was refused: it breaks off (1)." in text_of(finished(view))
    assert [each.label for each in view.standing] == ["News"]
    assert "refused" not in text_of(finished(folded(recording())))


def test_it_is_told_how_many_tokens_are_the_rows_doing():
    said = outcome_of_run(folded(recording()))[0]
    assert "1 of 4 tokens are your rows' doing" in said  # of two with values, the second is not the likeliest
    assert said.endswith("step 5.")
    assert "doing" not in outcome_of_run(folded(STORIES["vote"]))[0]


def test_the_certificate_alone_says_what_was_planned():
    view = folded(recording()[:1])
    assert view.plan.sampling == plan().sampling
    assert demo_set().certificate == view.demo_set.certificate
