"""Step 4 with another reader: nothing leaves unless it is asked for, no private row ever does, and no key stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.demos.demo_set import PUBLIC_ONLY, ZERO_SHOT
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE
from mechanisms.inference.remote import ChatServer
from tests.chat_server import Reply, Server, query_of, serving
from tests.ui.test.tab import LETTERS, SET, Tab, built
from tests.ui.trees import text_of

KEY = "sk-not-to-be-seen"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda asked: Reply("Sport" if "7" in query_of(asked) else "It is News")) as server:
        yield server


@pytest.fixture
def tab(tmp_path: Path) -> Tab:
    return Tab(tmp_path)


@pytest.fixture
def typed(server: Server) -> dict[str, str]:
    return {"who": "address", "address": server.url, "key": KEY}


def servers() -> int:
    """Readers elsewhere that this process holds, each with its key."""
    gc.collect()
    return sum(isinstance(each, ChatServer) for each in gc.get_objects())


def test_an_address_is_offered_to_an_owner_alone():
    for lasting, names in ((True, ["here", "address"]), (False, ["here"])):
        shown = built(lasting).reader
        assert [value for _, value in shown.who.choices] == names
        assert shown.who.value == "here"


@pytest.mark.parametrize("who", ["here", "address"])
def test_nothing_is_sent_but_to_a_reader_that_was_offered_and_chosen(
    tmp_path: Path, server: Server, typed: dict[str, str], who: str
):
    tab = Tab(tmp_path, step=built(lasting=False))
    assert "%" in tab.ask(**typed | {"who": who})
    assert "calibrated" in text_of(tab.measure(**typed | {"who": who})[tab.measurement.scores])
    assert server.asked == []


def test_an_address_answers_and_its_key_stays_nowhere(tab: Tab, server: Server, typed: dict[str, str]):
    before = servers()
    said = tab.ask(**typed)
    assert said.count("News") >= 3
    assert "%" not in said
    assert [asked.headers["Authorization"] for asked in server.asked] == [f"Bearer {KEY}"] * 3
    shown = tab.measure(**typed)
    assert [card.name for card in tab.scored.cards] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]
    assert all(card.calibrated is None and card.raw.correct == 12 for card in tab.scored.cards)
    assert "raw" in text_of(shown[tab.measurement.scores])
    assert len(server.asked) == 63
    assert not any(KEY in asked.body for asked in server.asked)
    assert servers() == before


@pytest.mark.parametrize("who", ["here", "address"])
def test_rows_that_private_data_have_are_counted_and_neither_measured_nor_sent(
    tab: Tab, server: Server, typed: dict[str, str], who: str
):
    private, fresh = LETTERS.records[3].text, [f"text {i},{'Sport' if i % 2 else 'News'}" for i in range(6)]
    tab.bring([f"{private.upper()}!,Sport", f"{LETTERS.records[4].text},News", *fresh])
    assert "2 of its 8 rows are left out: private data sets have them" in tab.notice(**typed | {"who": who})
    tab.measure(**typed | {"who": who})
    assert [row.text for row in tab.scored.rows] == [line.split(",")[0] for line in fresh]
    assert tab.ledger.rows.disclosures(fingerprint(LETTERS)) == ()
    assert not any("minister" in asked.prompt or "goal" in asked.prompt for asked in server.asked)
    tab.bring([f"{private},Sport"])
    with pytest.raises(UsageError, match="every row of this file"):
        tab.measure(**typed | {"who": who})


def test_a_set_that_promises_nothing_stays_here(tab: Tab, server: Server, typed: dict[str, str]):
    tab.state.load(replace(SET, certificate=replace(SET.certificate, private=False)))
    for press in (tab.ask, tab.measure):
        with pytest.raises(UsageError, match="promises nothing"):
            press(**typed)
    assert server.asked == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"address": ""}, "is not a URL"),
        ({"address": "http://example.org/v1"}, "must begin with https"),
        ({"model": " "}, "which model"),
        ({"key": f"{KEY}\nX: y"}, "no key has"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line_without_the_key(tab: Tab, typed: dict[str, str], changed, said):
    with pytest.raises(UsageError, match=said) as refused:
        tab.ask(**typed | changed)
    assert KEY not in str(refused.value)
