"""Thresholds that are released for each question."""

import numpy as np
import pytest

from mechanisms.noise import SeededRandomness
from research.benchmarks.thresholds import WIDTH, Counting

SIMILAR = np.linspace(0.05, 0.95, 200)


def test_without_noise_the_threshold_reaches_just_enough_units():
    threshold = Counting(0, 40).release(SIMILAR, SeededRandomness(1))
    reached, closer = ((each <= SIMILAR).sum() for each in (threshold, threshold + WIDTH))
    assert closer < 40 <= reached


def test_counts_cost_what_they_were_calibrated_to():
    assert Counting.costing(0.01, 40).rho == pytest.approx(0.01)


@pytest.mark.parametrize("seed", range(20))
def test_a_unit_below_the_threshold_changes_no_release(seed):
    counting = Counting(5.0, 40)
    threshold = counting.release(SIMILAR, SeededRandomness(seed))
    more = np.append(SIMILAR, threshold - WIDTH / 2)
    assert counting.release(more, SeededRandomness(seed)) == threshold


def test_a_unit_stands_in_one_bin():
    class Recorded(SeededRandomness):
        def __init__(self):
            super().__init__(0)
            self.counts = []

        def gaussian(self, values, scale):
            self.counts.append(int(values[0]))
            return values

    counts = []
    for similar in (SIMILAR, np.append(SIMILAR, 0.5), np.append(SIMILAR, 1.0)):
        randomness = Recorded()
        Counting(1.0, 10**6).release(similar, randomness)
        counts.append(np.array(randomness.counts))
    assert [np.count_nonzero(counts[0] - each) for each in counts[1:]] == [1, 1]
