"""The live screen's values follow from the view alone."""

from __future__ import annotations

import json
from dataclasses import replace

from dpicl_ui.generate.charts import MOST_BARS, live, visible
from dpicl_ui.generate.run_view import RunView, looked_back, reduce
from tests.ui.generate.recording import CLEAN, HOSTILE, recording, token
from tests.ui.generate.replaying import replay


def place(number: int) -> RunView:
    """The recording's view with its `number`-th token."""
    return [view.run for _, view in looked_back(recording())][number - 1]


def test_it_is_plain_json_and_small():
    view = live(place(2))
    assert len(json.dumps(view)) < 2000
    assert view["text"] + view["fresh"] == "one two"
    assert view["fresh"] == " two"
    assert view["count"] == "token 2 of at most 3"


def test_before_the_first_token_there_is_no_chart():
    assert live(RunView())["chart"] is None
    assert live(replay(recording()[:2]))["chart"] is None


def test_bars_are_ordered_by_the_value_that_decided():
    chart = live(place(1))["chart"]
    assert [bar["value"] for bar in chart["bars"]] == [7.0, 2.0, -1.5]
    assert [bar["chosen"] for bar in chart["bars"]] == [True, False, False]
    assert chart["domain"][0] <= -1.5
    assert chart["domain"][1] >= 7.0
    assert chart["noise"] == 20.0


def test_hostile_tokens_stay_text():
    chart = live(place(1))["chart"]
    assert visible(HOSTILE) in {bar["token"] for bar in chart["bars"]}


def test_the_chosen_token_is_shown_even_when_it_ranks_low():
    candidates = tuple(f"t{i}" for i in range(50))
    values = tuple(float(-i) for i in range(50))
    events = [*recording()[:2], token("News", 1, "x", candidates, chosen=45, scores=values, public=values)]
    bars = live(replay(events))["chart"]["bars"]
    assert len(bars) == MOST_BARS
    assert [bar["token"] for bar in bars if bar["chosen"]] == ["t45"]


def test_tokens_that_look_alike_have_a_bar_each():
    events = [*recording()[:2], token("News", 1, "x", candidates=("", "", " a"))]
    bars = live(replay(events))["chart"]["bars"]
    assert [(bar["token"], bar["value"]) for bar in bars] == [("end of text", 7.0), ("·a", 2.0), ("end of text", -1.5)]


def test_where_only_the_token_is_released_no_noisy_value_is_drawn():
    chart = live(replay([*recording()[:2], token("News", 1, "x", scores=None)]))["chart"]
    assert not chart["noisy"]
    assert chart["noise"] is None
    assert [bar["value"] for bar in chart["bars"]] == [3.0, 2.0, 1.0]


def test_a_free_token_is_called_free_and_shows_no_noisy_value():
    paid, free = (
        live(replay([*recording()[:2], token("News", 1, "x", scores=None, free=each)])) for each in (False, True)
    )
    assert paid["count"] == "token 1 of at most 3"
    assert free["count"] == "token 1 of at most 3, free"
    assert (paid["chart"]["free"], free["chart"]["free"]) == (False, True)
    assert not free["chart"]["noisy"]


def test_clean_values_appear_only_behind_the_curators_switch():
    view = place(1)
    assert all(bar["clean"] is None for bar in live(view)["chart"]["bars"])
    chart = live(reduce(view, CLEAN))["chart"]
    assert chart["clean"]
    assert [bar["clean"] for bar in chart["bars"]] == [6.0, 1.0, 1.0]


def test_spaces_and_line_breaks_are_visible():
    assert visible(" a\n") == "·a⏎"
    assert visible("") == "end of text"


def test_a_bound_on_the_rows_is_said_where_the_certificate_has_one():
    begun, *rest = recording()[:3]
    held = begun.demo_set.certificate
    clipped = replace(held, parameters={**held.parameters, "clip": 0.25})
    bounded = replace(begun, demo_set=replace(begun.demo_set, certificate=clipped))
    charts = [live(replay([each, *rest]))["chart"] for each in (begun, bounded)]
    assert [each["clip"] for each in charts] == [None, 0.25]
