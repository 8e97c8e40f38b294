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
from dpicl_ui.generate.charts import openings_card, stages_card, vote_card, writes
from dpicl_ui.generate.replay import looked_back, replayed, screens
from mechanisms.runs.events import (
    RunEvent,
    RunFailed,
    RunStopped,
    StageProgress,
    TokenReleased,
)
from mechanisms.runs.spec import VOTE
from mechanisms.runs.view import RunView, fold
from tests.ui.generate.recording import STORIES, recording
from tests.ui.trees import tags, text_of

TAGS = {
    "div", "span", "p", "h3", "h4", "ul", "li", "strong", "details", "summary", "dl", "dt", "dd", "table", "thead",
    "tbody", "tr", "th", "td",
}  # fmt: skip


def folded(events: Iterable[RunEvent]) -> RunView:
    return functools.reduce(fold, events, RunView())


def places(events: Iterable[RunEvent]) -> list[RunView]:
    return [view for event, view in looked_back(events) if isinstance(event, TokenReleased)]


def test_a_failure_says_why_and_what_is_kept():
    failed = RunFailed("The cap is reached.")
    assert outcome_of_run(fold(RunView(), failed)) == ("The cap is reached.", "bad")
    assert outcome_of_run(fold(folded(recording()[:-1]), failed))[0].endswith("What was released before is kept.")


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


@pytest.mark.parametrize("story", STORIES)
def test_looking_back_shows_one_more_thing_with_every_step(story):
    events = STORIES[story]
    views = [view for _, view in looked_back(events)]
    assert len(views) >= 4
    seen = [json.dumps(screens(view)) for view in views]
    assert all(one != other for one, other in itertools.pairwise(seen))
    assert screens(views[-1]) == screens(replayed(events))


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
