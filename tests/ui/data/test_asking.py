"""How the model is asked: words proposed by columns, chosen by the person, in the sentence and in the steps after."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.data.cards import DraftPreview, Preview
from mechanisms.data.headers import suggested_names
from mechanisms.data.sources import EXAMPLES
from mechanisms.errors import SeveralErrors
from mechanisms.runs.drafts import Drafts
from mechanisms.runs.spec import RunSpec
from tests.toy_model import ToyModel
from tests.ui.data.tab import TAB, Tab
from tests.ui.tabs import lend
from tests.ui.trees import text_of

HOSTILE = "<img src=x onerror=alert(1)> ${message}"


# The words.


def test_columns_that_say_something_propose_words(tab: Tab):
    tab.upload("message", "department", "other")
    assert (tab.asked.kind, tab.asked.relation, tab.state.file.label_field) == ("message", "about", "Department")
    assert tab.values()[tab.step.words.kind] == "message"
    tab.upload("review", "sentiment", "other")
    assert (tab.asked.kind, tab.asked.relation) == ("review", "that is")
    tab.confirm()
    assert tab.state.confirmed is not None


def test_a_hostile_column_is_no_proposal(tab: Tab):
    tab.upload(HOSTILE, "Patient Smith", "other")
    tab.shown(tab.step._read_so(TAB, "names", "", "", None, "0"))
    public = {each.lower() for each in suggested_names("", "")[0]}
    assert {value for _, value in tab.step.words.kind.choices} <= public
    assert (tab.asked.kind, tab.state.file.label_field) == ("message", "Label")


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_brings_its_own_words(tab: Tab, example):
    shown = tab.shown(tab.step._example(example)(TAB))
    assert tab.asked == example.asked
    assert tab.step.words.read(tab.values()) == example.asked
    first = sorted(example.asked.words)[0]
    assert example.asked.of(first, sent=True) in text_of(shown[tab.step.words.said])


def test_the_sentence_is_shown_for_the_first_label_as_the_model_will_be_asked(tab: Tab):
    shown = tab.upload("message", "topic", "other")
    assert tab.asked.of("x") in text_of(shown[tab.step.words.said])
    said = tab.say(kind="note", writer="a nurse", reader="a ward", words="x = pain\ny = sleep")
    assert tab.asked.of("x", sent=True) in text_of(said[tab.step.words.said])
    assert "A nurse writes you one note about pain" in text_of(said[tab.step.words.said])
    lend(tab.step, loader=SimpleNamespace(plays_reader=False))
    said = tab.say(relation="on")
    assert "You are a nurse. Write one note on pain to a ward" in text_of(said[tab.step.words.said])
    own = tab.say(sentence="Send {label}!")
    assert "Send pain!" in text_of(own[tab.step.words.said])
    assert tab.step._choose(["y"], TAB)[tab.step.words.said] != own[tab.step.words.said]


def test_words_that_are_the_same_leave_what_was_confirmed(tab: Tab):
    """A browser sends them again whenever somebody walks over their fields by keys."""
    tab.upload("message", "topic", "other")
    tab.confirm()
    tab.say()
    confirmed = tab.state.confirmed
    assert confirmed
    tab.inspect("message", "topic")
    assert tab.state.confirmed is confirmed


def test_what_is_confirmed_has_the_words_on_the_screen_and_none_of_labels_that_take_no_part(tab: Tab):
    tab.upload("text", "label", "other")
    tab.step._allow(True, TAB)
    tab.say(words="x = joy\ny = grief")
    tab.confirm(kind=" patient\n letter ", writer="a patient")
    assert tab.state.confirmed is not None
    asked = tab.state.confirmed.asked
    assert (asked.kind, asked.writer, asked.words) == ("patient letter", "a patient", {"x": "joy", "y": "grief"})
    settled = RunSpec.of(**tab.state.confirmed.settled)
    assert settled.asked == asked
    assert (settled.text_field, settled.label_field, settled.sizes) == ("Patient letter", "Label", "counted")


# The last button.


def test_all_that_is_missing_is_told_at_once(tab: Tab):
    tab.upload("text", "label", "other")
    with pytest.raises(SeveralErrors) as missing:
        tab.confirm(["x"], name=" ", public=False, kind="")
    wanted = ("what one text is", "two labels", "a name", "Tick the box")
    assert len(missing.value.lines) == len(wanted)
    assert all(each in line for each, line in zip(wanted, missing.value.lines, strict=True))
    with pytest.raises(SeveralErrors, match="Tick the box.*epsilon for counting"):
        tab.confirm(public=False, sizes="measure", epsilon=0)
    assert tab.state.confirmed is None
    tab.confirm()
    assert tab.state.confirmed is not None


# Drafts of the words.


@pytest.fixture
def asked_for(monkeypatch) -> list[str]:
    """What drafts were asked for; a draft ends where nobody waits for it any more."""
    asked: list[str] = []

    def drafts(model: Any, wanted: Drafts, randomness: Any, going: Any) -> tuple[str, ...]:
        if not going():
            return ()
        asked.append(wanted.asked.of(wanted.label))
        return (f"{wanted.label} {HOSTILE}",)

    monkeypatch.setattr("dpicl_ui.data.cards.preview_drafts", drafts)
    monkeypatch.setattr("dpicl_ui.data.cards._QUIET", 0.0)
    return asked


@pytest.fixture
def previews(tab: Tab, asked_for) -> DraftPreview:
    """Step 1's preview with a file of the labels x and y, and a model that writes the same draft each time."""
    tab.upload("message", "topic", "other")
    lend(tab.step.drafts, loader=SimpleNamespace(model=ToyModel))
    return tab.step.drafts


def settle(previews: DraftPreview, *labels: str) -> Any:
    return previews._settle([*labels], TAB)


def written(previews: DraftPreview) -> Any:
    *_, last = previews._write(TAB)
    return last[previews.drafts]


def test_drafts_of_each_label_come_by_themselves_and_anew_when_the_words_change(tab: Tab, previews, asked_for):
    assert "Waiting" in text_of(settle(previews, "x", "y"))
    assert f"x {HOSTILE}" in text_of(written(previews))
    assert asked_for == [tab.asked.of("x"), tab.asked.of("y")]
    assert settle(previews, "x", "y") == {"__type__": "update"}, "the words are the same"
    assert list(previews._write(TAB)) == []
    tab.say(kind="ticket")
    settle(previews, "x", "y")
    assert "spinner" not in str(written(previews))
    assert "one ticket about" in asked_for[-1]
    settle(previews)
    assert written(previews) == [], "without labels none is left on the screen"


def test_newer_words_end_an_older_preview_and_words_that_come_back_are_written_again(previews, asked_for):
    settle(previews, "x", "y")
    going = previews._write(TAB)
    next(going)
    settle(previews, "x")
    assert [*going] == [{previews.drafts: []}]
    assert asked_for == []
    settle(previews, "x", "y")
    assert "spinner" not in str(written(previews))
    assert len(asked_for) == 2


@pytest.mark.parametrize("how", ["left", "closed", "another file"])
def test_who_leaves_the_step_ends_the_preview_and_finds_it_anew(tab: Tab, previews, asked_for, how: str):
    settle(previews, "x", "y")
    going = previews._write(TAB)
    next(going)
    if how == "left":
        previews._leave(TAB)
    elif how == "closed":
        tab.sessions.of(TAB).close()
    else:
        tab.upload("message", "topic", "other")
    assert [*going] == [{previews.drafts: []}]
    assert asked_for == []
    settle(previews, "x", "y")
    assert HOSTILE in text_of(written(previews))


def test_labels_that_change_while_older_ones_are_waited_for_are_the_ones_that_count(tab: Tab, previews, monkeypatch):
    newer = iter([("x",)])

    def pause(seconds: float) -> None:
        if (labels := next(newer, None)) is not None:
            assert "Waiting" in text_of(settle(previews, *labels))

    monkeypatch.setattr("dpicl_ui.data.cards.time.sleep", pause)
    assert settle(previews, "x", "y") == {"__type__": "update"}
    assert tab.sessions.of(TAB).of(Preview).wanted.labels == ("x",)
