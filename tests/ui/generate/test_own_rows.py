"""The card of own rows: private ones are shown on a click and mark the data set; fictional ones need none."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.services import Session
from dpicl_ui.generate.replay import OwnRows
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.columns import to_dataset
from mechanisms.data.disclosures import COMPARED
from mechanisms.data.sources import CLINIC, read_table
from mechanisms.records import Dataset, Demonstration, Record
from tests.evaluation.test_own_rows import SET, data
from tests.toy_embedder import ToyEmbedder
from tests.ui.tabs import confirm, in_page, services, text_of, write


class Card:
    """The card in a tab whose data are confirmed, with the set that was written from `of`."""

    def __init__(self, dataset: Dataset, of: Dataset | None, made: Any = SET) -> None:
        self.session, self.ledger = Session(), PrivacyLedger()
        one: Any = SimpleNamespace(of=lambda request: self.session)
        ledgers: Any = SimpleNamespace(of=lambda request: self.ledger)

        embedder = SimpleNamespace(embedder=ToyEmbedder)
        self.card = in_page(lambda: OwnRows(services(ledgers, None, embedder, one)))
        confirm(self.session, dataset)
        if of is not None:
            write(self.session, made, of)

    def pressed(self) -> str:
        *_, last = self.card._show(gr.Request())
        return text_of(last[self.card.rows])

    def after(self) -> tuple[str, Any]:
        """What stands there unasked, and whether the switch does."""
        shown = self.card.after(self.session)
        return text_of(shown[self.card.fictional]), shown[self.card.private].visible


def test_rows_stand_beside_their_demonstrations_and_the_data_set_is_marked():
    letters = data(40)
    card = Card(letters, letters)
    shown = card.pressed()
    assert "minister 7" in shown
    assert "minister vote 0" in shown
    assert "Nearest row" in shown
    assert card.ledger.rows.disclosures(fingerprint(letters)) == (COMPARED,)


@pytest.mark.parametrize("of", [None, data(42)], ids=["nothing written", "other data"])
def test_it_is_refused_where_there_is_nothing_to_compare(of):
    card = Card(data(40), of)
    with pytest.raises(Exception, match="nothing to compare|another data set"):
        card.pressed()
    assert card.ledger.rows.disclosures(fingerprint(data(40))) == ()


def example() -> tuple[Dataset, Any]:
    table, mapping = read_table(CLINIC.path), replace(CLINIC.mapping, unit=None)
    dataset = to_dataset(table, mapping, "clinic", tuple(sorted(set(table.frame[mapping.label]))))
    written = tuple(Demonstration(f"written for {label}", label) for label in dataset.labels)
    return dataset, replace(SET, labels=dataset.labels, demonstrations=written)


def test_fictional_rows_stand_beside_the_synthetic_ones_without_a_click_and_without_a_mark():
    dataset, made = example()
    card = Card(dataset, dataset, made)
    shown, switch = card.after()
    for label in dataset.labels:
        assert f"written for {label}" in shown
        assert any(each.text in shown for each in dataset.records if each.label == label)
    assert switch == "hidden"
    assert card.ledger.rows.disclosures(fingerprint(dataset)) == ()


@pytest.mark.parametrize(
    "added", [Record("a row of my own", "Cardiology"), None], ids=["another text", "another label"]
)
def test_a_single_row_that_is_no_fiction_puts_all_of_them_behind_the_switch(added):
    dataset, made = example()
    other = added or replace(dataset.records[0], label=dataset.labels[-1])
    assert other not in dataset.records
    mixed = replace(dataset, records=(other, *dataset.records[1:]), witnesses=())
    assert Card(mixed, mixed, made).after() == ("", True)
