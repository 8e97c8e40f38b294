"""Every mechanism's picture, live and from a run file: the same but for what the curator's screen alone may show."""

from __future__ import annotations

import json

import pytest

from dpicl_ui.generate.charts import picture_card
from dpicl_ui.generate.run_view import RecipeView, looked_back, reduce_recipe
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
from tests.ui.generate.recording import HOSTILE, recording, token

pytestmark = pytest.mark.slow

PICTURED = {"adadpsyn", "svt-public", "blended-logits", "difference-clipping"}
CLIPPING = {"blended-logits", "difference-clipping"}


def places(card):
    for line in card["lines"]:
        yield from (end for span in line["spans"] for end in span)
        yield from (*line["marks"], *(line["clean"] or ()))


def replayed(events):
    """The picture at each token of a recording."""
    return [picture_card(view) for event, view in looked_back(events) if isinstance(event, TokenReleased)]


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


def test_a_picture_of_candidates_names_them_as_text():
    mechanism = mechanism_class("difference-clipping")()
    view = reduce_recipe(RecipeView(), recording()[0])
    view = reduce_recipe(view, recording()[1])
    for public in ((3.0, 2.0, 1.0), (0.0, -1.0, 0.0)):  # a file may say anything
        last = reduce_recipe(view, token("News", 1, "one", scores=None, public=public)).run
        lines = picture_card(RecipeView(run=type(last)(**{**vars(last), "mechanism": mechanism})))["lines"]
        assert {line["words"] for line in lines} == {"·a", "·b", HOSTILE.replace(" ", "·")}
        assert all(line["token"] for line in lines)


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
