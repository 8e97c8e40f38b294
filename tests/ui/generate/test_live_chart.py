"""The live screen's values follow from the view alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dpicl_ui.generate.charts import MOST_BARS, live, picture_card, visible
from dpicl_ui.generate.run_view import RecipeView, RunView, looked_back, reduce, reduce_recipe
from mechanisms.accounting import PrivacyLedger
from mechanisms.noise import SecureRandomness
from mechanisms.runs.events import PrivateDiagnostics, TokenReleased
from mechanisms.runs.run import synthesize
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from tests.steps.test_contract import PRIVATE
from tests.synthesis.test_synthesize import dataset, request
from tests.toy_model import ToyModel
from tests.ui.generate.recipe_recording import voted
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


# Every mechanism's picture, live and from a run file: the same but for what the curator's screen alone may show.

PICTURED = {"adadpsyn", "svt-public", "blended-logits", "difference-clipping"}
CLIPPING = {"blended-logits", "difference-clipping"}


def places(card):
    for line in card["lines"]:
        yield from (end for span in line["spans"] for end in span)
        yield from (*line["marks"], *(line["clean"] or ()))


def replayed(events):
    """The picture at each token of a recording."""
    return [picture_card(view) for event, view in looked_back(events) if isinstance(event, TokenReleased)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIVATE)
def test_a_run_shows_the_same_picture_live_and_from_its_file_but_for_clean_values(name):
    # Of 30 rows 12 are expected: that nobody joins any text, so that nothing is clipped, comes once in 10^13 times.
    wanted = request(mechanism=mechanism_class(name)(), plan=SamplingPlan(subsets=12, tokens=5)).calibrated()
    told = list(synthesize(dataset(), wanted, ToyModel(), PrivacyLedger(), SecureRandomness(), curator=True))
    view, cards, curators = RecipeView(), [], []
    for event in told:
        view = reduce_recipe(view, event)
        if isinstance(event, TokenReleased):
            cards.append(picture_card(view))
        elif isinstance(event, PrivateDiagnostics):
            curators.append(picture_card(view))
    saved = to_lines([event for event in told if not isinstance(event, PrivateDiagnostics)])
    looked = replayed(from_lines(saved))
    key = json.dumps
    assert sorted(map(key, looked)) == sorted(map(key, cards)), "side by side, and one after the other"
    if name not in PICTURED:
        assert not any(cards)
        return
    json.dumps(cards, allow_nan=False)
    assert all(0 <= place <= 1 for card in (*cards, *curators) for place in places(card))
    assert all(line["clean"] is None for card in cards for line in card["lines"])
    shown = [any(line["clean"] for line in card["lines"]) for card in curators]
    assert any(shown) == (name in CLIPPING)
    assert all(
        "for your eyes only" in str(card["legend"]) for card, clean in zip(curators, shown, strict=True) if clean
    )


@pytest.mark.slow
def test_a_picture_of_candidates_names_them_as_text():
    mechanism = mechanism_class("difference-clipping")()
    view = reduce_recipe(RecipeView(), recording()[0])
    view = reduce_recipe(view, recording()[1])
    for public in ((3.0, 2.0, 1.0), (0.0, -1.0, 0.0)):  # a file may say anything
        last = reduce_recipe(view, token("News", 1, "one", scores=None, public=public)).run
        lines = picture_card(RecipeView(run=type(last)(**{**vars(last), "mechanism": mechanism})))["lines"]
        assert {line["words"] for line in lines} == {"·a", "·b", HOSTILE.replace(" ", "·")}
        assert all(line["token"] for line in lines)


@pytest.mark.slow
def test_votes_stand_round_by_round():
    cards = [picture_card(view) for _, view in looked_back(voted())]
    lines = [len(card["lines"]) for card in cards if card]
    assert set(lines) == {1, 2}
    card = next(card for card in cards if card and len(card["lines"]) == 2)
    first, second = card["lines"]
    assert (first["words"], second["words"]) == ("Round 1", "Round 2")
    assert len(second["marks"]) == 14
    assert second["spans"] == [[pytest.approx(sorted(second["marks"])[-2]), 1.0]]
    assert all(0 <= place <= 1 for place in places(card))
    assert cards[-1] is None, "once sets compete, the vote is over"
