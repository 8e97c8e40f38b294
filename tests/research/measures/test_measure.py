"""All measures of planted collections, with the toy embedder."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.errors import UsageError
from mechanisms.records import Demonstration, Record
from research.measures import measure
from research.measures.measure import Measures
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

LABELS = ("fruit", "sky")
WORDS = {"fruit": "red apple", "sky": "blue cloud"}
TEST = [Record(f"{WORDS[label]} {number}", label) for number in range(20) for label in LABELS]


def texts(swapped=False):
    named = dict(zip(LABELS, reversed(LABELS), strict=True)) if swapped else dict(zip(LABELS, LABELS, strict=True))
    return [Demonstration(f"{WORDS[label]} new {i}", named[label]) for i in range(4) for label in LABELS]


@pytest.fixture(scope="module")
def measures():
    return Measures(LABELS, [*TEST, Record("else", "other")], ToyEmbedder())


def test_texts_of_their_label_are_recognised_and_teach(measures):
    figures = measures.of(texts())
    assert (figures.texts, measures.rows) == (8, 40)
    assert figures.label_fidelity.value == figures.trained_on.value == measures.held_out.value == 1
    low, high = figures.trained_on.interval
    assert low < 1 == high
    assert figures.perplexity is None


def test_swapped_labels_are_not_recognised_and_mislead(measures):
    figures = measures.of(texts(swapped=True))
    assert figures.label_fidelity.value == figures.trained_on.value == 0
    assert figures.distinct == measures.of(texts()).distinct


def test_texts_that_say_nothing_of_their_label_teach_nothing(measures):
    nothing = [Demonstration(f"word {i // 2}", label) for i, label in enumerate(LABELS * 10)]
    assert measures.of(nothing).label_fidelity.value == 0.5


def test_a_second_model_gives_perplexity():
    reader = ToyModel(sharpness=0.0)
    assert Measures(LABELS, TEST, ToyEmbedder(), reader).of(texts()).perplexity == pytest.approx(128)


def test_likeness_is_of_as_many_rows_of_the_same_labels(measures, monkeypatch):
    """Also where the texts are of one label mostly: labels apart are not likeness lost."""
    seen = []
    monkeypatch.setattr(measure, "can_compare", lambda: True)
    monkeypatch.setattr(measure, "FEWEST", 40)
    monkeypatch.setattr(measure, "mauve", lambda *sides: seen.append(sides) or 0.5)
    uneven = [Demonstration(row.text, row.label) for row in TEST for _ in range(2) if row.label == "fruit"]
    uneven += [Demonstration(row.text, row.label) for row in TEST if row.label == "sky"]
    assert measures.of(uneven).mauve == 0.5
    [(ours, theirs)] = seen
    assert ours.shape == theirs.shape == (40, ToyEmbedder().dimensions)
    np.testing.assert_array_equal(np.sort(ours, axis=0), np.sort(theirs, axis=0))
    assert measures.of(texts()).mauve is None  # too few


@pytest.mark.parametrize(
    ("rows", "message"),
    [(TEST[::2], "no row of the label 'sky'"), (TEST[:9], "5 rows")],
)
def test_test_rows_must_hold_every_label(rows, message):
    with pytest.raises(UsageError, match=message):
        Measures(LABELS, rows, ToyEmbedder())
