"""The screen of a run is a function of its events."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.generate.cards import finished, outcome_of_run, score_card
from dpicl_ui.generate.charts import choice_card, live, stages_card, vote_card
from dpicl_ui.generate.run_view import (
    RecipeView,
    RunView,
    looked_back,
    one_by_one,
    reduce,
    reduce_recipe,
    replay_recipe,
)
from mechanisms.records import Demonstration
from mechanisms.runs.events import (
    DemoCompleted,
    DemoCutOff,
    RunCompleted,
    RunFailed,
    RunStopped,
    StageProgress,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.recipe import Stage
from tests.ui.generate.recipe_recording import STORIES, recipe_set, started, voted, winners
from tests.ui.generate.recording import CLEAN, demo_set, recording
from tests.ui.generate.replaying import replay
from tests.ui.test_drawing import tags
from tests.ui.trees import text_of


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


# The screens of a recipe's run follow from its events, wherever these end.

TAGS = {
    "div", "span", "p", "h3", "ul", "li", "strong", "details", "summary", "dl", "dt", "dd", "table", "thead", "tbody",
    "tr", "th", "td",
}  # fmt: skip


def screens(view: RecipeView) -> list[object]:
    return [
        stages_card(view),
        live(view.run) if view.writing else None,
        vote_card(view),
        choice_card(view),
        score_card(view),
        finished(view),
        outcome_of_run(view),
    ]


def numbers(tree) -> list[float]:
    if isinstance(tree, dict):
        return [*tree.get("numbers", {}).values(), *(n for child in tree["children"] for n in numbers(child))]
    return [n for each in tree for n in numbers(each)] if isinstance(tree, list) else []


@pytest.mark.parametrize("story", STORIES)
def test_every_beginning_of_a_story_is_a_screen(story):
    events = STORIES[story]
    view = RecipeView()
    for place in range(len(events) + 1):
        trees = [stages_card(view), choice_card(view), score_card(view), finished(view)]
        json.dumps(screens(view), allow_nan=False)
        assert tags(trees) <= TAGS
        assert all(0 <= number <= 1 for number in numbers(trees))
        assert not (view.writing and vote_card(view))
        assert replay_recipe(events[:place]) == view
        if place < len(events):
            view = reduce_recipe(view, events[place])
    assert view.run.phase == "completed"
    assert view.made == view.run.demo_set


@given(
    st.sampled_from(sorted(STORIES)),
    st.integers(0, 40),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=5),
    st.booleans(),
)
def test_a_run_may_end_anywhere_and_progress_changes_nothing_that_lasts(story, place, done, fails):
    events = STORIES[story][: 1 + place]
    view = replay_recipe(events)
    seen = view
    for each in done:
        seen = reduce_recipe(seen, StageProgress(Stage.VOTE, each))
    assert 0 <= seen.done <= 1
    end = RunFailed("The cap is reached.") if fails else RunStopped(recipe_set(*view.demonstrations))
    ended = reduce_recipe(seen, end)
    json.dumps(screens(ended), allow_nan=False)
    assert ended.demonstrations == view.demonstrations
    assert ended.run.phase == ("failed" if fails else "stopped")
    assert outcome_of_run(ended)[0]


def test_a_run_without_stages_is_the_run_of_its_tokens():
    view = replay_recipe(recording())
    assert view == RecipeView(replay(recording()))
    assert view.writing
    assert (stages_card(view), vote_card(view), choice_card(view), score_card(view)) == ([], None, [], [])
    assert view.demonstrations == view.run.finished


def test_tokens_of_a_recipe_use_the_same_chart():
    recipe, plain = (
        [live(view.run) for event, view in looked_back(events) if isinstance(event, TokenReleased)]
        for events in (STORIES["both"], recording())
    )
    assert recipe == plain
    assert {each["chart"]["noise"] for each in recipe} == {20.0}
    assert {each["chart"]["rows"] for each in recipe} == {8}


@pytest.mark.parametrize("story", STORIES)
def test_looking_back_shows_one_more_thing_with_every_step(story):
    events = STORIES[story]
    views = [view for _, view in looked_back(events)]
    assert len(views) >= 4
    seen = [json.dumps(screens(view)) for view in views]
    assert all(one != other for one, other in itertools.pairwise(seen))
    assert screens(views[-1]) == screens(replay_recipe(events))


def test_looking_back_has_no_progress_and_no_clean_values():
    view = replay_recipe(STORIES["both"][:4])
    watched = reduce_recipe(reduce_recipe(view, CLEAN), StageProgress(Stage.WRITE, 0.4))
    assert watched.done == 0.4
    assert watched.run.shown.clean == CLEAN.clean
    assert any(0.4 in numbers(each) for each in [stages_card(watched)])
    assert numbers(stages_card(view)) == []


def test_demonstrations_are_those_known_best():
    events = voted()
    seen = [replay_recipe(events[: place + 1]).demonstrations for place in range(len(events))]
    assert seen[0] == ()
    after_first_vote = seen[[isinstance(event, VotesReleased) for event in events].index(True)]
    assert [each.text for each in after_first_vote] == ["News draft 3 of round 1"]
    assert seen[-1] == winners(0)
    assert "best until the choice" in text_of(finished(replay_recipe(events[:6])))
    assert "2 of 2" in text_of(finished(replay_recipe(events)))


def test_written_demonstrations_give_way_to_winners_label_by_label():
    events = STORIES["both"]
    first = [isinstance(event, VotesReleased) for event in events].index(True)
    assert [each.text for each in replay_recipe(events[: first - 1]).demonstrations] == ["one two", "three"]
    known = replay_recipe(events[: first + 1]).demonstrations
    assert [each.text for each in known] == ["News draft 3 of round 1", "three"]


def test_no_demonstrations_is_a_result_of_its_own():
    view = replay_recipe(STORIES["none"])
    assert view.demonstrations == ()
    assert view.made is not None
    for words in (text_of(finished(view)), outcome_of_run(view)[0]):
        assert "answers best without examples" in words
        assert "measured prior alone" in words


def test_nothing_is_kept_of_a_run_that_released_nothing():
    assert RecipeView().made is None
    assert replay_recipe([started((Stage.VOTE,))]).made is None


def marks(view: RecipeView) -> list[str]:
    return [each["class"].split()[1] for each in stages_card(view)[0]["children"]]


def test_stages_are_done_one_after_the_other():
    events = voted()
    seen = [marks(replay_recipe(events[: place + 1])) for place in range(len(events))]
    assert seen[0] == ["later"] * 4
    assert seen[1] == ["current", "later", "later", "later"]
    assert seen[-2] == ["done", "done", "done", "current"]
    assert seen[-1] == ["done"] * 4
    assert all(each.count("current") <= 1 for each in seen)
    assert marks(reduce_recipe(replay_recipe(events[:4]), RunFailed("No.")))[0] == "later"
