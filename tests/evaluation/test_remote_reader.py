"""A reader elsewhere: which words are an answer, what a server is told, and what it never gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_type_hints

import pytest

from mechanisms import api
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.disclosures import CLEAN_VALUES, SCORED
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.classifier import result_of, with_progress
from mechanisms.evaluation.reader import NO_ANSWER, Arm
from mechanisms.evaluation.remote_reader import RemoteReader, label_in
from mechanisms.inference import LanguageModel, QueryPrompt, QueryWords
from mechanisms.inference.remote import ChatServer, ServerAddress
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
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
    assert model.decode([*prompt.prefix, *prompt.row("what\nnow")]) == words.as_text("what\nnow")
    assert words.as_text("x" * 100_000).endswith(f": {'x' * 4096}\nTopic:")


def test_each_query_is_one_message_with_the_demonstrations_before_it():
    with serving(lambda asked: Reply("Sport")) as server:
        texts = [f"q {i}" for i in range(20)]
        told = []
        reading = reader(server).answers(TEMPLATE, LABELS, Arm("one", SHOWN), texts)
        found = result_of(with_progress(reading, told.append))
        assert told == [16, 20]
        assert {name: each.tolist() for name, each in found.items()} == {"raw": [2] * 20}
        assert {query_of(asked) for asked in server.asked} == set(texts)
        start = "Classify.\n\nText: one two\nTopic: Sport\n\nText: three\nTopic: Account\n\nText: q "
        assert all(asked.prompt.startswith(start) and asked.prompt.endswith("\nTopic:") for asked in server.asked)
        assert {asked.chat["max_tokens"] for asked in server.asked} == {8 + len("Account closed")}


def test_it_has_nothing_that_reads_private_rows():
    """Whatever reads rows asks for a `LanguageModel`; mypy refuses this one there, and it would not get far."""
    members = {name for name in vars(LanguageModel) if not name.startswith("_")} - {"name"}
    assert {"open", "encode", "check", "alike"} <= members
    assert not members & (set(dir(RemoteReader)) | set(dir(ChatServer)))
    for private in (run, score_set):
        assert get_type_hints(private)["model"] is LanguageModel


# A set tried on rows: what never leaves, and what is remembered of rows whose figures are shown.

SET = demo_set(Demonstration("one", "News"), Demonstration("two", "Sport"))
WITHOUT_PROMISE = replace(SET, certificate=replace(SET.certificate, private=False, reason="a test seed"))
OURS = Record("a private letter", "News")
PUBLIC = Dataset("test file", (), [Record("a text", "News"), Record("another", "Sport")])
SHARED = replace(PUBLIC, records=[*PUBLIC.records, OURS])


class Server:
    """Says "Sport", and remembers what it was sent."""

    name, host = "small at h", "h"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answers(self, messages, tokens):
        self.asked += messages
        yield ["Sport"] * len(messages)


@pytest.fixture
def letters() -> Dataset:
    """A private data set that the ledger knows."""
    known = Dataset("letters", ("News", "Sport"), [OURS, Record("of somebody", "Sport")])
    PrivacyLedger().rows.mark(fingerprint(known), CLEAN_VALUES)
    return known


WAYS: dict[str, Callable[[RemoteReader, DemoSet, Dataset], object]] = {
    "words": lambda reader, demos, test: api.about_to_send(reader, demos, test),
    "evaluate": lambda reader, demos, test: api.evaluate(demos, test, reader),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_private_rows_and_sets_without_promise_are_not_sent_by_any_way(letters, way):
    server = Server()
    reader = RemoteReader(server)
    with pytest.raises(UsageError, match="'letters': private rows never leave"):
        way(reader, SET, SHARED)
    with pytest.raises(UsageError, match="no guarantee"):
        way(reader, WITHOUT_PROMISE, PUBLIC)
    assert server.asked == []
    way(reader, SET, PUBLIC)


def test_one_text_is_sent_with_a_set_that_promises_something():
    server = Server()
    with pytest.raises(UsageError, match="no guarantee"):
        api.label_remotely(WITHOUT_PROMISE, "a text", RemoteReader(server))
    assert server.asked == []
    assert api.label_remotely(SET, "a text", RemoteReader(server)) == "Sport"
    assert len(server.asked) == 1


def test_whose_rows_are_scored_is_told_and_remembered(letters):
    assert api.mark_test_file(PUBLIC) == []
    assert SCORED not in api.disclosures(letters)
    assert api.mark_test_file(SHARED) == ["letters"]
    assert SCORED in api.disclosures(letters)
    later = Dataset("later", ("News",), [PUBLIC.records[0]])
    assert SCORED in api.disclosures(later)  # nobody's then
