"""What every registered tally has to pass: no unit moves its sum further than it pays for, and no unit stops it."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mechanisms.accounting import PrivacyTarget, claim
from mechanisms.discovery import defined
from mechanisms.errors import StudioError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.privacy_events import Composed
from mechanisms.tallies import Prototypes, ScoreTally
from mechanisms.tallies import tally as histogram
from mechanisms.tallies.tally import LATTICE, Tally, mean_contribution, within_one
from tests.replay.contract import replay, replayed
from tests.replay.tape import Tape
from tests.steps.inputs import Noiseless

TALLIES = defined("mechanisms.tallies", "TALLY")
ENTRIES, LABELS = 4, 3
TARGET = PrivacyTarget(0.7, 1e-5)
SLACK = 1 + 1e-12
MANY = settings(max_examples=80)
anything = st.integers(1, 6).flatmap(
    lambda units: arrays.arrays(np.float64, (units, ENTRIES), elements=st.floats(allow_subnormal=True))
)
likely = st.integers(1, 6).flatmap(
    lambda units: arrays.arrays(np.float32, (units, ENTRIES), elements=st.floats(0, 1, width=32))
)
ONE_HOT = np.eye(ENTRIES)
"""In a tally of labels and vectors the first entry is a label: the others are vectors of the first one."""
HOSTILE = [
    np.array(row)
    for row in (
        [np.nan, 1, 1, 1],
        [np.inf, 0, 0, 1],
        [-np.inf, 1, 0, 0],
        [np.nan] * 4,
        [-1.0, 1, 1, 1],
        [0.0, -1, -1, -1],
        [1e308] * 4,
        [5e-324] * 4,
        [-0.0, 1, 0, 0],
        [1 + 1e-9, 1e-9, 0, 0],
        [0.3, 0.3, 0.3, 0.1],
        [0.5, 0.5, 0.5, 0.5],
        [1.0, 1.0, 1.0, 1.0],
        [1.0, -1.0, 0, 0],
    )
]
ALL = [
    pytest.param(name, by_user, id=f"{name}-{'users' if by_user else 'records'}")
    for name in TALLIES
    for by_user in (False, True)
]
WEIGHED = "score by weights"
WITH_WEIGHTS = [*ALL, pytest.param(WEIGHED, False, id="score-weighed records")]


@functools.cache
def made(name: str, by_user: bool, epsilon: float = TARGET.epsilon) -> Tally:
    """The tally whose release costs epsilon."""
    if name == WEIGHED:
        return ScoreTally(epsilon, by_user, weighted=True)
    if name == "prototypes":
        return Prototypes.costing(PrivacyTarget(epsilon, TARGET.delta), LABELS)
    tally = TALLIES[name]
    return tally(epsilon, by_user) if issubclass(tally, histogram.WholeVotes) else tally(epsilon)


def share(tally: Tally, rows: np.ndarray) -> float:
    """What the last unit uses of what it pays."""
    return replayed(tally.release, rows, rows[:-1], tally.event).noise


@pytest.mark.parametrize(("name", "by_user"), WITH_WEIGHTS)
@given(rows=st.one_of(anything, likely))
@MANY
def test_no_unit_moves_the_sum_further_than_it_pays_for(name, by_user, rows):
    assert share(made(name, by_user), rows) <= SLACK


@pytest.mark.parametrize("row", HOSTILE, ids=str)
@pytest.mark.parametrize(("name", "by_user"), WITH_WEIGHTS)
def test_odd_numbers_move_it_no_further_either(name, by_user, row):
    assert share(made(name, by_user), np.stack([row, *ONE_HOT, row])) <= SLACK


@pytest.mark.parametrize(("name", "by_user"), WITH_WEIGHTS)
def test_a_unit_can_use_up_what_it_pays_and_pays_the_target(name, by_user):
    tally = made(name, by_user)
    assert max(share(tally, np.stack([ONE_HOT[0], row])) for row in ONE_HOT) == pytest.approx(1)
    paid = claim(Composed("role", (("one", (tally.event,)),)), TARGET.delta).epsilon
    assert 0.97 * TARGET.epsilon < paid <= TARGET.epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("name", "by_user"), WITH_WEIGHTS)
@given(rows=likely)
@MANY
def test_a_record_of_whole_numbers_moves_one_of_them_by_one(name, by_user, rows):
    """Which is what randomised response prices."""
    tally = made(name, by_user)
    if not isinstance(tally, histogram.Histogram) or tally.steps != 1:
        return
    for moved in replay(tally.release, rows, rows[:-1]).ways[0].values():
        assert np.abs(moved).sum() in (0, 1)


@pytest.mark.parametrize("randomness", [SecureRandomness(), SeededRandomness(1)], ids=["secure", "seeded"])
@pytest.mark.parametrize("units", [0, 1, 700])
@pytest.mark.parametrize(("name", "by_user"), WITH_WEIGHTS)
def test_any_number_of_units_gives_the_same_shape(name, by_user, units, randomness):
    tally = made(name, by_user)
    rows = np.tile(ONE_HOT[:1], (units, 1))
    assert np.shape(tally.release(rows, randomness)) == np.shape(tally.release(ONE_HOT[:1], Noiseless()))


@pytest.mark.parametrize(("name", "by_user"), WITH_WEIGHTS)
def test_the_sum_is_one_of_whole_numbers_and_does_not_depend_on_the_order(name, by_user):
    rows, tapes = np.random.default_rng(5).dirichlet(np.ones(ENTRIES), 300), (Tape(), Tape())
    for tape, each in zip(tapes, (rows, rows[::-1]), strict=True):
        made(name, by_user).release(each, tape)
    [one], [other] = (tape.draws for tape in tapes)
    assert one.values.dtype == np.int64
    assert (one.values == other.values).all()


def test_what_is_not_finite_or_negative_is_no_vote():
    for spoilt in ([np.nan, 1, 0, 0], [np.inf, 0, 0, 0], [-0.1, 1, 0, 0]):
        rows = np.array([ONE_HOT[0], spoilt])
        for name in ("openings", "prior", "score", "votes"):
            assert share(made(name, False), rows) == 0


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
    for name in TALLIES:
        assert share(made(name, True), contribution[None]) <= SLACK


def test_a_users_mean_divides_by_all_rows_and_takes_what_is_not_finite_for_zero():
    assert mean_contribution(np.array([[1.0, 0], [np.nan, 1]])).tolist() == [0.5, 0.5]
    assert mean_contribution(np.empty((0, 3))).tolist() == [0, 0, 0]


@pytest.mark.parametrize("wrong", [0.0, -1.0, 101.0, np.nan, np.inf])
@pytest.mark.parametrize(("name", "by_user"), ALL)
def test_an_epsilon_without_meaning_is_refused(name, by_user, wrong):
    if name == "prototypes" and wrong == 101.0:
        return
    with pytest.raises(StudioError):
        made(name, by_user, wrong)
