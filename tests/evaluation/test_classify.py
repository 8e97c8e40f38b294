"""Scores of labels: whose numbers they are, and with which correction they are read."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import CONTENT_FREE, Classifier
from mechanisms.records import Demonstration, PromptTemplate
from tests.toy_model import ToyModel

TEMPLATE = PromptTemplate("Classify.", "T", "L")
LABELS = ("red", "green", "blue")
DEMONSTRATIONS = (Demonstration("x", "red"),)
PRIOR = {"red": 0.5, "green": -1.0, "blue": 0.25}


class Words(ToyModel):
    """Every label is one token, but for "green"."""

    def encode(self, text):
        return [1] if text == " red" else [2] if text == " blue" else super().encode(text)


def classifier(model=None, labels=LABELS, **changes) -> Classifier:
    return Classifier(model or ToyModel(), TEMPLATE, labels, DEMONSTRATIONS, **changes)


@pytest.mark.parametrize("model", [ToyModel(), Words()])
def test_scores_are_the_label_probabilities_of_the_model(model):
    [scores] = Classifier(model, TEMPLATE, LABELS, ()).log_probabilities(["hello"])
    prompt = model.encode("Classify.\n\nT: hello\nL:")
    expected = [model.open([], [prompt], len(prompt), 8).score(model.encode(" " + label))[0] for label in LABELS]
    assert scores == pytest.approx(log_softmax(expected))


def test_each_reading_is_the_raw_one_with_its_correction():
    """Zhao et al. 2021 divide the probabilities by the mean over content-free queries; a prior is added to the logs."""
    made = classifier(prior=PRIOR)
    [prediction] = made.predict(["hello"])
    empty = softmax(made.log_probabilities(CONTENT_FREE), axis=1).mean(axis=0)
    assert made.contextual == pytest.approx(-np.log(empty))
    divided = prediction.raw / empty
    assert prediction.calibrated == pytest.approx(divided / divided.sum())
    multiplied = prediction.raw * np.exp(list(PRIOR.values()))
    assert prediction.corrected == pytest.approx(multiplied / multiplied.sum())
    assert prediction.answer is prediction.corrected


def test_the_prior_is_read_by_label_and_not_by_order():
    turned = dict(reversed(PRIOR.items()))
    corrected = [next(classifier(prior=prior).predict(["hello"])).corrected for prior in (PRIOR, turned)]
    assert np.array_equal(*corrected)


@pytest.mark.parametrize("prior", [{"red": 0.0}, {**PRIOR, "purple": 0.0}])
def test_a_correction_of_other_labels_is_refused(prior):
    with pytest.raises(UsageError, match="one number for each label"):
        classifier(prior=prior)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 40])
def test_every_batch_has_the_same_shape_however_many_texts_there_are(count):
    model = ToyModel()
    scores = classifier(model).log_probabilities([f"text {i}" for i in range(count)])
    assert scores.shape == (count, 3)
    assert len(model.opened) == -(-count // 16)
    assert {rows for rows, _, _ in model.opened} <= {16}
    assert len(set(model.opened)) <= 1


def test_short_texts_are_computed_in_a_shorter_shape_whatever_else_is_read():
    short, long = ["short", "a text"], ["much longer than half of the cap", "and so is this"]
    alone, together = ToyModel(), ToyModel()
    expected = classifier(alone, max_query_tokens=16).log_probabilities(short)
    made = classifier(together, max_query_tokens=16).log_probabilities([long[0], *short, long[1]])
    assert np.array_equal(made[1:3], expected)
    assert [length for _, length, _ in together.opened] == [alone.opened[0][1], alone.opened[0][1] + 8]


def test_a_row_depends_on_its_text_alone():
    texts = [f"text {i}" for i in range(20)] + ["x" * 90, "y" * 60]
    made = classifier(Words())
    expected = dict(zip(texts, made.log_probabilities(texts), strict=True))
    for others in (texts[::-1], texts[7:], ["another", *texts[3:5]]):
        for text, row in zip(others, made.log_probabilities(others), strict=True):
            assert text not in expected or np.array_equal(row, expected[text])


@pytest.mark.parametrize(("largest", "expected"), [(16, 16), (7, 4), (2, 2), (0, 1)])
def test_a_batch_has_as_many_rows_as_are_alike_and_one_where_none_are(largest, expected):
    class Uneven(ToyModel):
        def alike(self, prefix, rows, length, room):
            return rows <= largest

    model = Uneven()
    classifier(model).log_probabilities(["a", "b"])
    assert {rows for rows, _, _ in model.opened} == {expected}


def test_an_overflow_stays_in_its_row_and_is_not_warned_of(recwarn):
    class Overflowing(ToyModel):
        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            plain = session._row
            session._row = lambda tokens: plain(tokens) * (np.inf if ord("!") in tokens else 1)
            return session

    made = classifier(Overflowing(), labels=("red", "!"))
    scores = made.log_probabilities(["fine", "too much!"])
    assert np.isfinite(scores[0]).all()
    assert not np.isfinite(scores[1]).all()
    assert not recwarn.list
