"""`plan`: the design's table, and more signal than the published settings for the same compute."""

from __future__ import annotations

import json

import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.cli.account import cost, plans_within
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class
from tests.accounting.test_accountants import EPSILONS, TABLE
from tests.cli.command import check_refusal, run
from tests.conftest import nightly_but

GAUSSIAN = mechanism_class("gaussian")
AGNEWS, DBPEDIA, TREC = (30_000, 100, 120, 2), (40_000, 100, 130, 2), (835, 15, 30, 1)
# Task, epsilon, scheme, M; signal and cost, computed apart from this code.
COMPUTED = [
    (AGNEWS, 1.0, Scheme.PER_TOKEN, 10, 19.6, 170e3),
    (AGNEWS, 1.0, Scheme.PER_DEMONSTRATION, 100, 17.7, 22e3),
    (AGNEWS, 1.0, Scheme.PER_DEMONSTRATION, 400, 51.0, 88e3),
    (DBPEDIA, 4.0, Scheme.PER_TOKEN, 40, 89.0, 718e3),
    (DBPEDIA, 4.0, Scheme.PER_DEMONSTRATION, 400, 83.0, 92e3),
    (DBPEDIA, 4.0, Scheme.PER_DEMONSTRATION, 1600, 264.0, 368e3),
    (TREC, 4.0, Scheme.PER_TOKEN, 80, 116.0, 44e3),
    (TREC, 4.0, Scheme.PER_DEMONSTRATION, 320, 129.0, 14e3),
    (TREC, 4.0, Scheme.PER_DEMONSTRATION, 800, 257.0, 36e3),
]
# Prompt tokens of Tang et al.'s settings, roughly: N records of the data set and the instruction.
PROMPT = {"agnews": 120, "dbpedia": 130, "trec": 30, "mit_g": 110, "mit_d": 110}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "epsilon", "scheme", "subsets", "signal", "tokens"), nightly_but(COMPUTED, every=5))
def test_the_designs_table(task, epsilon, scheme, subsets, signal, tokens):
    size, steps, prompt, per_subset = task
    delta = 1 / size
    plan = SamplingPlan(scheme, subsets, per_subset, unit_rows=False, tokens=steps)
    mechanism = GAUSSIAN().calibrate(
        lambda event: plan.compose(event, {"a": size}, delta), PrivacyTarget(epsilon, delta)
    )
    assert mechanism.signal_to_noise(plan) == pytest.approx(signal, rel=0.05)
    assert cost(plan, size, prompt, delta) == pytest.approx(tokens, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(reversed(TABLE), every=5))
def test_more_signal_than_published_for_no_more_compute(name):
    n, subsets, per_subset, tokens, shots, sigmas = TABLE[name]
    published = SamplingPlan(Scheme.PER_TOKEN, subsets, per_subset, unit_rows=False, tokens=tokens, written=shots)
    budget = cost(published, n, PROMPT[name], 1 / n)
    found = plans_within(published, n, PROMPT[name], PrivacyTarget(EPSILONS[2], 1 / n), budget, GAUSSIAN())
    best = max(found, key=lambda each: each["signal_to_noise"])
    assert best["prompt_tokens"] <= budget
    assert best["signal_to_noise"] > 1.5 * subsets / sigmas[2]


def test_plans_within_the_budget_are_ranked_and_the_efficient_ones_marked(capsys):
    line = "plan --size 500 --tokens 4 --prompt-tokens 20 --epsilon 2 --delta 1e-4 --mechanism noisy-max --json"
    code, out, err = run(capsys, f"{line} --per-subset 2 --max-prompt-tokens 1000")
    options = json.loads(out)["options"]
    assert code == 0
    assert {each["scheme"] for each in options} == {"per-token", "per-demonstration"}
    assert {each["unit_rows"] for each in options} == {True, False}
    signals = [each["signal_to_noise"] for each in options]
    assert signals == sorted(signals, reverse=True)
    assert all(each["prompt_tokens"] <= 1000 for each in options)
    for each in options:
        as_good = [o["prompt_tokens"] for o in options if o["signal_to_noise"] > each["signal_to_noise"]]
        assert each["efficient"] == all(each["prompt_tokens"] < price for price in as_good)
    assert len(err.splitlines()) == len(options)  # told as they are found
    check_refusal(capsys, f"{line} --max-prompt-tokens 1", 2, "No plan fits")
    public = line.replace("noisy-max", "public --max-prompt-tokens 1000")
    check_refusal(capsys, public, 2, "Nothing to plan for 'public'")
