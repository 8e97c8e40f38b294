"""The sets that compete: names in a public order, labels by turns, no text twice."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.errors import UsageError
from mechanisms.records import Demonstration, PromptTemplate, default_template
from mechanisms.runs.score import read_set, with_choice
from mechanisms.runs.sets import NONE, PLAIN, PUBLIC, candidate_sets, interleaved, wordings

LABELS = ("red", "blue", "green")
OWN = default_template(LABELS, "Note", "Colour")


def texts(what: str, count: int) -> dict[str, tuple[str, ...]]:
    return {label: tuple(f"{what} {label} {i}" for i in range(count)) for label in LABELS}


def written(shots: int) -> tuple[Demonstration, ...]:
    return tuple(Demonstration(text, label) for label, each in texts("written", shots).items() for text in each)


def competing(template: PromptTemplate, shots=2, sets=3, winners=6, own=2):
    voted = texts("winner", winners) if winners else {}
    words = wordings(template, LABELS, sets)
    return candidate_sets(words, LABELS, shots, sets, texts("public", 8), voted, written(own))


def made(*numbers, **changes):
    return {each.name: each.demonstrations for each in competing(default_template(LABELS), *numbers, **changes)}


@pytest.mark.parametrize(
    ("winners", "own", "sets", "names"),
    [
        (6, 0, 3, ["voted 1", "voted 2", "voted 3"]),
        (0, 2, 3, ["written 1", "written 2"]),
        (0, 2, 1, ["written 1"]),
        (6, 2, 3, ["voted 1", "written 1", "voted 2", "written 2", "voted 3"]),
    ],
)
def test_names_and_order_follow_from_the_recipe_alone(winners, own, sets, names):
    assert list(made(sets=sets, winners=winners, own=own)) == [NONE, PUBLIC, *names]


def test_none_has_nothing_and_public_only_has_no_winner():
    found = made()
    assert found[NONE] == ()
    assert {each.text for each in found[PUBLIC]} == {f"public {label} {i}" for label in LABELS for i in range(2)}


def test_every_second_set_has_its_labels_in_the_opposite_order():
    found = made()
    for name, order in (
        ("voted 1", LABELS),
        ("voted 2", LABELS[::-1]),
        ("voted 3", LABELS),
        ("written 2", LABELS[::-1]),
    ):
        assert [each.label for each in found[name]] == list(order) * 2


def test_the_first_set_has_the_best_winners_and_the_next_set_the_next():
    found = made(winners=6)
    for number in range(3):
        kept = {each.text for each in found[f"voted {number + 1}"]}
        assert kept == {f"winner {label} {i}" for label in LABELS for i in (2 * number, 2 * number + 1)}


def test_words_of_the_owners_own_compete_with_plain_ones():
    sets = {each.name: each for each in competing(OWN)}
    plain = [f"voted 3{PLAIN}", f"{NONE}{PLAIN}"]
    assert list(sets) == [NONE, PUBLIC, "voted 1", "written 1", "voted 2", "written 2", *plain]
    assert {name for name, each in sets.items() if each.template != OWN} == set(plain)
    assert {sets[name].template for name in plain} == {default_template(LABELS)}
    assert sets[plain[-1]].demonstrations == ()


@pytest.mark.parametrize("sets", [1, 2])
def test_few_sets_are_in_the_owners_words_alone(sets: int):
    assert {each.template for each in competing(OWN, sets=sets)} == {OWN}


def test_plain_words_do_not_compete_with_themselves():
    assert {each.template for each in competing(default_template(LABELS))} == {default_template(LABELS)}


@given(shots=st.integers(1, 4), sets=st.integers(1, 6), winners=st.integers(1, 9), own=st.integers(0, 4))
def test_no_text_is_twice_in_a_set_and_none_has_more_than_asked_for(shots, sets, winners, own):
    for demonstrations in made(shots, sets, winners, own).values():
        assert len({each.text for each in demonstrations}) == len(demonstrations)
        for label in LABELS:
            assert sum(each.label == label for each in demonstrations) <= max(shots, own)


def test_a_text_that_was_written_twice_stands_once():
    twice = (Demonstration("same", "red"), Demonstration("same", "red"), Demonstration("other", "blue"))
    *_, first, second = candidate_sets([OWN], ("red", "blue"), 2, 2, {"red": ("a",), "blue": ("b",)}, {}, twice)
    assert [each.text for each in first.demonstrations] == ["same", "other"]
    assert [each.text for each in second.demonstrations] == ["other", "same"]


def test_labels_take_turns_as_long_as_each_has_texts():
    found = interleaved({"red": ["r1"], "blue": ["b1", "b2"]}, ("red", "blue"))
    assert [each.text for each in found] == ["r1", "b1", "b2"]


# Sets of demonstrations from anywhere.

TASK = {"labels": ["red", "blue"], "instruction": "Sort.", "template": {"text": "Note", "label": "Topic"}}
BY_HAND = {"demonstrations": [{"text": "a rose", "label": "red"}], "task": TASK}


def test_a_set_by_hand():
    found = read_set(json.dumps(BY_HAND))
    assert found.demonstrations == (Demonstration("a rose", "red"),)
    assert (found.labels, found.template) == (("red", "blue"), PromptTemplate("Sort.", "Note", "Topic"))
    assert (found.prior, found.zero_shot, found.spare) == (None, None, 0.0)
    assert read_set(json.dumps(BY_HAND | {"demonstrations": []})).demonstrations == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"demonstrations": [{"text": "a rose"}]}, "demonstrations/0"),
        ({"demonstrations": [{"text": "a rose", "label": "green"}]}, "green"),
        ({"task": {"labels": ["red", "blue"]}}, "task"),
        ({"format": "dpicl-demos/2"}, "demo set"),
    ],
)
def test_what_is_no_set_is_refused(change, message):
    with pytest.raises(UsageError, match=message):
        read_set(json.dumps(BY_HAND | change))


def test_one_label_can_be_read_and_tells_nothing_apart():
    found = read_set(json.dumps(BY_HAND | {"task": TASK | {"labels": ["red"]}}))
    with pytest.raises(UsageError, match="two labels"):
        with_choice(found)
    both = read_set(json.dumps(BY_HAND))
    assert with_choice(both) is both


@pytest.mark.parametrize("text", ["[]", "{", '"x"', '{"demonstrations": []}'])
def test_other_files_are_refused(text):
    with pytest.raises(UsageError):
        read_set(text)
