"""Cells of a grid: what is read in each, and what a correction belongs to."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, ZERO_SHOT, truth_of
from mechanisms.evaluation.grid import WHOLE, cells_of, most_shots, read_cell
from mechanisms.evaluation.reader import Arm, Classifier, LocalReader
from mechanisms.records import Demonstration, PromptTemplate, Record
from tests.toy_model import ToyModel

TEMPLATE, LABELS = PromptTemplate("Classify.", "T", "L"), ("red", "green", "blue")
SHOWN = tuple(Demonstration(f"{label} {number}", label) for label in LABELS for number in range(4))
PRIOR = dict.fromkeys(LABELS, 0.0) | {"blue": 100.0}
ARMS = (Arm(ZERO_SHOT, (), PRIOR), Arm(PRIVATE, SHOWN, PRIOR))


def finished(reading):
    told = []
    while True:
        try:
            told.append(next(reading))
        except StopIteration as ended:
            return told, ended.value


def test_zero_shot_is_one_cell_and_the_others_have_one_for_each_number_and_order():
    keys = [cell.key for cell in cells_of(ARMS, [1, 2, 4], orders=2)]
    assert keys[0] == (ZERO_SHOT, "0", 0)
    assert sorted(keys[1:]) == [(PRIVATE, str(shots), order) for shots in (1, 2, 4) for order in range(3)]
    assert [cell.key for cell in cells_of(ARMS)] == [(ZERO_SHOT, "0", 0), (PRIVATE, WHOLE, 0)]


def test_what_a_set_does_not_have_of_every_label_is_left_out():
    uneven = (Arm(PRIVATE, SHOWN[:-2]),)
    assert most_shots(ARMS) == 4
    assert most_shots(uneven) == 2
    assert {cell.shots for cell in cells_of(uneven, [1, 2, 4, 8])} == {"1", "2"}


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_a_cell_shows_so_many_of_each_label_and_fewer_are_a_part_of_more(order):
    of = {cell.shots: cell.arm.demonstrations for cell in cells_of(ARMS[1:], [1, 3], 3) if cell.order == order}
    for shots, shown in of.items():
        assert Counter(each.label for each in shown) == dict.fromkeys(LABELS, int(shots))
        assert set(shown) <= set(SHOWN)
    assert set(of["1"]) < set(of["3"])


def test_orders_follow_from_the_public_seed_alone():
    def orders(seed):
        return [cell.arm.demonstrations for cell in cells_of(ARMS[1:], (), 3, seed)]

    assert orders(1) == orders(1)
    assert orders(1)[0] == orders(2)[0] == SHOWN
    assert orders(1)[1:] != orders(2)[1:]
    assert all(set(shown) == set(SHOWN) for shown in orders(1))
    assert len(set(orders(1))) == 4


def test_a_correction_is_read_only_with_the_very_prompt_that_it_was_measured_for():
    cells = cells_of(ARMS, [2, 4], orders=2)
    assert [cell.key for cell in cells if cell.arm.prior] == [(ZERO_SHOT, "0", 0), (PRIVATE, "4", 0)]
    rows = [Record(f"text {i}", "blue") for i in range(5)]
    for cell in cells:
        _, found = finished(read_cell(ToyModel(), TEMPLATE, LABELS, cell, rows))
        assert set(found) == {"raw", "contextual"} | ({"prior"} if cell.arm.prior else set())
    assert found.keys() == {"raw", "contextual"}


@pytest.mark.parametrize("numbers", [([0], 0, 0), ([1], -1, 0), ([1], 0, -1)])
def test_numbers_out_of_range_are_refused(numbers):
    with pytest.raises(UsageError, match="--shots"):
        cells_of(ARMS, *numbers)


def test_the_readings_are_those_of_the_classifier():
    texts = [f"text {i}" for i in range(20)]
    told, found = finished(LocalReader(ToyModel()).answers(TEMPLATE, LABELS, ARMS[1], texts))
    expected = list(Classifier(ToyModel(), TEMPLATE, LABELS, SHOWN, PRIOR).predict(texts))
    assert found["raw"].tolist() == [each.raw.argmax() for each in expected]
    assert found["contextual"].tolist() == [each.calibrated.argmax() for each in expected]
    assert found["prior"].tolist() == [2] * 20
    assert told[-1] == 20


def test_all_rows_of_a_cell_are_read_under_one_prompt():
    class Remembering(ToyModel):
        def open(self, prefix, rows, length, room):
            prefixes.add(tuple(prefix))
            return super().open(prefix, rows, length, room)

    prefixes: set[tuple[int, ...]] = set()
    finished(LocalReader(Remembering()).answers(TEMPLATE, LABELS, ARMS[1], [f"text {i} " * (1 + i) for i in range(40)]))
    assert len(prefixes) == 1


def test_an_accuracy_counts_the_rows_that_are_right():
    rows = [Record(f"text {i}", LABELS[i % 3]) for i in range(30)]
    _, found = finished(read_cell(ToyModel(), TEMPLATE, LABELS, cells_of(ARMS)[1], rows))
    _, said = finished(LocalReader(ToyModel()).answers(TEMPLATE, LABELS, ARMS[1], [each.text for each in rows]))
    assert {name: (each.correct, each.total) for name, each in found.items()} == {
        name: (int(np.sum(said[name] == truth_of(LABELS, rows))), 30) for name in said
    }
    assert found["prior"].correct == 10
