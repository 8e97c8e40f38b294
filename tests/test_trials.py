"""A set tried on rows: what a model elsewhere never gets, and what is remembered of rows whose figures are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mechanisms import api
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.sizes import CLEAN_VALUES, SCORED
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.records import Dataset, Demonstration, Record
from tests.runs.running import Speaking
from tests.ui.generate.recording import demo_set

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
    with pytest.raises(UsageError, match="promises nothing"):
        way(reader, WITHOUT_PROMISE, PUBLIC)
    assert server.asked == []
    way(reader, SET, PUBLIC)


def test_one_text_is_sent_with_a_set_that_promises_something():
    server = Server()
    with pytest.raises(UsageError, match="promises nothing"):
        api.label_remotely(WITHOUT_PROMISE, "a text", RemoteReader(server))
    assert server.asked == []
    assert api.label_remotely(SET, "a text", RemoteReader(server)) == "Sport"
    assert len(server.asked) == 1


def test_public_text_is_an_arm_elsewhere_where_its_writer_is_given():
    told: list[tuple[int, int]] = []
    found = api.evaluate(SET, PUBLIC, RemoteReader(Server()), told=lambda *progress: told.append(progress))
    assert [*found] == [ZERO_SHOT, PRIVATE]
    assert {card.raw.value for card in found.values()} == {0.5}
    assert told == [(2, 4), (4, 4)]
    assert [*api.evaluate(SET, PUBLIC, RemoteReader(Server()), writer=Speaking())] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]


def test_whose_rows_are_scored_is_told_and_remembered(letters):
    assert api.mark_test_file(PUBLIC) == []
    assert SCORED not in api.disclosures(letters)
    assert api.mark_test_file(SHARED) == ["letters"]
    assert SCORED in api.disclosures(letters)
    later = Dataset("later", ("News",), [PUBLIC.records[0]])
    assert SCORED in api.disclosures(later)  # nobody's then
