"""Kinds of texts: their exemplars are texts that might stand in a set, and are told from those that a model writes."""

from __future__ import annotations

import json

import pytest

from mechanisms.asking import Asked
from mechanisms.files import bundled
from mechanisms.kinds import exemplars_of
from mechanisms.runs.text import Gate, cleaned, whole_sentences

KINDS = json.loads(bundled("kinds.json").read_text(encoding="utf-8"))
EXEMPLARS = [(name, each["text"]) for name, kind in KINDS.items() for each in kind["exemplars"]]


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_named_by_its_words_and_its_exemplars_differ(name):
    for word in KINDS[name]["words"]:
        found = exemplars_of(f"Short {word.upper()}s")
        assert [each.text for each in found] == [each["text"] for each in KINDS[name]["exemplars"]]
    texts, abouts = ([each[field] for each in KINDS[name]["exemplars"]] for field in ("text", "about"))
    assert len({text.split()[0] for text in texts}) > 1
    assert len({*texts}) == len(texts)
    assert len({*abouts}) >= 3


@pytest.mark.parametrize(("name", "text"), EXEMPLARS)
def test_an_exemplar_is_a_text_by_the_rules_for_all_others(name, text, embedded_model):
    other = Asked("utterance", "a patient", "a clinic")
    assert cleaned(text, other, "pain", ["pain"], Gate(embedded_model, asked=other)) == text or name == "posts"
    assert Gate(embedded_model, asked=other).reason(text) is None
    assert whole_sentences(text) == text or name == "posts"


@pytest.mark.parametrize(("name", "text"), EXEMPLARS)
def test_what_says_an_exemplar_again_does_not_leave(name, text, embedded_model):
    shown = {each for _, each in Asked(KINDS[name]["words"][0], "a patient", "a clinic").shown()}
    shown |= {each for _, each in Asked(KINDS[name]["words"][0]).shown()}
    assert text in shown
    asked = [Asked(KINDS[name]["words"][0], *who) for who in ((), ("a patient", "a clinic"))]
    reasons = [Gate(embedded_model, asked=each).reason(f"I am well. {text.upper()}") for each in asked]
    assert "it repeats an example of the prompt" in reasons
