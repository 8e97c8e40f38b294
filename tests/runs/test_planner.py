"""The planner: the design's table, and more signal than the published settings for the same compute."""

from __future__ import annotations

import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.runs.planner import Option, Task, cost, options, ranked
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class
from tests.accounting.test_closed_forms import EPSILONS, TABLE
from tests.conftest import nightly_but

pytestmark = pytest.mark.slow
GAUSSIAN = mechanism_class("gaussian")
SUBSETS = {"unit_rows": False}
AGNEWS, DBPEDIA, TREC = Task(30_000, 100, 120, 2), Task(40_000, 100, 130, 2), Task(835, 15, 30, 1)
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


@pytest.mark.parametrize(("task", "epsilon", "scheme", "subsets", "signal", "tokens"), nightly_but(COMPUTED, every=5))
def test_the_designs_table(task, epsilon, scheme, subsets, signal, tokens):
    delta = 1 / task.size
    plan = SamplingPlan(scheme, subsets, task.per_subset, tokens=task.tokens, **SUBSETS)
    mechanism = GAUSSIAN().calibrate(
        lambda event: plan.compose(event, {"a": task.size}, delta), PrivacyTarget(epsilon, delta)
    )
    assert mechanism.signal_to_noise(plan) == pytest.approx(signal, rel=0.05)
    assert cost(plan, task, delta) == pytest.approx(tokens, rel=0.05)


@pytest.mark.parametrize("name", nightly_but(reversed(TABLE), every=5))
def test_more_signal_than_published_for_no_more_compute(name):
    n, subsets, per_subset, tokens, shots, sigmas = TABLE[name]
    task = Task(n, tokens, PROMPT[name], per_subset, shots)
    target = PrivacyTarget(EPSILONS[2], 1 / n)
    published = SamplingPlan(Scheme.PER_TOKEN, subsets, per_subset, tokens=tokens, **SUBSETS)
    budget = cost(published, task, target.delta)
    best = ranked(list(options(GAUSSIAN(), task, target, budget, points=1)))[0]
    assert best.cost <= budget
    assert best.signal_to_noise > 1.5 * subsets / sigmas[2]


def test_ranking_marks_what_nothing_cheaper_matches():
    plan = SamplingPlan()
    made = [Option(plan, GAUSSIAN(), signal, price) for signal, price in ((5, 10), (9, 30), (8, 40), (9, 50), (1, 10))]
    marked = {(o.signal_to_noise, o.cost) for o in ranked(made) if o.efficient}
    assert marked == {(9, 30), (5, 10)}


def test_every_option_is_within_the_budget_and_meets_the_target():
    task, target = Task(500, 8, 20, 2), PrivacyTarget(2.0, 1e-4)
    found = list(options(GAUSSIAN(), task, target, 2000.0, points=2))
    assert {o.plan.scheme for o in found} == {Scheme.PER_TOKEN, Scheme.PER_DEMONSTRATION}
    assert {o.plan.unit_rows for o in found} == {True, False}
    assert all(o.cost <= 2000 for o in found)
