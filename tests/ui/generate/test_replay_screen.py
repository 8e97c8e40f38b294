"""A replay's values: every place of a recording once, as its screens are, small, and plain JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.generate import replay as replays
from dpicl_ui.generate.replay import looked_back, replay_screen, replayed, screens
from mechanisms.runs.events import DemoStarted, TokenReleased
from tests.ui.generate.recording import STORIES, recording, token


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


@pytest.mark.parametrize("story", ["tokens", "both"])
def test_each_token_of_a_text_leads_to_its_place(story):
    made = replay_screen(STORIES[story])
    places = [event for event, _ in looked_back(STORIES[story])]
    pieces = [each for text in made["texts"] for each in text]
    tokens = [i for i, each in enumerate(places) if isinstance(each, TokenReleased)]
    assert [each["place"] for each in pieces if each["place"] is not None] == tokens
    assert "".join(each["text"] for each in made["texts"][0]) == f"Just one two{replays._SILENT}"
    for place, (event, frame) in enumerate(zip(places, made["frames"], strict=True)):
        if isinstance(event, TokenReleased):
            text = made["texts"][made["parts"]["live"][frame["at"]["live"]]["tokens"]]
            assert place in [each["place"] for each in text]


def test_a_free_token_and_the_opening_are_told_apart():
    events = [
        *recording()[:3],
        token("News", 1, "Just a", candidates=(" a", "b", "c"), free=True),
        token("News", 2, "Just a b", candidates=("a", " b", "c"), chosen=1),
    ]
    opening, free, paid = replay_screen(events)["texts"][0]
    assert opening == {"text": "Just", "place": None}
    assert (free["text"], free["free"], paid["text"], paid["free"]) == (" a", True, " b", False)


@given(st.lists(st.text(alphabet="ab �\n", max_size=6), min_size=1, max_size=6))
def test_whatever_the_texts_the_pieces_make_the_last_one(texts):
    opening = recording()[:3]
    events = [*opening, *(token("News", step, text) for step, text in enumerate(texts, 1))]
    pieces = replay_screen(events)["texts"][0]
    assert len([each for each in pieces if each["place"] is not None]) == len(texts)
    said = ["" if each["text"] == replays._SILENT else each["text"] for each in pieces]
    assert "".join(said) == texts[-1]


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
    begun = [recording()[0], *(DemoStarted("News", number) for number in range(1, 50))]
    assert len(replayed(begun).writing) == 1
