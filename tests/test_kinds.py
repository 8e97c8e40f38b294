"""Kinds of texts: their exemplars are texts that might stand in a set, and are told from those that a model writes."""

from __future__ import annotations

import json
import re

import pytest

from mechanisms.asking import MOST_EXEMPLARS, Wording
from mechanisms.files import bundled
from mechanisms.inference.vocabulary import common_words
from mechanisms.kinds import exemplars_of
from mechanisms.runs.text import Gate, cleaned

KINDS = json.loads(bundled("kinds.json").read_text(encoding="utf-8"))
EXEMPLARS = [each["text"] for kind in KINDS.values() for each in kind["exemplars"]]
LOOSE = "posts"
"""Of this kind, texts need not be whole sentences."""


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_named_by_what_its_texts_are_called_and_has_different_exemplars(name):
    for called in KINDS[name]["named"]:
        found = exemplars_of(f"Short {called.upper()}s")
        assert [each.text for each in found] == [each["text"] for each in KINDS[name]["exemplars"]]
    written = [Wording(KINDS[name]["named"][0], *who).exemplar_pairs() for who in ((), ("a patient", "a clinic"))]
    for shown in written:
        assert 3 <= len(shown) <= MOST_EXEMPLARS
        assert len({sentence for sentence, _ in shown}) == len(shown)
        assert 2 * len({text.split()[0] for _, text in shown}) > len(shown)
    assert {text for shown in written for _, text in shown} == {each["text"] for each in KINDS[name]["exemplars"]}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_exemplar_has_two_public_words_that_its_text_says(kind):
    for each in kind["exemplars"]:
        first, second = each["words"]
        assert first != second
        assert {first, second} <= set(common_words())
        assert {first, second} <= set(re.findall(r"\w+", each["text"].casefold()))


@pytest.mark.parametrize("text", EXEMPLARS)
def test_an_exemplar_is_a_text_by_the_rules_for_all_others(text, embedded_model):
    other = Wording("utterance", "a patient", "a clinic")
    gate = Gate(embedded_model, wording=other)
    assert gate.reason(text) is None
    kept = cleaned(text, other, "pain", ["pain"], gate)
    assert kept == text or text in {each["text"] for each in KINDS[LOOSE]["exemplars"]}


@pytest.mark.parametrize(
    ("kind", "text"), [(each["named"][0], one["text"]) for each in KINDS.values() for one in each["exemplars"]]
)
def test_what_says_an_exemplar_again_does_not_leave(kind, text, embedded_model):
    wording = [Wording(kind, *who) for who in ((), ("a patient", "a clinic"))]
    showing = next(each for each in wording if text in {shown for _, shown in each.exemplar_pairs()})
    again = f"I am well. {text.upper()}"
    assert Gate(embedded_model, wording=showing).reason(again) == "it repeats a public exemplar"
    assert Gate(embedded_model, wording=Wording(kind, exemplars=0)).reason(again) != "it repeats a public exemplar"


@pytest.mark.parametrize("text", ["Is it safe to drive?", "I heard a grinding noise.", "Nobody has called me back."])
def test_a_part_of_an_exemplars_sentence_is_nobodys(text, embedded_model):
    assert Gate(embedded_model, wording=Wording("message", "a patient", "a clinic")).reason(text) is None
