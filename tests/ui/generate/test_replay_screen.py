"""A replay's values: every place of a recording once, as its screens are, small, and plain JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from dpicl_ui.generate.run_view import looked_back, replay_recipe
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.generate import replay as replays
from dpicl_ui.generate.replay import replay_screen, screens
from mechanisms.runs.events import DemoStarted, TokenReleased
from mechanisms.runs.run_file import from_lines
from tests.runs.runs import KINDS, file_of, recorded
from tests.ui.generate.recipe_recording import STORIES
from tests.ui.generate.recording import recording, token


@pytest.mark.parametrize("story", STORIES)
def test_every_place_is_there_as_its_screens_are(story):
    made = replay_screen(STORIES[story])
    json.dumps(made, allow_nan=False)
    views = [view for _, view in looked_back(STORIES[story])]
    assert len(made["frames"]) == len(views)
    for frame, view in zip(made["frames"], views, strict=True):
        shown = {screen: made["parts"][screen][at] for screen, at in frame["at"].items()}
        live = {name: each for name, each in (shown.pop("live") or {}).items() if name != "tokens"} or None
        assert shown | {"live": live} == screens(view)
    assert len({frame["name"] for frame in made["frames"]}) > 1


@pytest.mark.parametrize("story", sorted(set(STORIES) - {"tokens"}))
def test_a_screen_that_stays_is_sent_once(story):
    parts = replay_screen(STORIES[story])["parts"]
    assert len(parts["own-score"]) <= 2 < len(replay_screen(STORIES[story])["frames"])
    assert len(parts["run-stages"]) < 8


@pytest.mark.parametrize("story", ["tokens", "both"])
def test_each_token_of_a_text_leads_to_its_place(story):
    made = replay_screen(STORIES[story])
    places = [event for event, _ in looked_back(STORIES[story])]
    pieces = [each for text in made["texts"] for each in text]
    assert [each["place"] for each in pieces] == [i for i, each in enumerate(places) if isinstance(each, TokenReleased)]
    assert "".join(each["text"] for each in made["texts"][0]) == f"one two{replays._SILENT}"
    for place, (event, frame) in enumerate(zip(places, made["frames"], strict=True)):
        if isinstance(event, TokenReleased):
            text = made["texts"][made["parts"]["live"][frame["at"]["live"]]["tokens"]]
            assert place in [each["place"] for each in text]


def test_a_free_token_and_a_forced_text_are_told_apart():
    opening = recording()[:2]
    schema = replace(opening[0].demo_set, template=replace(opening[0].demo_set.template, output="Answer"))
    events = [
        replace(opening[0], demo_set=schema),
        opening[1],
        token("News", 1, "a", candidates=("a", "b", "c"), free=True),
        token("News", 2, "a\nAnswer: b", candidates=("a", " b", "c"), chosen=1),
    ]
    first, forced, second = replay_screen(events)["texts"][0]
    assert (first["text"], first["free"], forced, second["text"]) == (
        "a",
        True,
        {"text": "\nAnswer:", "place": None},
        " b",
    )
    assert not second["free"]


@given(st.lists(st.text(alphabet="ab �\n", max_size=6), min_size=1, max_size=6))
def test_whatever_the_texts_the_pieces_make_the_last_one(texts):
    opening = recording()[:2]
    events = [*opening, *(token("News", step, text) for step, text in enumerate(texts, 1))]
    pieces = replay_screen(events)["texts"][0]
    assert len(pieces) == len(texts)
    said = ["" if each["text"] == replays._SILENT else each["text"] for each in pieces]
    assert "".join(said) == texts[-1]


def test_a_long_recording_is_cut_and_says_so(monkeypatch):
    assert not replay_screen(recording())["cut"]
    monkeypatch.setattr(replays, "MOST_PLACES", 3)
    made = replay_screen(recording())
    assert (len(made["frames"]), made["cut"]) == (3, True)


@pytest.mark.parametrize("story", STORIES)
def test_a_large_screen_is_cut_and_says_so(story, monkeypatch):
    """What is shown of it is its beginning."""
    whole = replay_screen(STORIES[story])
    size = len(json.dumps(whole["parts"]))
    monkeypatch.setattr(replays, "MOST_CHARACTERS", size // 2)
    made = replay_screen(STORIES[story])
    assert made["cut"]
    assert 0 < len(made["frames"]) < len(whole["frames"])
    assert made["frames"] == whole["frames"][: len(made["frames"])]
    assert len(json.dumps(made["parts"])) < size


def test_drafts_that_are_never_finished_are_looked_at_one_at_a_time():
    """Every draft in progress is gone through for each token, and a file may begin thousands."""
    begun = [recording()[0], *(DemoStarted("News", number, None) for number in range(1, 50))]
    assert len(replay_recipe(begun).run.drafts) == 1


def test_without_a_recording_there_is_no_replay():
    assert replay_screen([]) is None
    assert replay_screen(recording()[:2]) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_run_replays_as_it_was(kind):
    assert replay_screen(from_lines(file_of(kind))) == replay_screen(recorded(kind))
