"""A run's lines on standard error: public values and releases only."""

from __future__ import annotations

from collections.abc import Iterator

from mechanisms.accounting import Claim
from mechanisms.errors import printable
from mechanisms.rounding import rounded_up
from mechanisms.runs.events import (
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    Drafting,
    Release,
    RunStarted,
    StageStarted,
)
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import Recipe, Split

_SHOWN = 60
"""Characters of a text on a progress line."""


def lines_of(event: CuratorEvent, name: str) -> Iterator[str]:
    """The lines for an event of a run on the data set `name`."""
    match event:
        case Drafting(label, number, of):
            yield f"{label}: writing public drafts, label {number} of {of}"
        case RunStarted(budget=budget) if budget:
            spent = f"{rounded_up(budget.epsilon, 4)} of {budget.cap.epsilon:g}"
            yield f"'{name}' has spent {spent} before this run"
        case StageStarted(stage):
            yield f"stage {stage}"
        case DemoStarted(label, number):
            yield f"{label}, demonstration {number} is charged and begins"
        case DemoCompleted(demonstration, number):
            yield f"{demonstration.label}, demonstration {number}: {_shortened(demonstration.text)}"
        case DemoRefused() | DemoCutOff() | Release():
            yield from own_words(event)


def own_words(event: CuratorEvent) -> list[str]:
    """What is said of a release, and of a demonstration that came to no good."""
    match event:
        case DemoRefused(label, number, reason):
            return [printable(f"{label}, demonstration {number}: refused, {reason}")]
        case DemoCutOff(label, number, finished):
            how = "finished from public text alone" if finished else "left out"
            return [printable(f"{label}, demonstration {number}: cut off, {how}")]
        case Release():
            return [printable(line) for line in event.lines()]
    return []


def claim_in_words(claim: Claim) -> str:
    """A run's cost by both accountants."""
    told = f"epsilon {rounded_up(claim.epsilon, 4)} (check {rounded_up(claim.check, 4)}) at delta {claim.delta:g}"
    return f"{told}. {claim.remark}" if claim.remark else told


def stages_in_words(plan: Plan) -> str:
    """What the stages of a run share, and how much each has."""
    spec = plan.spec
    shared = "units" if spec.split is Split.ROLES else "epsilon"
    shares = ", ".join(f"{stage} {rounded_up(share, 3)}" for stage, share in (spec.shares or {}).items())
    drafts = "" if spec.recipe is Recipe.TOKENS else f"; {spec.drafts} drafts a label"
    return f"shares of {shared}: {shares}{drafts}; all {spec.weighing} count the same where they fit and score"


def _shortened(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
