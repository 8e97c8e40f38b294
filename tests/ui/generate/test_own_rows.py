"""The card of own rows: refused without a set of the same data, and the next export is marked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.sessions import Session
from dpicl_ui.generate.own_rows import OwnRows
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.sizes import COMPARED
from tests.evaluation.test_own_rows import SET, data
from tests.toy_embedder import ToyEmbedder
from tests.ui.generate.recording import HOSTILE
from tests.ui.tabs import confirm, services, write
from tests.ui.trees import text_of


def card(session: Session, ledger: PrivacyLedger) -> OwnRows:
    one: Any = SimpleNamespace(of=lambda request: session)
    ledgers: Any = SimpleNamespace(of=lambda request: ledger)

    async def built() -> OwnRows:
        with gr.Blocks():
            return OwnRows(services(one, ledgers, embedder=SimpleNamespace(embedder=ToyEmbedder)))

    return asyncio.run(built())


def pressed(made: OwnRows) -> str:
    *_, last = made._show(gr.Request())
    return text_of(last[made.rows])


def test_rows_stand_beside_their_demonstrations_and_the_data_set_is_marked():
    session, ledger, letters = Session(), PrivacyLedger(), data(40)
    confirm(session, letters)
    write(session, SET, letters)
    shown = pressed(card(session, ledger))
    assert "minister 7" in shown
    assert "minister vote 0" in shown
    assert "Nearest row" in shown
    assert ledger.rows.disclosures(fingerprint(letters)) == (COMPARED,)


@pytest.mark.parametrize("case", ["nothing written", "other data"])
def test_it_is_refused_where_there_is_nothing_to_compare(case):
    session, ledger, letters = Session(), PrivacyLedger(), data(40)
    confirm(session, letters)
    if case == "other data":
        write(session, SET, data(42))
    with pytest.raises(Exception, match="nothing to compare|another data set"):
        pressed(card(session, ledger))
    assert ledger.rows.disclosures(fingerprint(letters)) == ()


def test_long_and_hostile_rows_are_cut_and_stay_text():
    session, ledger, letters = Session(), PrivacyLedger(), data(4)
    long = type(letters.records[0])(f"{HOSTILE} {'word ' * 400}", "News")
    letters = type(letters)("letters", letters.labels, (long, *letters.records))
    confirm(session, letters)
    write(session, SET, letters)
    shown = pressed(card(session, ledger))
    assert HOSTILE in shown
    assert max(len(line) for line in shown.split("…")) < 2000
