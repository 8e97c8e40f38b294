"""Public text where the rows agree with it: the distance, searches, whole demonstrations by exact probabilities."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, laplace

from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.privacy_events import Poisson, Pure, SequentialComposition
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps.distributions import GRID
from mechanisms.steps.svt_public import SvtPublic, distance
from tests.replay.tape import Noise, Tape, Told
from tests.steps.inputs import FALSE_ALARM, Noiseless, a_step, neighbours
from tests.steps.test_demonstrations import PLANS, told, worst
from tests.steps.test_noisy_max import selection

pytestmark = pytest.mark.slow

EPSILON = 1.2
UNIT_ROWS, SUBSETS = PLANS[2:4]


@pytest.mark.parametrize("unit_rows", [True, False])
def test_a_unit_moves_the_distance_by_one_row_at_most(unit_rows):
    @given(pair=neighbours(unit_rows))
    @settings(max_examples=300)
    def holds(pair):
        assert abs(distance(pair[0]) - distance(pair[1])) <= 2 * GRID

    holds()
    one, other = worst(UNIT_ROWS if unit_rows else SUBSETS)
    moved = [(distance(a) - distance(b)) / (2 * GRID) for a, b in zip(one, other, strict=True)]
    assert max(moved) > 0.99
    assert min(moved) < -0.85


def test_rows_that_say_what_public_text_says_are_at_no_distance_however_many_joined():
    public = np.array([1.0, 0.0, -2.0])
    for joined in (0, 3, 40):
        assert distance(a_step(np.tile(public, (joined, 1)).reshape(-1, 3), public, expected=20)) == 0
    assert distance(a_step(np.full((4, 3), np.nan), public)) == 0
    apart = a_step(np.log([[0.5, 0.3, 0.2]] * 4), np.log([0.1, 0.3, 0.6]))
    assert distance(apart) / (2 * GRID) == pytest.approx(4 * 0.4)


@dataclass(frozen=True)
class Search:
    """AboveThreshold written out: probabilities of its answers on given distances, by integrating over the threshold.

    Scales are in rows.
    """

    threshold_scale: float
    query_scale: float
    threshold: float

    def ends_at(self, distances, last_is_above=True):
        """Probability that all but the last are below, and the last is above (or below as well)."""
        noise = np.linspace(-40 * self.threshold_scale, 40 * self.threshold_scale, 40_001)
        below = [laplace.cdf(self.threshold + noise - d, scale=self.query_scale) for d in distances]
        answers = np.prod(below[:-1], axis=0) * (1 - below[-1] if last_is_above else below[-1])
        return float(np.trapezoid(laplace.pdf(noise, scale=self.threshold_scale) * answers, noise))


def search_of(mechanism, rows, factor=1.0):
    share = mechanism.half / (1 + 2 ** (2 / 3))
    return Search(1 / share, factor * 2 / (mechanism.half - share), mechanism.threshold * rows)


def worst_search(search):
    """The largest log-ratio over some distances that one unit changes by a row, of searches that end or do not."""
    found = []
    for below, start, up in itertools.product((0, 1, 5, 30), (-3.0, 0.0, 2.0), (True, False)):
        one, other = [start] * below + [start + 1], [start + 1] * below + [start]
        either = [search.ends_at(each, up) for each in (one, other)]
        found.append(abs(math.log(either[0] / either[1])))
    return max(found)


@pytest.mark.parametrize("epsilon", [0.2, 1.2, 6.0])
def test_a_search_costs_its_half_of_epsilon_however_long_it_is(epsilon):
    mechanism = SvtPublic(token_epsilon=epsilon, threshold=0.1)
    found = worst_search(search_of(mechanism, 10))
    assert 0.85 * mechanism.half < found <= mechanism.half * (1 + 1e-6)
    assert worst_search(search_of(mechanism, 10, factor=0.5)) > 1.1 * mechanism.half, "queries need twice the noise"


# Two candidates: public text is certain of the first, and so is a row at no distance; one certain of the second is a
# row away.
PUBLIC = np.array([0.0, -1000.0])
CERTAIN = np.array([[1000.0, -1000.0], [-1000.0, 1000.0]])


def demonstration(*votes):
    """Steps whose rows are certain of the given candidates."""
    return [a_step(CERTAIN[list(each)].reshape(-1, 2), PUBLIC, expected=2) for each in votes]


def probabilities(mechanism, steps):
    """Of every demonstration, written out: for each step whether it is paid, and the candidate."""
    found = {}
    for paid in itertools.product((False, True), repeat=len(steps)):
        capped = np.cumsum(paid) - paid >= mechanism.private_tokens  # nothing is asked any more
        if (capped & paid).any():
            continue
        chance, searched = 1.0, []
        for each, was_paid, over in zip(steps, paid, capped, strict=True):
            if not over:
                searched.append(distance(each) / (2 * GRID))
            if was_paid:
                chance *= search_of(mechanism, 2).ends_at(searched)
                searched = []
        if searched:
            chance *= search_of(mechanism, 2).ends_at(searched, last_is_above=False)
        choices = [
            selection(mechanism.aggregate(each) / GRID, 1 / mechanism.half) if was_paid else [1.0, 0.0]
            for each, was_paid in zip(steps, paid, strict=True)
        ]
        for tokens in itertools.product((0, 1), repeat=len(steps)):
            found[tuple(zip(paid, tokens, strict=True))] = chance * math.prod(
                choice[token] for choice, token in zip(choices, tokens, strict=True)
            )
    return found


EXACT = SvtPublic(token_epsilon=EPSILON, private_tokens=2, threshold=0.25)
WITH, WITHOUT = demonstration((1,), (1,), (1, 1), (1,)), demonstration((), (), (1,), ())


def test_no_demonstration_is_more_likely_than_the_event_allows():
    one, other = probabilities(EXACT, WITH), probabilities(EXACT, WITHOUT)
    for each in (one, other):
        assert sum(each.values()) == pytest.approx(1.0, abs=1e-6)
    assert {outcome for outcome in one if one[outcome] > 0} == {outcome for outcome in other if other[outcome] > 0}
    worst_ratio = max(abs(math.log(one[outcome] / other[outcome])) for outcome in one if one[outcome] > 0)
    assert 0.5 * 2 * EPSILON < worst_ratio <= 2 * EPSILON


@pytest.mark.parametrize("source", [SecureRandomness(), SeededRandomness(17)], ids=["secure", "seeded"])
def test_demonstrations_have_these_probabilities(source):
    plan, expected, draws = SamplingPlan(rows_per_token=2, tokens=4), probabilities(EXACT, WITH), 2000
    counts = dict.fromkeys(expected, 0)
    for _ in range(draws):
        releaser = EXACT.begin(plan, source)
        released = [releaser(each) for each in WITH]
        counts[tuple((not each.free, each.index) for each in released)] += 1
    common = [outcome for outcome in expected if expected[outcome] * draws >= 5]
    seen = np.array([*(counts[each] for each in common), draws - sum(counts[each] for each in common)])
    chances = np.array([*(expected[each] for each in common), 1 - sum(expected[each] for each in common)])
    assert chisquare(seen, draws * chances / chances.sum()).pvalue > FALSE_ALARM


@given(budget=st.integers(1, 5), seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_after_the_last_private_token_nothing_is_asked_of_the_rows(budget, seed):
    steps, _ = worst(UNIT_ROWS)
    tape = Tape(seed)
    told(SvtPublic(private_tokens=budget, threshold=0.0), UNIT_ROWS)(steps, tape)
    tokens = [place for place, entry in enumerate(tape.entries) if isinstance(entry, Told)]
    released = {place: tape.entries[place].event for place in tokens}
    paid = [place for place in tokens if not released[place].free]
    assert len(paid) <= budget
    if len(paid) == budget:
        assert not any(isinstance(entry, Noise) for entry in tape.entries[paid[-1] :])
    assert all(release.scores is None for release in released.values())


@pytest.mark.parametrize(("temperature", "power"), [(1.0, 1.0), (0.5, 2.0)])
def test_free_tokens_are_drawn_from_public_text_at_its_temperature(temperature, power):
    public, private = np.log([0.6, 0.3, 0.1]), CERTAIN[:1].repeat(5, axis=0)
    step = a_step(np.hstack([private, np.zeros((5, 1))]), public)
    releaser = replace(SvtPublic(), temperature=temperature).begin(UNIT_ROWS, SeededRandomness(6))
    releaser.left = 0
    drawn = np.bincount([releaser(step).index for _ in range(3000)], minlength=3)
    weights = np.array([0.6, 0.3, 0.1]) ** power
    assert chisquare(drawn, 3000 * weights / weights.sum()).pvalue > FALSE_ALARM
    releaser = replace(SvtPublic(), temperature=0.0, threshold=1.0).begin(SamplingPlan(rows_per_token=50), Noiseless())
    assert releaser(step).index == 0


def test_the_event_depends_on_the_tokens_through_the_cap_alone():
    mechanism = SvtPublic(token_epsilon=0.4, private_tokens=3)
    assert mechanism.event(50, 1.0) == mechanism.event(3, 1.0) == SequentialComposition((Pure(0.2, 3), Pure(0.2, 3)))
    assert mechanism.event(2, 1.0) == SequentialComposition((Pure(0.2, 2), Pure(0.2, 2)))
    assert mechanism.event(50, 0.1) == Poisson(0.1, mechanism.event(50, 1.0))


def test_a_new_sample_for_every_token_is_closed():
    with pytest.raises(UsageError, match="Choose one sample"):
        SvtPublic().for_plan(SamplingPlan(Scheme.PER_TOKEN))
