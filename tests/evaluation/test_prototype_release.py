"""Class prototypes as a run of their own: what a unit moves, what it pays, and when."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.accounting import Cap, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.accounting.ledger import LedgerRun
from mechanisms.errors import BudgetRefused
from mechanisms.evaluation.class_prototypes import (
    ClassPrototypes,
    PrototypesRequest,
    nearest_prototype,
    release_prototypes,
)
from mechanisms.evaluation.evaluate import Progress
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.privacy_events import Composed, Gaussian, from_json
from mechanisms.records import Dataset, Record
from tests.replay.contract import replayed
from tests.toy_embedder import ToyEmbedder

LABELS = ("red", "blue")
DELTA = 1e-5
REQUEST = PrototypesRequest(PrivacyTarget(0.5, DELTA), len(LABELS))


class Watched(ToyEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts):
        self.texts += texts
        return super().embed(texts)


def rows(count: int, user: str | None = None) -> list[Record]:
    return [Record(f"{LABELS[i % 2]} secret {user or ''} {i}", LABELS[i % 2], user) for i in range(count)]


def data(records, user_column=None) -> Dataset:
    return Dataset("d", LABELS, tuple(records), user_column)


def released(dataset, embedder=None, randomness=None, ledger=None, request=REQUEST) -> ClassPrototypes:
    source = randomness or SecureRandomness()
    *reports, found = release_prototypes(dataset, request, embedder or ToyEmbedder(), ledger or PrivacyLedger(), source)
    assert all(isinstance(each, Progress) for each in reports)
    assert isinstance(found, ClassPrototypes)
    return found


def share(one: Dataset, other: Dataset) -> float:
    """What the difference of two data sets uses of what is charged."""

    def release(dataset, tape):
        return released(dataset, randomness=tape).directions

    return replayed(release, one, other, REQUEST.tally.event).noise


def test_a_row_moves_what_it_pays_for():
    records = rows(20)
    for extra in (Record("red and new", "red"), Record("red secret  0", "blue"), Record("", "red")):
        assert 0.98 < share(data([*records, extra]), data(records)) <= 1  # a unit vector: nothing is wasted


def test_a_row_of_another_label_moves_nothing():
    assert share(data([*rows(20), Record("green", "green")]), data(rows(20))) == 0


@pytest.mark.parametrize("count", [1, 2, 60])
def test_a_user_of_any_size_and_labels_moves_no_more_than_a_row(count):
    others = [record for i in range(9) for record in rows(3, f"user {i}")]
    loud = rows(count, "loud")
    assert 0.98 < share(data([*others, *loud], "who"), data(others, "who")) <= 1
    assert share(data([*others, *loud], "who"), data([*reversed(loud), *others], "who")) == 0


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 4.0])
def test_both_accountants_price_it_and_the_ledger_keeps_that_price(epsilon):
    request = PrototypesRequest(PrivacyTarget(epsilon, DELTA), len(LABELS))
    claimed = request.claim()
    assert 0.97 * epsilon < claimed.epsilon <= epsilon
    assert claimed.check == pytest.approx(claimed.epsilon, rel=0.02)
    assert claimed.accountant != claimed.check_accountant
    for column, unit in ((None, "record"), ("who", "user:who")):
        dataset, ledger = Dataset(unit, LABELS, tuple(rows(6, "ann")), column), PrivacyLedger()
        found = released(dataset, ledger=ledger, request=request)
        assert found.event == Composed("dataset", (("all", (Gaussian(request.tally.noise_multiplier),)),))
        assert found.claim == claimed
        [run] = ledger.history(unit)
        assert (run["mechanism"], run["unit"], run["status"]) == ("class prototypes", unit, "finished")
        assert from_json(run["event"]) == found.event
        assert 0 < ledger.snapshot(unit, unit).epsilon <= claimed.epsilon


def test_nothing_is_read_before_it_was_charged(monkeypatch):
    embedder, charges = Watched(), []
    charge = LedgerRun.charge

    def watched(self, name, events):
        assert embedder.texts == []
        charges.append((name, events))
        charge(self, name, events)

    monkeypatch.setattr(LedgerRun, "charge", watched)
    released(data(rows(40)), embedder)
    assert charges == [("all", (REQUEST.tally.event,))]
    assert len(embedder.texts) == 40


def test_over_the_cap_nothing_is_read_or_spent():
    embedder, ledger = Watched(), PrivacyLedger()
    ledger.set_cap("d", "record", Cap(0.4, 1e-4))
    with pytest.raises(BudgetRefused):
        released(data(rows(40)), embedder, ledger=ledger)
    assert embedder.texts == []
    assert ledger.snapshot("d", "record").runs == 0


@pytest.mark.parametrize("reports", [1, 2])
def test_what_is_stopped_stays_spent(reports):
    ledger = PrivacyLedger()
    running = release_prototypes(data(rows(40)), REQUEST, ToyEmbedder(), ledger)
    for _ in range(reports):
        assert isinstance(next(running), Progress)
    running.close()
    [run] = ledger.history("d")
    assert run["status"] == "finished"
    assert ledger.snapshot("d", "record").epsilon == pytest.approx(REQUEST.claim().epsilon)


def test_a_test_seed_is_told_and_marked():
    ledger = PrivacyLedger()
    released(data(rows(4)), randomness=SeededRandomness(1), ledger=ledger)
    assert ledger.rows.disclosures(fingerprint(data(rows(4)))) != ()
    [run] = ledger.history("d")
    assert "test seed" in str(run["mechanism"])


def test_the_release_answers_for_the_labels_that_are_asked():
    found = released(data(rows(400)), request=PrototypesRequest(PrivacyTarget(8.0, DELTA), len(LABELS)))
    test = [Record(f"{LABELS[i % 2]} other {i}", LABELS[i % 2]) for i in range(40)]
    assert found.covers(("blue",))
    assert not found.covers(("blue", "green"))
    forwards, backwards = (found.accuracy(test, each, ToyEmbedder()) for each in (LABELS, LABELS[::-1]))
    assert forwards == backwards
    assert forwards.total == 40
    assert forwards.value > 0.8
    assert found.accuracy(test[::2], ("red",), ToyEmbedder()).value == 1
    wrong = [Record(row.text, "blue" if row.label == "red" else "red") for row in test]
    assert found.accuracy(wrong, LABELS, ToyEmbedder()).correct == 40 - forwards.correct


# The baseline without a language model.

EMBEDDER = ToyEmbedder()


def test_a_text_gets_the_label_of_the_nearest_prototype():
    prototypes = EMBEDDER.embed(["red apple", "blue sky"]).astype(float)
    texts = ["a blue sky", "one red apple", "apple", "sky"]
    assert nearest_prototype(EMBEDDER.embed(texts), prototypes).tolist() == [1, 0, 0, 1]
    assert nearest_prototype(EMBEDDER.embed(texts), prototypes[::-1]).tolist() == [0, 1, 1, 0]


def test_an_answer_does_not_depend_on_the_other_texts():
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(5, EMBEDDER.dimensions))
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    texts = [f"text {i}" for i in range(30)]
    together = nearest_prototype(EMBEDDER.embed(texts), prototypes)
    assert len(set(together.tolist())) > 1
    assert [nearest_prototype(EMBEDDER.embed([text]), prototypes)[0] for text in texts] == together.tolist()
