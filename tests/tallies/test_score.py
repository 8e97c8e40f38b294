"""Scores: the table, the set that each interval is the hull of, and how often intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechanisms.noise import SeededRandomness
from mechanisms.tallies import Estimate, ScoreTally, Weighing, masses, usual_weighing, weights
from tests.steps.inputs import Noiseless

Z = 1.959964
GRID = 2001
counts = st.lists(st.floats(-40, 300), min_size=4, max_size=4).map(np.array)
SOME = settings(max_examples=200)


def test_every_row_is_in_the_cell_of_what_it_is_right_under():
    right = np.array([[True, False], [True, True], [False, False], [False, True], [False, True]])
    cells = ScoreTally.cells(right).sum(axis=0)
    assert cells.tolist() == [1, 1, 2, 1]
    assert ScoreTally.cells(right).sum(axis=1).tolist() == [1] * 5
    assert ScoreTally.cells(np.empty((0, 3), dtype=bool)).shape == (0, 8)


@given(right=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=30))
@SOME
def test_without_noise_rates_and_differences_are_those_of_the_rows(right):
    rows = np.array(right)
    score = ScoreTally(2.0, False)
    cells = score.release(ScoreTally.cells(rows), Noiseless())
    for arm in range(3):
        assert score.accuracy(cells, arm).value == pytest.approx(rows[:, arm].mean())
        expected = rows[:, arm].mean() - rows[:, 0].mean()
        assert score.difference(cells, arm, 0).value == pytest.approx(expected)


def room_of_rate(score, cells, arm, p):
    """How far the inequality of a rate is from not holding; it does not where this is negative."""
    right = cells[[i for i in range(len(cells)) if i >> arm & 1]].sum()
    wrong, noise = cells.sum() - right, len(cells) / 2 * score.deviation**2
    sampling = max(cells.sum(), 0) * p * (1 - p)
    return Z * np.sqrt(sampling + noise * ((1 - p) ** 2 + p**2)) - np.abs((1 - p) * right - p * wrong)


def room_of_difference(score, cells, one, other, d):
    only = [
        cells[[i for i in range(len(cells)) if i >> a & 1 and not i >> b & 1]].sum()
        for a, b in ((one, other), (other, one))
    ]
    noise = len(cells) / 2 * score.deviation**2
    spread = np.maximum(sum(only) - d**2 * cells.sum(), 0) + noise * (1 + 2 * d**2)
    return Z * np.sqrt(spread) - np.abs(only[0] - only[1] - d * cells.sum())


def same_hull(estimate: Estimate, points, room):
    """The interval is the hull of what fulfils the inequality as it is written: nothing outside does, both ends do.

    What lies outside is looked for on a grid. The ends are not, since a part of the set may be narrower than its steps.
    """
    inside, ends = points[room(points) >= 0], np.array([estimate.low, estimate.high])
    if len(inside) == 0 and ends.tolist() == [points[0], points[-1]]:
        return True
    return not ((inside < ends[0] - 1e-9) | (inside > ends[1] + 1e-9)).any() and (room(ends) >= -1e-6).all()


@given(cells=counts, epsilon=st.sampled_from([0.1, 0.5, 2.0, 8.0]), arm=st.integers(0, 1))
@SOME
def test_the_interval_of_a_rate_is_the_set_of_rates_that_fit(cells, epsilon, arm):
    score, points = ScoreTally(epsilon, False), np.linspace(0, 1, GRID)
    estimate = score.accuracy(cells, arm)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    if cells.sum() > 0:
        assert same_hull(estimate, points, lambda p: room_of_rate(score, cells, arm, p))


@given(cells=counts, epsilon=st.sampled_from([0.1, 0.5, 2.0, 8.0]))
@example(cells=np.array([117.9, 100.0, -30.0, 50.0]), epsilon=8.0)  # a sliver apart from the rest, between two places
@SOME
def test_the_interval_of_a_difference_is_the_set_of_differences_that_fit(cells, epsilon):
    score, points = ScoreTally(epsilon, False), np.linspace(-1, 1, GRID)
    estimate = score.difference(cells, 1, 0)
    assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1
    if cells.sum() > 0:
        centre = float(cells[2] - cells[1]) / float(cells.sum())  # in the midst of a sliver
        points = np.sort([*points, np.clip(centre, -1, 1)])
        assert same_hull(estimate, points, lambda d: room_of_difference(score, cells, 1, 0, d))


def test_where_nothing_can_be_said_the_interval_is_everything():
    score = ScoreTally(1.0, False)
    for cells in (np.zeros(4), np.array([-3.0, 0, 1, 0])):
        assert score.accuracy(cells, 0) == Estimate(0.5, 0.0, 1.0)
        assert score.difference(cells, 0, 1) == Estimate(0.0, -1.0, 1.0)
    nowhere = np.array([-500.0, 1000.0, -400.0, 100.0])  # no rate fits
    assert (score.accuracy(nowhere, 0).low, score.accuracy(nowhere, 0).high) == (0, 1)
    assert score.accuracy(nowhere, 0).wide


def test_few_rows_are_said_to_be_few():
    rng, score = np.random.default_rng(1), ScoreTally(1.0, False)
    few, many = (score.release(ScoreTally.cells(rng.random((n, 2)) < 0.7), SeededRandomness(2)) for n in (25, 1000))
    assert score.accuracy(few, 0).wide
    assert not score.accuracy(many, 0).wide


def covered(score, rates, units, rows_each, trials, seed):
    """How often the intervals of the last arm's rate, and of its lead over the first, hold the true ones."""
    rng, source = np.random.default_rng(seed), SeededRandomness(seed)
    rate_held = lead_held = 0
    for _ in range(trials):
        ease = rng.random((units, rows_each, 1))  # rows are hard or easy for all arms alike
        right = np.where(rng.random(ease.shape) < 0.5, ease, rng.random((*ease.shape[:2], len(rates)))) < rates
        rows = ScoreTally.cells(right.reshape(-1, len(rates))).reshape(units, rows_each, -1)
        cells = score.release(rows.mean(axis=1), source)
        rate, lead = score.accuracy(cells, len(rates) - 1), score.difference(cells, len(rates) - 1, 0)
        rate_held += rate.low <= rates[-1] <= rate.high
        lead_held += lead.low <= rates[-1] - rates[0] <= lead.high
    return rate_held / trials, lead_held / trials


@pytest.mark.parametrize("rates", [(0.5, 0.6), (0.7, 0.7, 0.95), (0.3, 0.98)], ids=str)
@pytest.mark.parametrize(("epsilon", "units"), [(0.5, 80), (1.0, 60), (1.0, 400), (4.0, 150)])
def test_nine_in_ten_intervals_and_more_hold_the_truth(rates, epsilon, units):
    found = covered(ScoreTally(epsilon, False), np.array(rates), units, 1, 250, seed=7)
    assert min(found) >= 0.9


def test_so_they_do_for_users():
    assert min(covered(ScoreTally(1.0, True), np.array([0.5, 0.8]), 120, 3, 250, seed=11)) >= 0.9


# Weights of units by the public sizes of labels: what they add up to, and what a weighted score says.

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


def cells_of(score: ScoreTally, right: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return score.release(ScoreTally.cells(right) * weight[:, None], SeededRandomness(1))


def test_whoever_names_the_largest_label_every_time_finds_one_in_so_many():
    counts = {"a": 6000, "b": 2000, "c": 2000}
    truth, each = np.repeat([0, 1, 2], [*counts.values()]), weights(counts, Weighing.LABELS)
    weight = np.array([each[label] for label in counts])[truth]
    score = ScoreTally(4.0, False, weighted=True)
    found = score.accuracy(cells_of(score, (truth == 0)[:, None], weight), 0)
    assert found.low < 1 / 3 < found.high
    assert not found.wide


def test_nine_in_ten_weighted_intervals_and_more_hold_the_truth():
    rng, source, score = np.random.default_rng(5), SeededRandomness(5), ScoreTally(1.0, False, weighted=True)
    rates, weight = np.array([0.9, 0.3, 0.6]), np.array([0.1, 1.0, 1.0])
    shares = np.array([0.8, 0.1, 0.1])
    true = float((shares * weight * rates).sum() / (shares * weight).sum())
    held = 0
    for _ in range(250):
        truth = rng.choice(3, 300, p=shares)
        right = rng.random(300) < rates[truth]
        found = score.accuracy(score.release(ScoreTally.cells(right[:, None]) * weight[truth][:, None], source), 0)
        held += found.low <= true <= found.high
    assert held >= 0.9 * 250
