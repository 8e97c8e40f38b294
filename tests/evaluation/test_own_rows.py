"""Own rows beside demonstrations: marked before the first is seen, and the nearest one is the nearest."""

from __future__ import annotations

import pytest

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.disclosures import COMPARED
from mechanisms.errors import UsageError
from mechanisms.evaluation.own_rows import SHOWN, NearestRow, beside
from mechanisms.records import Dataset, Demonstration, Record
from tests.exports.sets import demo_set
from tests.toy_embedder import ToyEmbedder

TOPICS = {"News": "minister vote", "Sport": "goal match"}
SET = demo_set(Demonstration("minister 7", "News"), Demonstration("goal 11", "Sport"))


def data(count: int) -> Dataset:
    labels = list(TOPICS)
    rows = [Record(f"{TOPICS[labels[i % 2]]} {i}", labels[i % 2]) for i in range(count)]
    return Dataset("letters", tuple(labels), tuple(rows))


def test_the_data_set_is_marked_before_a_row_is_seen_and_not_by_asking():
    ledger, letters = PrivacyLedger(), data(40)
    shown = beside(SET, letters, ToyEmbedder(), ledger)
    assert ledger.rows.disclosures(fingerprint(letters)) == ()
    next(shown)
    assert ledger.rows.disclosures(fingerprint(letters)) == (COMPARED,)


def test_rows_are_of_the_label_and_the_nearest_is_the_nearest():
    letters, embedder = data(40), ToyEmbedder()
    for found, made in zip(beside(SET, letters, embedder, PrivacyLedger()), SET.demonstrations, strict=True):
        own = [each.text for each in letters.records if each.label == found.label]
        assert found.label == made.label
        assert len(set(found.rows) & set(own)) == SHOWN
        near = (embedder.embed([made.text]) @ embedder.embed(own).T)[0]
        assert found.nearest == (NearestRow(made.text, own[near.argmax()], float(near.max())),)


def test_a_set_of_other_labels_is_refused_and_nothing_is_marked():
    ledger, letters = PrivacyLedger(), data(40)
    with pytest.raises(UsageError, match="nothing to compare"):
        list(beside(demo_set(), letters, ToyEmbedder(), ledger))
    assert ledger.rows.disclosures(fingerprint(letters)) == ()
