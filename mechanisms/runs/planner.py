"""The planner: which scheme and how many rows give the most signal for a privacy target and a budget of compute."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from mechanisms.accounting import PrivacyTarget
from mechanisms.errors import AccountingError, UsageError
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import TokenMechanism


@dataclass(frozen=True)
class Task:
    """Public facts about a run to plan.

    Attributes:
        size: units of the smallest label, n.
        tokens: T, tokens of a demonstration.
        prompt_tokens: P, tokens of one private prompt; a unit row, which holds one record, is counted as long.
        per_subset: N, records of a prompt with subsets.
        shots: demonstrations for each label.
    """

    size: int
    tokens: int
    prompt_tokens: int
    per_subset: int = 1
    shots: int = 1

    def __post_init__(self) -> None:
        if min(self.size, self.tokens, self.prompt_tokens, self.per_subset, self.shots) < 1:
            raise UsageError("Size, tokens, prompt tokens, records a prompt and shots must be at least 1.")
        SamplingPlan(tokens=self.tokens, shots=self.shots, per_subset=self.per_subset, unit_rows=False).rate(self.size)


@dataclass(frozen=True)
class Option:
    """One way to run the task.

    Attributes:
        plan: scheme, M, rows.
        mechanism: calibrated.
        signal_to_noise: of a token step.
        cost: prompt tokens through the model for one demonstration.
        efficient: no cheaper option has as much signal.
    """

    plan: SamplingPlan
    mechanism: TokenMechanism
    signal_to_noise: float
    cost: float
    efficient: bool = False


def cost(plan: SamplingPlan, task: Task, delta: float) -> float:
    """Prompt tokens through the model for one demonstration; with unit rows the batch's spare rows count too.

    Per token every prompt is run again with the t tokens so far, `rows T (P + (T - 1) / 2)`; otherwise the cache is
    kept, `rows (P + T)`.
    """
    rows, _ = plan.capacity(task.size, delta)
    if plan.scheme is Scheme.PER_TOKEN:
        return rows * plan.tokens * (task.prompt_tokens + (plan.tokens - 1) / 2)
    return rows * (task.prompt_tokens + plan.tokens)


def options(
    mechanism: TokenMechanism, task: Task, target: PrivacyTarget, budget: float, points: int = 5
) -> Iterator[Option]:
    """Calibrated options within the budget, scheme by scheme, M falling; about two seconds each.

    Args:
        mechanism: whose noise is calibrated.
        task: public facts.
        target: what the run may cost.
        budget: prompt tokens through the model for one demonstration.
        points: how many M to try for each scheme, from the largest that fits down by halves; more signal comes with
            more rows, so one is enough for the best option, and several draw the curve.
    """
    for scheme in (Scheme.PER_TOKEN, Scheme.PER_DEMONSTRATION):
        for unit_rows in (True, False):
            for plan in _plans(task, scheme, unit_rows, target, budget, points):
                if mechanism.closed(plan) is not None:
                    continue
                compose = partial(plan.compose, sizes={"each label": task.size}, delta=target.delta)
                try:
                    made = mechanism.for_plan(plan).calibrate(compose, target)
                except AccountingError:
                    continue  # no noise meets the target with that many releases
                yield Option(plan, made, made.signal_to_noise(plan), cost(plan, task, target.delta))


def _plans(
    task: Task, scheme: Scheme, unit_rows: bool, target: PrivacyTarget, budget: float, points: int
) -> Iterator[SamplingPlan]:
    """Plans within the budget, from the largest M down by halves."""

    def plan(subsets: int) -> SamplingPlan:
        per_subset = 1 if unit_rows else task.per_subset
        return SamplingPlan(scheme, subsets, per_subset, unit_rows, task.tokens, task.shots)

    def affordable(subsets: int) -> bool:
        return cost(plan(subsets), task, target.delta) <= budget

    most = task.size if unit_rows else math.ceil(task.size / task.per_subset)
    largest = bisect.bisect_left(range(1, most + 1), True, key=lambda subsets: not affordable(subsets))
    for halvings in range(points):
        if subsets := largest >> halvings:
            yield plan(subsets)


def ranked(found: list[Option]) -> list[Option]:
    """Options by signal-to-noise, the best first, the efficient ones marked."""
    order = sorted(found, key=lambda each: (-each.signal_to_noise, each.cost))
    cheapest = math.inf
    result = []
    for option in order:
        result.append(replace(option, efficient=option.cost < cheapest))
        cheapest = min(cheapest, option.cost)
    return result
