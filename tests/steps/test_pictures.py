"""What a mechanism shows beside a token: nothing that its noise did not pay for, and what it says is so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from mechanisms.noise import SeededRandomness
from mechanisms.sampling import SamplingPlan
from mechanisms.steps.adadpsyn import INITIAL_RADIUS, AdaDPSyn
from mechanisms.steps.blended_logits import BlendedLogits
from mechanisms.steps.difference_clipping import DifferenceClipping
from mechanisms.steps.mechanism import MOST_LINES
from mechanisms.steps.svt_public import SvtPublic
from tests.steps.inputs import CANDIDATES, Noiseless, a_step
from tests.steps.test_contract import PRIVATE, fitted


@dataclass(frozen=True)
class Token:
    public: tuple[float, ...]
    free: bool = False
    trail: tuple[tuple[float, ...], ...] = ()


def told(step, release):
    public = tuple((step.public_probabilities * step.expected_rows).tolist())
    return Token(public, release.free, release.trail)


@pytest.mark.parametrize("name", PRIVATE)
def test_a_trail_is_no_longer_than_is_said_and_a_picture_has_few_lines(name):
    mechanism = fitted(name)
    step = a_step(3 * np.eye(CANDIDATES)[[0, 0, 1, 2]])
    releaser = mechanism.begin(SamplingPlan(subsets=4), SeededRandomness(1))
    tokens = [told(step, releaser(step)) for _ in range(20)]
    assert all(len(each.trail) <= mechanism.longest_trail for each in tokens)
    if picture := mechanism.picture(tokens):
        assert 0 < len(picture.lines) <= max(MOST_LINES, mechanism.longest_trail + 1)
        assert picture.title
        assert picture.axis


def test_without_noise_the_ball_shrinks_to_where_the_rows_are():
    mechanism = AdaDPSyn(lambda_=0.0, refinements=2)
    step = a_step(np.tile(6 * np.eye(CANDIDATES)[0], (8, 1)))
    release = mechanism.step(step, Noiseless())
    radii = [radius for radius, _ in release.trail]
    assert [count for _, count in release.trail] == [8.0, 8.0]
    assert all(radius < INITIAL_RADIUS for radius in radii)
    simplex, *balls = mechanism.picture([told(step, release)]).lines
    assert simplex.spans == ((0.0, INITIAL_RADIUS),)
    assert [line.spans[0][1] for line in balls] == radii
    assert not any(line.pale for line in balls)


def test_a_ball_that_holds_too_few_rows_is_not_taken():
    mechanism = AdaDPSyn(lambda_=0.0, coverage=1.0, theta=0.5)
    step = a_step(6 * np.eye(CANDIDATES))
    release = mechanism.step(step, Noiseless())
    [(_, held)] = release.trail
    assert held < CANDIDATES
    ball = mechanism.picture([told(step, release)]).lines[-1]
    assert ball.pale
    assert "not taken" in ball.note


def test_free_and_paid_tokens_stand_where_they_were_released():
    mechanism = SvtPublic(private_tokens=3)
    tokens = [Token((1.0,), free) for free in (True, True, False, True)]
    paid, free = mechanism.picture(tokens).lines
    assert paid.spans == ((2.0, 3.0),)
    assert free.spans == ((0.0, 2.0), (3.0, 4.0))
    assert (paid.note, free.note) == ("1 of 3", "3")


def test_public_logits_are_shown_before_and_after_clipping():
    public = (np.exp([0.0, -1.0, -9.0]) / np.exp([0.0, -1.0, -9.0]).sum() * 4).tolist()
    lines = BlendedLogits(clip=2.0).picture([Token(tuple(public))]).lines
    assert [line.marks[0] for line in lines] == pytest.approx([0, -1, -9])
    assert [line.spans[0][1] for line in lines] == pytest.approx([0, -1, -4])
    lines = DifferenceClipping(clip=0.5).picture([Token(tuple(public))]).lines
    assert [line.spans[0] for line in lines] == [pytest.approx((at - 0.5, at + 0.5)) for at in (0, -1, -9)]


@pytest.mark.parametrize("name", PRIVATE)
def test_what_clipping_did_to_the_rows_keeps_its_bound(name):
    mechanism = fitted(name)
    step = a_step([[0.0, -40.0, 3.0], [0.0, 2.0, 50.0]], public=[0.0, 0.0, 0.0])
    found = mechanism.clipped(step)
    if found is None:
        assert not isinstance(mechanism, BlendedLogits | DifferenceClipping)
        return
    before, after = found
    assert before.shape == after.shape == (3,)
    assert np.abs(before).max() > 2 * mechanism.clip > 0
    assert np.abs(after).max() <= 2 * mechanism.clip + 1e-9
    assert mechanism.clipped(a_step(np.full((1, 3), np.nan))) is None
