"""Each way of running, with the real ledger: under whose name it is charged, as what, and how much."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.answers.plan import plan_answers
from mechanisms.answers.session import open_session
from mechanisms.answers.spec import AnswerSpec
from mechanisms.data.sizes import measure_sizes
from mechanisms.noise import SecureRandomness
from mechanisms.records import Dataset
from mechanisms.runs.plan import plan_for
from mechanisms.runs.run import run
from mechanisms.runs.score import score_set
from mechanisms.runs.spec import RunSpec
from tests.runs.running import LABELS, Embedding, Reading, alone, data, ledger, planned, rows, spec
from tests.runs.test_score_set import SET

EPSILON, COUNTING = 2.0, 0.5
TOKENS = alone(epsilon=EPSILON, parameters={}, shots=1, written=1)
Charged = list[tuple[str, float]]
"""What each run was charged as, and its epsilon."""


def of_run(asked: RunSpec) -> Callable[[Dataset, PrivacyLedger], Charged]:
    def ran(own: Dataset, account: PrivacyLedger) -> Charged:
        plan = planned(own, asked).calibrated()
        finish(plan, own, account)
        promises = plan.reads_rows and not plan.not_private
        return [(plan.name, plan.claim().epsilon)] if promises else []

    return ran


def finish(plan, own: Dataset, account: PrivacyLedger) -> None:
    told = run(plan, own, Reading(), account, SecureRandomness(), embedder=Embedding())
    assert [*told][-1].demo_set.demonstrations


def measured(own: Dataset, account: PrivacyLedger) -> Charged:
    sizes = measure_sizes(own, COUNTING, 1e-5, account)
    plan = plan_for(spec("vote").with_(epsilon=EPSILON), own, sizes)
    finish(plan, own, account)
    return [("label counts", COUNTING), (plan.name, EPSILON - COUNTING)]


def scored(own: Dataset, account: PrivacyLedger) -> Charged:
    score_set(own, SET, RunSpec(epsilon=EPSILON), Reading(), account, 0.5, 1.0, Embedding(), SecureRandomness())
    return [("score", EPSILON)]


def answered(own: Dataset, account: PrivacyLedger) -> Charged:
    spec = AnswerSpec.of(
        epsilon=EPSILON, delta=1e-5, queries=2, retrieval="labels-only", threshold=-1.0, shards=4, neighbours=1
    )
    asked = plan_answers(spec, LABELS, own.by_user)
    open_session(own, asked, Embedding(), None, account, SecureRandomness()).ask("The red one?")
    return [("answers by knn-votes", asked.claim().epsilon)]


WAYS: dict[str, Callable[[Dataset, PrivacyLedger], Charged]] = {
    "token by token": of_run(TOKENS),
    "vote": of_run(spec("vote").with_(epsilon=EPSILON)),
    "both": of_run(spec("both", "epsilon", parameters={}).with_(epsilon=EPSILON)),
    "measured sizes": measured,
    "a score": scored,
    "answers": answered,
    "public": of_run(TOKENS.with_(mechanism="public")),
    "without noise": of_run(TOKENS.with_(mechanism="non-private")),
}


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_running_is_charged_under_its_data_sets_name(way, by_user):
    own, account = data(rows(60, users=by_user), by_user), ledger(by_user)
    expected = WAYS[way](own, account)
    assert account.names() == [(own.name, own.unit)], "no other name has a run"
    found = [(each["mechanism"], each["epsilon"]) for each in account.history(own.name)]
    assert [name for name, _ in found] == [name for name, _ in expected]
    for (_, charged), (_, epsilon) in zip(found, expected, strict=True):
        assert charged == pytest.approx(epsilon, rel=1e-3)
        assert charged <= EPSILON
    spent, whole = account.snapshot(own.name, own.unit), sum(epsilon for _, epsilon in expected)
    assert spent.runs == len(expected)
    assert 0.5 * whole <= spent.epsilon <= 1.001 * whole, "the ledger may have a smaller bound than the claims' sum"
