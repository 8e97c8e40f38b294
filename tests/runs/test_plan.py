"""What is said of a run before it runs: its claim, its warnings, its work; all from public numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mechanisms.accounting import claim
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Composed
from mechanisms.records import RECORD
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import (
    CALIBRATE,
    MOST_CORRECTED_LABELS,
    OPENINGS,
    SCORE,
    VOTE,
    WRITE,
    RunSpec,
    Split,
    completed,
)
from mechanisms.runs.stage import Speed, Work, measure
from mechanisms.runs.stages.score import Score
from tests.toy_model import ToyModel

LABELS = ("a", "b")
SPEED = Speed(1e-3, 2e-3, 1e-3)


def plan_of(recipe: str = "vote", size: int = 3000, by_user: bool = False, sizes=None, **settings: Any) -> Plan:
    sizes = sizes or dict.fromkeys(LABELS, size)
    spec = completed(RunSpec.of(**{"delta": 1e-6, "recipe": recipe} | settings), sizes)
    return Plan(spec=spec, labels=tuple(sizes), sizes=sizes, unit="user:who" if by_user else RECORD)


def score_of(plan: Plan) -> Score:
    stage = plan.stages[SCORE]
    assert isinstance(stage, Score)
    return stage


@pytest.mark.slow
@pytest.mark.parametrize("split", Split)
def test_writing_gets_its_part_of_the_units_or_of_epsilon(split):
    plan = plan_of("both", split=split)
    ready = plan.calibrated()
    assert ready.sampling.share == plan.role(WRITE)
    alone = claim(Composed("role", (("write", ready.stages[WRITE].events),)), plan.spec.delta).epsilon
    assert 0.95 * plan.epsilon(WRITE) < alone <= plan.epsilon(WRITE)
    assert ready.claim().epsilon <= 1.0 + 1e-9


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("sizes", [{"a": 200, "b": 30}, {"a": 5, "b": 200}])
def test_a_stage_is_told_by_its_dearest_list(split, by_user, sizes):
    """Labels of unequal sizes are sampled at unequal rates; the smallest may be sampled whole, with fewer events."""

    def price(events) -> float:
        return claim(Composed("role", (("one", events),)), 1e-5).epsilon

    plan = plan_of("both", by_user=by_user, sizes=sizes, split=split, parameters={"noise-multiplier": 20.0})
    told = {each.name: price((each.event,)) for each in plan.stage_records()}
    assert set(told) == set(plan.stages)
    for name in (OPENINGS, WRITE, VOTE, CALIBRATE):
        dearest = max(price(events) for _, events in plan.stages[name].charges())
        assert told[name] == pytest.approx(dearest, rel=1e-3)


def test_few_rows_are_warned_of_and_many_are_not():
    few = [*plan_of(size=30).warnings()]
    assert any("winners may be chance" in each for each in few)
    assert any("correction may be chance" in each for each in few)
    assert any("wider than 20 points" in each for each in few)
    assert not [*plan_of(size=3000).warnings()]


def test_tokens_that_few_rows_decide_are_warned_of():
    noisy, quiet = (plan_of("both", parameters={"noise-multiplier": noise}).warnings() for noise in (100.0, 1.0))
    assert any("decide few tokens" in each for each in noisy)
    assert not any("decide few tokens" in each for each in quiet)


@pytest.mark.parametrize(("labels", "said"), [(MOST_CORRECTED_LABELS, False), (MOST_CORRECTED_LABELS + 1, True)])
def test_many_labels_are_told_of_prototypes_before_the_run(labels, said):
    plan = plan_of(sizes={f"label {i}": 100 for i in range(labels)})
    assert any("Class prototypes" in each for each in plan.warnings()) is said


def test_the_margin_is_about_what_the_score_gives():
    plan = plan_of()
    rows, tally = round(plan.units(SCORE)), score_of(plan).tally
    randomness, rng, halves = SeededRandomness(1), np.random.default_rng(2), []
    for _ in range(30):
        right = rng.random((rows, 3)) < 0.5
        estimate = tally.accuracy(tally.release(tally.cells(right), randomness), 0)
        halves.append((estimate.high - estimate.low) / 2)
    assert score_of(plan).margin == pytest.approx(float(np.mean(halves)), rel=0.1)


# The work of a run.


def seconds(plan: Plan) -> float:
    return SPEED.seconds(sum((stage.work() for stage in plan.stages.values()), Work()))


@pytest.mark.parametrize(
    "longer",
    [
        {"drafts": 60},
        {"draft_tokens": 80},
        {"max_record_tokens": 128},
        {"recipe": "both", "mechanism": "gaussian"},
        {"split": "epsilon"},
        {"shots": 4},
    ],
    ids=str,
)
def test_more_work_takes_longer(longer):
    assert seconds(plan_of(**longer)) > seconds(plan_of())


def test_a_model_is_measured_behind_its_first_pass():
    ticks = iter(range(100))
    model = ToyModel()
    speed = measure(model, clock=lambda: float(next(ticks)))
    assert speed.position > 0
    assert speed.token > 0
    assert len(model.opened) == 2, "the first pass takes memory"
