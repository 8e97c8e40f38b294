"""Whole runs on canaries: a right one keeps its claim, and errors in the noise or in the cost show."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.audit.one_run import VOTE, CanaryModel, audit_run, audited_runs, canary, word
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
