"""The live screen's values follow from the view alone."""

from __future__ import annotations

import functools
import json

import pytest

from dpicl_ui.generate.charts import live, picture_card, visible
from dpicl_ui.generate.replay import looked_back
from mechanisms.accounting import PrivacyLedger
from mechanisms.noise import SecureRandomness
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import PrivateDiagnostics, TokenReleased
from mechanisms.runs.plan import plan_for
from mechanisms.runs.run import run
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.view import RunView, fold
from mechanisms.steps import mechanism_class, mechanism_names
from tests.ui.generate.recording import CLEAN, HOSTILE, recording, token
from tests.word_model import WordModel


def after(*events) -> RunView:
    return functools.reduce(fold, events, RunView())


def place(number: int) -> RunView:
    """The recording's view with its `number`-th token."""
    return [view for event, view in looked_back(recording()) if isinstance(event, TokenReleased)][number - 1]


def with_token(*arguments, **changes) -> RunView:
    return after(*recording()[:3], token("News", 1, "x", *arguments, **changes))


def test_before_the_first_token_there_is_no_chart_and_the_opening_stands():
    assert live(RunView())["chart"] is None
    begun = live(after(*recording()[:3]))
    assert (begun["chart"], begun["text"] + begun["fresh"]) == (None, "Just")


def test_each_candidate_has_its_noisy_value_its_public_one_and_the_one_that_decided():
    chart = live(place(2))["chart"]
    assert chart["read"]
    assert [(bar["value"], bar["public"], bar["decided"]) for bar in chart["bars"]] == [
        (7.0, 3.0, 4.0),
        (2.0, 1.0, 2.0),
        (-1.5, 2.0, 1.0),
    ]
    far = live(with_token(values=(90.0, 0.0, -90.0)))["chart"]
    assert far["domain"] == [-90.0, 90.0], "what decided is on the axis"
    plain = live(place(1))["chart"]
    assert not plain["read"]
    assert {bar["decided"] for bar in plain["bars"]} == {None}


def test_hostile_tokens_stay_text():
    chart = live(place(1))["chart"]
    assert visible(HOSTILE) in {bar["token"] for bar in chart["bars"]}


def test_where_only_the_token_is_released_no_noisy_value_is_drawn():
    chart = live(with_token(scores=None))["chart"]
    assert not chart["noisy"]
    assert chart["noise"] is None
    assert [bar["value"] for bar in chart["bars"]] == [3.0, 2.0, 1.0]


def test_a_free_token_is_called_free_and_shows_no_noisy_value():
    paid, free = (live(with_token(scores=None, free=each)) for each in (False, True))
    assert paid["count"] == "token 1 of at most 3"
    assert free["count"] == "token 1 of at most 3, free"
    assert (paid["chart"]["free"], free["chart"]["free"]) == (False, True)
    assert not free["chart"]["noisy"]


def test_clean_values_appear_only_behind_the_curators_switch():
    view = place(1)
    assert all(bar["clean"] is None for bar in live(view)["chart"]["bars"])
    chart = live(fold(view, CLEAN))["chart"]
    assert chart["clean"]
    assert [bar["clean"] for bar in chart["bars"]] == [6.0, 1.0, 1.0]


# Every mechanism's picture, live and from a run file: the same but for what the curator's screen alone may show.

PICTURED = {"adadpsyn", "svt-public", "blended-logits", "difference-clipping"}
PRIVATE = [
    name
    for name in mechanism_names()
    if mechanism_class(name).uses_private_rows and not mechanism_class(name).not_private
]
CLIPPING = {"blended-logits", "difference-clipping"}
ROWS = Dataset("d", ("a", "b"), tuple(Record(f"canary {i}", label) for label in "ab" for i in range(30)))


def places(card):
    for line in card["lines"]:
        yield from (end for span in line["spans"] for end in span)
        yield from (*line["marks"], *(line["clean"] or ()))


def pictures(events):
    """The picture at each token of a recording."""
    return [picture_card(view) for event, view in looked_back(events) if isinstance(event, TokenReleased)]


@pytest.mark.slow
@pytest.mark.usefixtures("any_text_passes")
@pytest.mark.parametrize("name", PRIVATE)
def test_a_run_shows_the_same_picture_live_and_from_its_file_but_for_clean_values(name):
    # Of 30 rows 12 are expected: that nobody joins any text, so that nothing is clipped, comes once in 10^13 times.
    spec = RunSpec.of(recipe="tokens", sizes="counted", mechanism=name, subsets=12, tokens=5, shots=1)
    wanted = plan_for(spec, ROWS).calibrated()
    told = list(run(wanted, ROWS, WordModel(), PrivacyLedger(), SecureRandomness(), curator=True))
    view, cards, curators = RunView(), [], []
    for event in told:
        view = fold(view, event)
        if isinstance(event, TokenReleased):
            cards.append(picture_card(view))
        elif isinstance(event, PrivateDiagnostics):
            curators.append(picture_card(view))
    saved = to_lines([event for event in told if not isinstance(event, PrivateDiagnostics)])
    looked = pictures(from_lines(saved))
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
