"""Counts in buckets: a row is one vote, its bucket is its own, and without noise the bucket's majority answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Pure
from mechanisms.tallies.votes import Votes
from research.newer.buckets import Buckets, bits_for, hyperplanes

BITS, DIMENSIONS, LABELS, EPSILON = 4, 12, 3, 0.5
BUCKETS = Buckets(hyperplanes(BITS, DIMENSIONS, SeededRandomness(3)), LABELS, Votes(EPSILON, by_user=False))


class Recording(SeededRandomness):
    """Keeps what noise is added to, and how much."""

    def laplace(self, values, scale):
        self.values, self.scale = values, scale
        return values


def rows(seed, size):
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(size, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return generator.integers(-1, LABELS + 1, size), vectors.astype(np.float32)


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_a_row_moves_one_count_by_one_and_pays_for_it(seed, size):
    labels, vectors = rows(seed, size)
    with_it, without = Recording(0), Recording(0)
    BUCKETS.release(labels, vectors, with_it)
    BUCKETS.release(labels[1:], vectors[1:], without)
    moved = np.abs(with_it.values - without.values)
    known = 0 <= labels[0] < LABELS
    assert moved.sum() == known
    # Discrete Laplace noise: the probability of a table changes by e^(distance / scale) at most.
    assert 1 / with_it.scale <= EPSILON
    assert BUCKETS.tally.event == Pure(EPSILON)


@given(st.integers(0, 2**32))
def test_a_bucket_is_the_row_s_own(seed):
    _, vectors = rows(seed, 33)
    together = BUCKETS.of(vectors)
    assert together.tolist() == [int(BUCKETS.of(vectors[[row]])[0]) for row in range(33)]
    assert ((together >= 0) & (together < BUCKETS.number)).all()
    # Bits are sides of hyperplanes: the opposite vector lies on the other side of all of them.
    assert (BUCKETS.of(-vectors) == BUCKETS.number - 1 - together).mean() > 0.9


def test_many_rows_are_counted_in_chunks():
    labels, vectors = rows(1, 1203)
    counts = BUCKETS.release(labels, vectors, Recording(0))
    assert counts.sum() == ((labels >= 0) & (labels < LABELS)).sum()
    for label in range(LABELS):
        assert counts[:, label].tolist() == np.bincount(BUCKETS.of(vectors[labels == label]), minlength=16).tolist()


def counts_of(entries):
    counts = np.zeros((BUCKETS.number, LABELS))
    for (bucket, label), count in entries.items():
        counts[bucket, label] = count
    return counts


@pytest.mark.parametrize(
    ("entries", "answer"),
    [
        ({(5, 2): 40, (4, 0): 500}, 2),  # its own bucket tells
        ({(5, 2): 1, (4, 0): 50, (10, 1): 500}, 0),  # a neighbour by one bit
        ({(5, 2): 1, (10, 1): 500}, 1),  # the opposite bucket: all there is
        ({(5, 2): 2, (10, 1): 3}, 1),  # nothing tells: the largest total
    ],
)
def test_the_nearest_buckets_that_tell_answer(entries, answer):
    assert BUCKETS.answer(counts_of(entries), 5) == answer


def test_without_noise_the_bucket_s_majority_answers():
    labels, vectors = rows(2, 400)
    labels = np.clip(labels, 0, LABELS - 1)
    quiet = Buckets(BUCKETS.planes, LABELS, Votes(100.0, by_user=False))
    counts = quiet.release(labels, vectors, SeededRandomness(0))
    of = quiet.of(vectors)
    for bucket in range(quiet.number):
        votes = np.sort(np.bincount(labels[of == bucket], minlength=LABELS))
        if votes[-1] > votes[-2]:
            assert quiet.answer(counts, bucket) == np.bincount(labels[of == bucket], minlength=LABELS).argmax()


def test_buckets_hold_some_twenty_rows():
    assert [bits_for(units) for units in (10, 40, 5452, 14000)] == [1, 1, 8, 9]
