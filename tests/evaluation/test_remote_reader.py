"""A reader elsewhere: which words are an answer, and what a server is told."""

from __future__ import annotations

from dataclasses import replace
from typing import get_type_hints

import pytest

from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, ZERO_SHOT, Scorecard, evaluate
from mechanisms.evaluation.reader import NO_ANSWER, Arm, finished, reported
from mechanisms.evaluation.remote_reader import RemoteReader, label_in, refuse_set_without_promise
from mechanisms.inference import LanguageModel, QueryPrompt, QueryWords
from mechanisms.inference.remote import ChatServer, ServerAddress
from mechanisms.records import Demonstration, PromptTemplate, Record
from mechanisms.runs.run import run
from mechanisms.runs.score import score_set
from tests.chat_server import Reply, query_of, serving
from tests.exports.sets import demo_set
from tests.toy_model import ToyModel

TEMPLATE, LABELS = PromptTemplate("Classify.", "Text", "Topic"), ("Account", "Account closed", "Sport")
SHOWN = (Demonstration("one\ntwo", "Sport"), Demonstration("three", "Account"))


def reader(server) -> RemoteReader:
    return RemoteReader(ChatServer(ServerAddress.of(server.url), "small"))


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ("Sport", 2),
        ("  sport.\n", 2),
        ("SPORTS, I would say", 2),
        ("Account", 0),
        ("account closed", 1),
        ("Account closed, not Sport", 1),
        ("**Sport**", 2),
        ("The topic is Sport. Sport!", 2),
        ("It is: Account closed.", 1),
        ("Sport or Account", 2),
        ("Either sport or account", NO_ANSWER),
        ("Transport", NO_ANSWER),
        ("the accounts closed", 0),
        ("", NO_ANSWER),
        ("I cannot tell", NO_ANSWER),
        ("<think>", NO_ANSWER),
    ],
)
def test_an_answer_names_a_label_by_a_public_rule(answer, place):
    assert label_in(answer, LABELS) == place


def test_labels_are_no_patterns_and_those_that_differ_in_case_alone_cannot_be_told():
    assert label_in("so C++ (it is)", ("C", "C++")) == 1
    assert label_in("what a.c is", ("abc", "x")) == NO_ANSWER
    assert label_in("yes", ("Yes", "yes", "no")) == NO_ANSWER
    assert label_in("no", ("Yes", "yes", "no")) == 2
    assert label_in("STRASSE", ("Straße", "Weg")) == 0


def test_words_elsewhere_are_those_that_a_model_here_reads():
    words, model = QueryWords(TEMPLATE, SHOWN), ToyModel()
    prompt = QueryPrompt(model, TEMPLATE, SHOWN, 96)
    assert model.decode([*prompt.prefix, *prompt.row("what\nnow")]) == words.whole("what\nnow")
    assert words.whole("x" * 100_000).endswith(f": {'x' * 4096}\nTopic:")


def test_each_query_is_one_message_with_the_demonstrations_before_it():
    with serving(lambda asked: Reply("Sport")) as server:
        texts = [f"q {i}" for i in range(20)]
        told = []
        reading = reader(server).answers(TEMPLATE, LABELS, Arm("one", SHOWN), texts)
        found = finished(reported(reading, told.append))
        assert told == [16, 20]
        assert {name: each.tolist() for name, each in found.items()} == {"raw": [2] * 20}
        assert {query_of(asked) for asked in server.asked} == set(texts)
        start = "Classify.\n\nText: one two\nTopic: Sport\n\nText: three\nTopic: Account\n\nText: q "
        assert all(asked.prompt.startswith(start) and asked.prompt.endswith("\nTopic:") for asked in server.asked)
        assert {asked.chat["max_tokens"] for asked in server.asked} == {8 + len("Account closed")}


def test_figures_count_what_names_no_label_as_wrong():
    test = [Record(f"{word} {i}", "Sport" if i % 2 else "Account") for i in range(10) for word in ("Sport", "hm")]
    with serving(lambda asked: Reply(query_of(asked).split()[0])) as server:
        told = list(evaluate(reader(server), TEMPLATE, LABELS, [Arm(ZERO_SHOT, ()), Arm(PRIVATE, SHOWN)], test))
    cards = [each for each in told if isinstance(each, Scorecard)]
    assert [card.name for card in cards] == [ZERO_SHOT, PRIVATE]
    for card in cards:
        assert (card.raw.correct, card.raw.total, sum(card.silent)) == (5, 20, 10)
        assert (card.calibrated, card.corrected, card.read) == (None, None, card.raw)
        assert card.confusion.sum() + sum(card.silent) == 20
        assert card.confusion.trace() == 5


def test_it_has_nothing_that_reads_private_rows():
    """Whatever reads rows asks for a `LanguageModel`; mypy refuses this one there, and it would not get far."""
    members = {name for name in vars(LanguageModel) if not name.startswith("_")} - {"name"}
    assert {"open", "encode", "check", "alike"} <= members
    assert not members & (set(dir(RemoteReader)) | set(dir(ChatServer)))
    for private in (run, score_set):
        assert get_type_hints(private)["model"] is LanguageModel


def test_a_set_that_promises_nothing_stays_here():
    made = demo_set(*SHOWN)
    refuse_set_without_promise(made)
    without = replace(made, certificate=replace(made.certificate, private=False, reason="a test seed"))
    with pytest.raises(UsageError, match="a test seed"):
        refuse_set_without_promise(without)
