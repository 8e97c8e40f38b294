"""Whole runs on canaries: a right one keeps its claim, and errors in the noise or in the cost show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from mechanisms.audit.one_run import (
    VOTE,
    CanaryModel,
    audit_run,
    audited_runs,
    best_guesses,
    canary,
    epsilon_proved,
    word,
)
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import PromptTemplate
from mechanisms.runs import stage
from mechanisms.runs.text import cleaned
from mechanisms.tallies import Votes

EPSILON = 2.0
CANARIES = 1024


class TooQuiet(SeededRandomness):
    """A quarter of the noise that was paid for."""

    def gaussian(self, values, scale):
        return super().gaussian(values, scale / 4)

    def laplace(self, values, scale):
        return super().laplace(values, scale / 4)


class Silent(SeededRandomness):
    """No noise at all."""

    def laplace(self, values, scale):
        return values


@pytest.fixture
def quick_drafts(monkeypatch):
    monkeypatch.setattr(
        stage, "write_drafts", lambda model, template, label, labels, count, *rest: tuple(map(word, range(count)))
    )


def audited(name, randomness, **rest):
    return audit_run(name, EPSILON, **{"canaries": CANARIES, "randomness": randomness} | rest)


@pytest.mark.usefixtures("quick_drafts")
def test_a_vote_with_its_noise_comes_near_its_claim_and_keeps_it():
    found = [audited(VOTE, SeededRandomness(seed)) for seed in range(4)]
    assert all(each.holds and each.claimed == pytest.approx(EPSILON) for each in found)
    assert np.median([each.guesses.lower_bound for each in found]) > EPSILON / 2


@pytest.mark.usefixtures("quick_drafts")
@pytest.mark.parametrize("randomness", [TooQuiet, Silent])
def test_a_vote_with_too_little_noise_is_refuted(randomness):
    assert not audited(VOTE, randomness(1), canaries=512).holds


@pytest.mark.usefixtures("quick_drafts")
def test_a_vote_that_is_cast_many_times_is_refuted(monkeypatch):
    honest = Votes.release
    monkeypatch.setattr(Votes, "release", lambda self, cast, noise: honest(self, np.repeat(cast, 5, axis=0), noise))
    assert not audited(VOTE, SeededRandomness(2)).holds


@pytest.mark.slow
def test_drafts_of_the_stand_in_pass_all_rules_and_the_whole_vote_is_audited():
    found = audited(VOTE, SeededRandomness(3), canaries=128)
    assert found.canaries == 128
    assert 0 < found.guesses.lower_bound <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in audited_runs() if each not in (VOTE, "non-private")])
def test_tokens_keep_their_claim(name):
    found = audited(name, SeededRandomness(4), canaries=256)
    assert found.holds
    if name == "public":
        assert found.claimed == found.guesses.lower_bound == 0


@pytest.mark.slow
def test_tokens_with_too_little_noise_are_refuted():
    assert audited("gaussian", SeededRandomness(5)).guesses.lower_bound > 0.2
    assert not audited("gaussian", TooQuiet(5)).holds


def test_as_many_canaries_as_can_be_told_apart():
    for canaries in (8, 5000):
        with pytest.raises(UsageError):
            audited(VOTE, SeededRandomness(6), canaries=canaries)
    with pytest.raises(UsageError):
        audited("gaussian", SeededRandomness(6), rate=0.0)


def test_the_stand_in_knows_a_canary_and_nothing_else():
    model = CanaryModel(200)
    assert len({word(i) for i in range(256)}) == 256
    [token] = model.encode(canary(17))
    assert model.decode([token]).strip() == word(17)
    session = model.open([], [model.encode(f"Note: {canary(17)}\n"), model.encode("Note:")], 9, 9)
    certain, blank = session.logits()
    assert certain.argmax() == token
    assert np.ptp(blank[-200:]) == 0 > blank[0]
    draft = " ".join(word(i) for i in (3, 50, 9, 120, 77))
    assert cleaned(draft, PromptTemplate("Sort."), "first", ("first", "second")) == draft


# The bound from one run: closed forms, and simulations of mechanisms whose epsilon is known.

RUNS = 40


def test_without_delta_it_is_the_interval_of_clopper_and_pearson():
    for made, correct in ((100, 80), (64, 64), (500, 300)):
        least = beta.ppf(0.05, correct, made - correct + 1)
        bound = epsilon_proved(made, made, correct, 0.0, 0.05)
        assert bound == pytest.approx(math.log(least / (1 - least)), abs=1e-5)
    assert epsilon_proved(100, 100, 50, 0.0, 0.05) == 0.0
    assert epsilon_proved(100, 100, 0, 0.0, 0.05) == 0.0


def test_delta_lowers_it_and_a_large_one_leaves_nothing():
    bounds = [epsilon_proved(1000, 100, 90, delta, 0.05) for delta in (0.0, 1e-4, 1e-2)]
    assert bounds[0] > bounds[1] > bounds[2] == 0.0


def response(epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    return lambda coins, random: np.where(random.random(len(coins)) < truth, coins, ~coins).astype(float)


def laplace(epsilon):
    return lambda coins, random: coins + random.laplace(0.0, 1 / epsilon, len(coins))


def told_by_chance(delta):
    """Says nothing of a canary, but with probability delta everything."""
    return lambda coins, random: np.where(random.random(len(coins)) < delta, 2.0 * coins - 1, 0.0)


def bounds(mechanism, delta=0.0, canaries=256):
    random = np.random.default_rng(5)
    coins = [random.random(canaries) < 0.5 for _ in range(RUNS)]
    return [best_guesses(each, mechanism(each, random), delta).lower_bound for each in coins]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [response, laplace])
def test_right_noise_is_hardly_ever_refuted_and_noise_too_small_by_four_always(mechanism):
    found = bounds(mechanism(1.0))
    assert sum(bound > 1.0 for bound in found) <= 0.1 * RUNS
    assert np.median(found) > 0.3
    assert min(bounds(mechanism(4.0))) > 1.0


def test_what_says_nothing_proves_nothing():
    found = bounds(lambda coins, random: random.normal(size=len(coins)))
    assert sum(bound > 0 for bound in found) <= 0.1 * RUNS


def test_delta_is_counted():
    """Without the term in delta the bound would refute a mechanism that keeps its claim of epsilon 0."""
    assert sum(bound > 0 for bound in bounds(told_by_chance(0.1), delta=0.1)) <= 0.1 * RUNS
    assert sum(bound > 0 for bound in bounds(told_by_chance(0.1), delta=0.0)) > 0.5 * RUNS
