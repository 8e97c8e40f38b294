"""Step 4 with a reader elsewhere: nothing leaves unless it is allowed, ticked, and nobody's row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pytest

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.test.state import TestState
from dpicl_ui.test.step import EvaluationStep
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.sources import read_table
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.inference.remote import ChatServer, ServerAddress
from mechanisms.records import Dataset, Demonstration, Record
from tests.chat_server import Reply, Server, query_of, serving
from tests.ui.generate.recording import demo_set
from tests.ui.tabs import confirm, services, write
from tests.ui.trees import text_of
from tests.word_model import WordModel

KEY = "sk-not-to-be-seen"
SET = demo_set(Demonstration("written", "News"), Demonstration("too", "Sport"))
LETTERS = Dataset("letters", ("News", "Sport"), [Record(f"private {i}", "News") for i in range(40)])


class OtherModel(WordModel):
    name, sha256 = "other", "1" * 64


class Tab:
    """A written set, a test file of twenty rows, and the handlers of step 4."""

    def __init__(self, folder: Path, reader: RemoteReader | None, model: type[WordModel] = WordModel) -> None:
        sessions, self.ledger = Sessions(), PrivacyLedger(folder)
        self.request: Any = SimpleNamespace(session_hash="tab", username=None)
        self.session = sessions.of(self.request)

        async def blocks() -> EvaluationStep:
            with gr.Blocks():
                ledgers: Any = SimpleNamespace(of=lambda request: self.ledger)
                loader = cast(ModelLoader, SimpleNamespace(model=model))
                return EvaluationStep(services(sessions, ledgers, loader), reader)

        self.step = asyncio.run(blocks())
        confirm(self.session, LETTERS)
        write(self.session, SET, LETTERS)
        self.bring(folder, [f"text {i},{'Sport' if i % 2 else 'News'}" for i in range(20)])

    def bring(self, folder: Path, lines: list[str]) -> None:
        (folder / "test.csv").write_text("\n".join(["text,label", *lines]))
        self.session.of(TestState).table = read_table(folder / "test.csv")

    def ask(self, ticked: bool) -> str:
        shown = list(self.step._ask("hello", ticked, self.request))
        return text_of(shown[-1][self.step.answer])

    def measure(self, ticked: bool, own_rows: bool = False) -> str:
        measurement = self.step.measurement
        shown = list(measurement._measure("text", "label", 100, own_rows, ticked, self.request))
        return " ".join(
            text_of(each[part]) for each in shown for part in (measurement.scores, measurement.readers) if part in each
        )


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda asked: Reply("Sport" if "7" in query_of(asked) else "It is News")) as server:
        yield server


@pytest.fixture
def reader(server: Server) -> RemoteReader:
    return RemoteReader(ChatServer(ServerAddress.of(server.url), "small", KEY))


def test_it_is_offered_unticked_with_what_leaves_and_only_where_the_operator_allows_it(tmp_path, reader):
    offered = Tab(tmp_path, reader).step.elsewhere
    tick = offered.tick
    assert tick.value is False
    assert tick.label == f"Answer with {reader.name}"
    assert f"leave this machine for {reader.server.host}; private rows do not" in str(tick.info)
    assert KEY not in json.dumps(tick.get_config(), default=str)
    assert offered.card.visible
    assert not Tab(tmp_path, None).step.elsewhere.card.visible


def test_without_the_tick_nothing_is_sent(tmp_path, reader, server):
    tab = Tab(tmp_path, reader)
    assert "%" in tab.ask(False)
    assert "calibrated" in tab.measure(False)
    assert server.asked == []


def test_a_tick_that_nobody_offered_sends_nothing(tmp_path):
    assert "%" in Tab(tmp_path, None).ask(True)


def test_with_the_tick_the_server_answers_and_no_private_row_leaves(tmp_path, reader, server):
    tab = Tab(tmp_path, reader)
    said = tab.ask(True)
    assert said.count("News") >= 3
    assert reader.name in said
    assert "%" not in said
    assert len(server.asked) == 3
    said = tab.measure(True)
    scored = tab.session.of(TestState).scored
    assert scored is not None
    assert [card.name for card in scored.cards] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]
    assert all(card.calibrated is None and card.raw.correct == 12 for card in scored.cards)
    assert "raw" in said
    assert "calibrated" not in said.lower().replace("contextual calibration", "")
    assert len(server.asked) == 63
    assert not any("private" in asked.prompt or KEY in asked.body for asked in server.asked)


def test_public_text_of_another_writer_is_left_out_and_said(tmp_path, reader, server):
    tab = Tab(tmp_path, reader, OtherModel)
    assert "left out" in tab.ask(True)
    assert len(server.asked) == 2


def test_rows_of_private_data_stay_here_whoever_allows_it(tmp_path, reader, server):
    tab = Tab(tmp_path, reader)
    tab.bring(tmp_path, ["private 3,News", "text 1,Sport"])
    for own_rows in (False, True):
        with pytest.raises(UsageError, match="'letters': private rows never leave"):
            tab.measure(True, own_rows)
    assert server.asked == []


def test_a_set_that_promises_nothing_stays_here(tmp_path, reader, server):
    tab = Tab(tmp_path, reader)
    tab.session.of(TestState).load(replace(SET, certificate=replace(SET.certificate, private=False)))
    for press in (tab.ask, tab.measure):
        with pytest.raises(UsageError, match="promises nothing"):
            press(True)
    assert server.asked == []


def test_a_server_that_fails_is_one_line(tmp_path):
    with serving(lambda asked: Reply(status=401)) as server:
        reader = RemoteReader(ChatServer(ServerAddress.of(server.url), "small", KEY))
        with pytest.raises(ModelUnavailable, match="refuses the key"):
            Tab(tmp_path, reader).ask(True)


def test_rows_that_private_data_share_are_counted_and_can_be_left_out(tmp_path, reader, server):
    tab = Tab(tmp_path, reader)
    fresh = [f"text {i},{'Sport' if i % 2 else 'News'}" for i in range(6)]
    tab.bring(tmp_path, ["PRIVATE  3!,News", "private 5,Sport", *fresh])
    measurement, ledger = tab.step.measurement, PrivacyLedger()
    with pytest.raises(UsageError, match=r"shares rows with 'letters': 2 of its 8, where spaces, case and punctuation"):
        tab.measure(False)
    marked = ledger.rows.disclosures(fingerprint(LETTERS))
    for ticked in (False, True):
        list(measurement._measure_rest("text", "label", 100, False, ticked, tab.request))
        scored = tab.session.of(TestState).scored
        assert scored is not None
        assert scored.owners == ()
        assert [row.text for row in scored.rows] == [line.split(",")[0] for line in fresh]
    assert ledger.rows.disclosures(fingerprint(LETTERS)) == marked
    assert not any("rivate" in asked.prompt for asked in server.asked)
    tab.bring(tmp_path, ["private 3,News"])
    with pytest.raises(UsageError, match="every row of this file"):
        list(measurement._measure_rest("text", "label", 100, False, False, tab.request))


def test_a_file_without_a_known_label_is_refused_before_anything_is_written(tmp_path, reader):
    tab = Tab(tmp_path, reader)
    tab.bring(tmp_path, ["text 1,Weather", "text 2,Arts"])
    with pytest.raises(UsageError, match="has one of the set's labels"):
        tab.measure(False)
    assert tab.session.of(TestState).scored is None
