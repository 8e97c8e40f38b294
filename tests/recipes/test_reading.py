"""What units contribute: bounded whatever the model says, and each unit's by its own records."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mechanisms.records import Demonstration, Record
from mechanisms.runs.events import CandidateSet
from mechanisms.runs.judging import Reader, of_units, preferences, right
from tests.recipes.running import LABELS, TEMPLATE, Log, Reading

ANY = st.floats(allow_nan=True, allow_infinity=True)
SETS = (CandidateSet("none", (), TEMPLATE), CandidateSet("voted 1", (Demonstration("a rose", "red"),), TEMPLATE))


def units(count: int, size: int = 1):
    return [tuple(Record(f"{LABELS[i % 2]} secret {i} {j}", LABELS[i % 2]) for j in range(size)) for i in range(count)]


def read(reader: Reader, candidate: CandidateSet, wanted):
    reading, told = reader.read(candidate, wanted), []
    while True:
        try:
            told.append(next(reading))
        except StopIteration as ended:
            return ended.value, told


@given(arrays(np.float64, (4, 3), elements=ANY), arrays(np.float64, 3, elements=st.floats(-20, 20)))
def test_whatever_the_model_says_a_record_adds_at_most_one(scores, offset):
    found = preferences(scores, offset)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (found.sum(axis=1) <= 1 + 1e-12).all()
    truth = np.array([0, 1, 2, 0])
    for row in range(4):  # a row's numbers are its own
        assert (preferences(scores[row : row + 1], offset)[0] == found[row]).all()
        assert right(scores[row : row + 1], offset, truth[row : row + 1])[0] == right(scores, offset, truth)[row]
        assert not right(scores, offset, truth)[row] or np.isfinite(scores[row]).all()
        if not np.isfinite(scores[row].max()):
            assert found[row].sum() == 0


def test_right_is_the_likeliest_label_under_the_correction():
    scores = np.log(np.array([[0.7, 0.3], [0.4, 0.6]]))
    assert right(scores, np.zeros(2), np.array([0, 0])).tolist() == [True, False]
    assert right(scores, np.log([1.0, 9.0]), np.array([0, 1])).tolist() == [False, True]
    assert preferences(scores, np.log([1.0, 9.0]))[0] == pytest.approx([7 / 34, 27 / 34])


def test_units_are_means_of_their_own_records():
    wanted = [*units(2, size=3), *units(1)]
    of_records = np.arange(14.0).reshape(7, 2)
    found = of_units(of_records, wanted)
    assert found.tolist() == [of_records[:3].mean(axis=0).tolist(), of_records[3:6].mean(axis=0).tolist(), [12, 13]]
    assert of_units(np.empty((0, 5)), []).shape == (0, 5)


def test_reading_keeps_the_order_of_units_and_tells_how_far_it_is():
    reader = Reader(Reading(Log()), LABELS, 64)
    wanted = units(50, size=3)
    scores, told = read(reader, SETS[0], wanted)
    assert scores.shape == (150, 2)
    assert (scores.argmax(axis=1) == reader.truth(wanted)).all()
    assert told == sorted(set(told))
    assert told[-1] == 150
    alone, _ = read(reader, SETS[0], wanted[7:8])
    assert (alone == scores[21:24]).all()
    assert read(reader, SETS[0], [])[0].shape == (0, 2)


def test_a_set_has_one_classifier_that_shows_its_demonstrations():
    class Shown(Reading):
        prefixes: ClassVar[set[str]] = set()

        def answer(self, prefix, query, label):
            self.prefixes.add(prefix)
            return super().answer(prefix, query, label)

    model = Shown(Log())
    reader = Reader(model, LABELS, 64)
    for candidate in SETS:
        assert reader.under(candidate) is reader.under(candidate)
        read(reader, candidate, units(2))
    assert sorted("a rose" in prefix for prefix in model.prefixes) == [False, True]
