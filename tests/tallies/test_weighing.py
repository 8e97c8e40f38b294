"""Weights of units by the public sizes of labels: what they add up to, and what a weighted score says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.noise import SeededRandomness
from mechanisms.tallies import Score, Weighing, masses, usual_weighing, weights
from mechanisms.tallies.tally import LATTICE

sizes = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 10_000), min_size=2)


@given(sizes=sizes, weighing=st.sampled_from(Weighing))
def test_no_weight_is_above_one_and_all_units_of_a_label_add_up_to_its_mass(sizes, weighing):
    counted, each = masses(sizes, weighing), weights(sizes, weighing)
    assert all(0 < weight <= 1 for weight in each.values())
    assert all(each[label] * sizes[label] == pytest.approx(counted[label]) for label in sizes)
    if weighing is Weighing.ROWS:
        assert set(each.values()) == {1.0}


def test_labels_count_the_same_but_for_very_small_ones():
    assert len({*masses({"a": 600, "b": 100, "c": 80}, Weighing.LABELS).values()}) == 1
    tiny = masses({"a": 600, "b": 300, "c": 3}, Weighing.LABELS)
    assert tiny["c"] == 3 < tiny["a"] == tiny["b"]


def test_labels_count_the_same_by_default_above_twice_an_even_share():
    assert usual_weighing({"a": 200, "b": 50, "c": 50}) is Weighing.ROWS
    assert usual_weighing({"a": 201, "b": 50, "c": 49}) is Weighing.LABELS
    assert usual_weighing({"a": 10**6, "b": 1}) is Weighing.ROWS  # two labels: more than twice one half is none


def cells_of(score: Score, right: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return score.release(Score.cells(right) * weight[:, None], SeededRandomness(1))


def test_whoever_names_the_largest_label_every_time_finds_one_in_so_many():
    counts = {"a": 6000, "b": 2000, "c": 2000}
    truth, each = np.repeat([0, 1, 2], [*counts.values()]), weights(counts, Weighing.LABELS)
    weight = np.array([each[label] for label in counts])[truth]
    score = Score(4.0, False, weighted=True)
    found = score.accuracy(cells_of(score, (truth == 0)[:, None], weight), 0)
    assert found.low < 1 / 3 < found.high
    assert not found.wide


def test_a_unit_of_weight_one_moves_the_table_by_its_whole_norm_and_no_further():
    score = Score(1.0, False, weighted=True)
    assert score.steps == LATTICE
    assert score.event == Score(1.0, True).event


def test_nine_in_ten_weighted_intervals_and_more_hold_the_truth():
    rng, source, score = np.random.default_rng(5), SeededRandomness(5), Score(1.0, False, weighted=True)
    rates, weight = np.array([0.9, 0.3, 0.6]), np.array([0.1, 1.0, 1.0])
    shares = np.array([0.8, 0.1, 0.1])
    true = float((shares * weight * rates).sum() / (shares * weight).sum())
    held = 0
    for _ in range(250):
        truth = rng.choice(3, 300, p=shares)
        right = rng.random(300) < rates[truth]
        found = score.accuracy(score.release(Score.cells(right[:, None]) * weight[truth][:, None], source), 0)
        held += found.low <= true <= found.high
    assert held >= 0.9 * 250
