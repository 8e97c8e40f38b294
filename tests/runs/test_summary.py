"""What runs are compared by: of their certificate and of what was released, the same before a file and after it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mechanisms.demos.findings import ArmScore, Score
from mechanisms.errors import UsageError
from mechanisms.runs.events import RunStopped
from mechanisms.runs.run_file import from_lines, summarised
from tests.runs.runs import KINDS, file_of, recorded
from tests.synthesis.test_synthesize import request

ARMS = {"zero-shot": ArmScore(0.4, (0.3, 0.5)), "public-only": ArmScore(0.5, (0.4, 0.6))}
OWN = ArmScore(0.7, (0.6, 0.8))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_summarised_like_its_run(kind):
    assert summarised(from_lines(file_of(kind))) == summarised(recorded(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_that_of_the_stages_that_there_are(kind):
    found = summarised(recorded(kind))
    assert (found.signal_to_noise is None) == (kind == "vote")
    assert (found.votes_noise is None) == (kind == "tokens")
    told = [event.noise for event in recorded(kind) if hasattr(event, "winners")]
    assert all(math.isclose(noise, found.votes_noise) for noise in told)


def test_the_signal_is_the_one_that_was_foretold():
    found = summarised(recorded("tokens"))
    stated = found.made.certificate.parameters["noise_multiplier"]
    plan = replace(request().plan, subsets=6, tokens=5, shots=2)
    mechanism = replace(request().mechanism, noise_multiplier=stated)
    assert found.signal_to_noise == pytest.approx(mechanism.signal_to_noise(plan))


@pytest.mark.parametrize("kind", ["tokens", "vote"])
def test_a_stopped_run_says_so(kind):
    *events, end = recorded(kind)
    assert not summarised([*events, end]).stopped
    assert summarised([*events, RunStopped(end.demo_set)]).stopped


@pytest.mark.parametrize(("kind", "told"), [("tokens", 0), ("tokens", 1), ("vote", -1)])
def test_a_run_that_has_not_ended_has_no_summary(kind, told):
    with pytest.raises(UsageError, match="completed or stopped"):
        summarised(recorded(kind)[:told])


@pytest.mark.parametrize(
    ("arms", "without", "expected"),
    [(ARMS | {"demonstrations": OWN}, False, OWN), (ARMS, False, ARMS["public-only"]), (ARMS, True, ARMS["zero-shot"])],
)
def test_the_score_is_that_of_what_is_exported(arms, without, expected):
    found = summarised(recorded("tokens"))
    made = replace(found.made, score=Score(arms, held_out=True))
    if without:
        made = replace(made, demonstrations=())
    assert replace(found, made=made).score == expected
    assert replace(found, made=replace(made, score=None)).score is None
