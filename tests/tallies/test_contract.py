"""What every tally has to pass: no unit moves its sum further than it pays for, and no unit stops it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.tallies import Choice, Prior, Prototypes, Score, Votes, choice, histogram, prototypes
from mechanisms.tallies.tally import LATTICE, mean_contribution, within_one
from tests.tallies.releases import CASES, ENTRIES, WHOLE, Recorder, cost, moved

SLACK = 1 + 1e-12
MANY = settings(max_examples=150)
anything = st.integers(1, 6).flatmap(
    lambda units: arrays.arrays(np.float64, (units, ENTRIES), elements=st.floats(allow_subnormal=True))
)
likely = st.integers(1, 6).flatmap(
    lambda units: arrays.arrays(np.float32, (units, ENTRIES), elements=st.floats(0, 1, width=32))
)
ONE_HOT, EVERYTHING = np.eye(ENTRIES)[:1], np.ones((1, ENTRIES))
HOSTILE = [
    np.array(row)
    for row in (
        [np.nan, 1, 1, 1],
        [np.inf, 0, 0, 1],
        [-np.inf, 1, 0, 0],
        [np.nan] * 4,
        [-1.0, 1, 1, 1],
        [1e308] * 4,
        [5e-324] * 4,
        [-0.0, 1, 0, 0],
        [1 + 1e-9, 1e-9, 0, 0],
        [0.5, 0.5, 0.5, 0.5],
        [1.0, -1.0, 0, 0],
    )
]


@pytest.mark.parametrize("name", CASES)
@given(rows=st.one_of(anything, likely))
@MANY
def test_no_unit_moves_the_sum_further_than_it_pays_for(name, rows):
    assert cost(CASES[name], rows) <= CASES[name].allowed * SLACK


@pytest.mark.parametrize("row", HOSTILE, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_odd_numbers_move_it_no_further_either(name, row):
    assert cost(CASES[name], np.stack([row, *ONE_HOT, row])) <= CASES[name].allowed * SLACK


@pytest.mark.parametrize("name", CASES)
def test_a_unit_can_use_up_what_it_pays(name):
    assert cost(CASES[name], ONE_HOT) == pytest.approx(CASES[name].allowed)


@pytest.mark.parametrize("name", WHOLE)
@given(rows=st.one_of(anything, likely))
@MANY
def test_a_record_moves_one_whole_number_by_one_which_is_what_randomised_response_prices(name, rows):
    _, change, scale = moved(CASES[name], rows)
    assert np.abs(change).sum() in (0, 1)
    assert scale == 1 / CASES[name].allowed


@pytest.mark.parametrize("randomness", [SecureRandomness(), SeededRandomness(1)], ids=["secure", "seeded"])
@pytest.mark.parametrize("units", [0, 1, 700])
@pytest.mark.parametrize("name", CASES)
def test_any_number_of_units_gives_the_same_shape(name, units, randomness):
    rows = np.tile(ONE_HOT, (units, 1))
    assert np.shape(CASES[name].release(rows, randomness)) == np.shape(CASES[name].release(ONE_HOT, Recorder()))


@pytest.mark.parametrize("name", [each for each in CASES if each != "prototypes"])
def test_the_sum_does_not_depend_on_the_order(name):
    rows = np.random.default_rng(5).dirichlet(np.ones(ENTRIES), 300)
    one, other = Recorder(), Recorder()
    CASES[name].release(rows, one)
    CASES[name].release(rows[::-1], other)
    assert (one.draws[0][1] == other.draws[0][1]).all()


def test_what_is_not_finite_or_negative_is_no_vote_and_a_zero_for_its_arm_alone_in_a_choice():
    spoilt = np.array([[np.nan, 1, 0, 0], [np.inf, 0, 0, 0], [-0.1, 1, 0, 0]])
    for name in set(CASES) - {"choice", "prototypes"}:
        _, change, _ = moved(CASES[name], spoilt)
        assert not change.any()
    _, change, _ = moved(CASES["choice"], spoilt)
    assert change.tolist() == [0, LATTICE, 0, 0]


def test_a_softmax_in_float32_is_brought_under_its_norm():
    logits = np.random.default_rng(3).normal(size=(2000, 50)).astype(np.float32)
    rows = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True, dtype=np.float32)
    assert rows.dtype == np.float32
    plain = np.floor(rows.astype(np.float64) * LATTICE).sum(axis=1)
    assert plain.max() > LATTICE  # it is needed
    held = within_one(rows, LATTICE).sum(axis=1)
    assert held.max() <= LATTICE
    assert held.min() > LATTICE - 1000


@given(rows=likely)
@MANY
def test_a_users_mean_keeps_the_norms(rows):
    contribution = mean_contribution(rows / np.maximum(1, rows.sum(axis=1, keepdims=True)))
    assert contribution.dtype == np.float64
    assert contribution.sum() <= 1 + 1e-6
    for name in CASES:
        assert cost(CASES[name], contribution[None]) <= CASES[name].allowed * SLACK


def test_a_users_mean_divides_by_all_rows_and_takes_what_is_not_finite_for_zero():
    assert mean_contribution(np.array([[1.0, 0], [np.nan, 1]])).tolist() == [0.5, 0.5]
    assert mean_contribution(np.empty((0, 3))).tolist() == [0, 0, 0]


PLANTED = {
    "two votes": (histogram, "within_one", lambda rows, steps: (rows * steps).astype(np.int64), "votes", EVERYTHING),
    "not one's share": (
        histogram,
        "within_one",
        lambda rows, steps: np.ceil(rows * steps).astype(np.int64),
        "prior",
        np.array([[0.3, 0.3, 0.3, 0.1]]),
    ),
    "signed entries": (
        choice,
        "from_zero_to_one",
        lambda rows: (rows * LATTICE).astype(np.int64),
        "choice",
        np.array([[1.0, -1, 0, 0]]),
    ),
    "no ball": (prototypes, "within_ball", lambda rows: (rows * LATTICE).astype(np.int64), "prototypes", EVERYTHING),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_the_contract_finds_a_planted_error_in_what_a_unit_adds(planted, monkeypatch):
    module, function, wrong, name, rows = PLANTED[planted]
    assert cost(CASES[name], rows) <= CASES[name].allowed * SLACK
    monkeypatch.setattr(module, function, wrong)
    assert cost(CASES[name], rows) > CASES[name].allowed * SLACK


@pytest.mark.parametrize("name", CASES)
def test_the_contract_finds_too_little_noise(name):
    assert cost(CASES[name], ONE_HOT, factor=0.99) > CASES[name].allowed * SLACK


@pytest.mark.parametrize("wrong", [0.0, -1.0, 101.0, np.nan, np.inf])
def test_an_epsilon_without_meaning_is_refused(wrong):
    for make in (lambda e: Votes(e, False), Prior, Choice, lambda e: Score(e, True)):
        with pytest.raises(UsageError, match="A tally's epsilon must lie between"):
            make(wrong)
    with pytest.raises(UsageError, match="noise multiplier"):
        Prototypes(wrong if wrong <= 0 else np.nan)
