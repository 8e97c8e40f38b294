"""Plans of runs that make demo sets, and the sets certified without a run."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from mechanisms.data.sizes import MeasuredSizes
from mechanisms.demos.demo_set import ArmScore, Baselines, DemoSet, Refusal, Score
from mechanisms.public_inputs import DECLARED_SIZES, FILE_FORMAT, LABEL_SET, MEASURED_SIZES
from mechanisms.records import Demonstration
from mechanisms.runs.completion import complete
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, SOURCES, VOTE, WRITE, Recipe, RunSpec, Split
from mechanisms.runs.terms import NO_FILE

LABELS = ("a", "b")
SIZES = {"a": 450, "b": 520}
SHARES = {OPENINGS: 0.1, WRITE: 0.4, VOTE: 0.2, CALIBRATE: 0.1, SCORE: 0.125}
FOUND = {
    "prior": {"a": 3.5, "b": -0.31},
    "baselines": Baselines({"a": 0.25, "b": -0.25}, None),
    "score": Score({"zero-shot": ArmScore(0.61, (0.57, 0.66)), "prototypes": ArmScore(1.0, (0.9, 1.0))}, False),
    "refused": (Refusal("a", "no words"), Refusal("b", "no words"), Refusal("b", "it breaks off")),
}


def measured_in(sizes: dict[str, int]) -> MeasuredSizes:
    return MeasuredSizes(sizes, 0.2, 1e-8, NO_FILE)


def shares_of(recipe: Recipe, *without: str) -> dict[str, float]:
    left_out = {WRITE, VOTE} - SOURCES[recipe] | set(without)
    return {stage: share for stage, share in SHARES.items() if stage not in left_out}


def planned(
    recipe: Recipe,
    split: Split,
    by_user: bool = False,
    measured: bool = False,
    sizes: dict[str, int] = SIZES,
    **said: Any,
) -> Plan:
    """The plan of a run of a few tokens and little noise to calibrate; `said` are settings."""
    usual = {
        "epsilon": 2.0,
        "shares": shares_of(recipe),
        "drafts": 8,
        "subsets": 12,
        "tokens": 5,
        "min_tokens": 0,
        "written": 2,
        "instruction": "Classify.",
        "text_field": "T",
        "label_field": "L",
        "kind": "note",
        **({"parameters": {"noise-multiplier": 20.0}} if WRITE in SOURCES[recipe] else {}),
    }
    spec = RunSpec.of(**usual | said, recipe=recipe, split=split)
    return Plan(
        spec=complete(spec, sizes),
        labels=tuple(sizes),
        sizes=sizes,
        unit="user:who" if by_user else "record",
        measured=measured_in(sizes) if measured else None,
        public_inputs=(LABEL_SET, FILE_FORMAT, MEASURED_SIZES if measured else DECLARED_SIZES),
    )


def certified(plan: Plan, **changes: Any) -> DemoSet:
    """The demo set of a run in which nothing was found yet."""
    return replace(plan.empty_set("toy", "0" * 64), **changes)


@cache
def text_of(recipe: Recipe, split: Split, by_user: bool = False, measured: bool = False) -> str:
    """The file of a run that found everything."""
    return certified(planned(recipe, split, by_user, measured), **FOUND).dumps()


def document_of(recipe: Recipe, split: Split, by_user: bool = False, measured: bool = False) -> dict[str, Any]:
    """The same, to be edited."""
    read: dict[str, Any] = json.loads(text_of(recipe, split, by_user, measured))
    return read


def demonstrations(count: int, label: str = "a") -> tuple[Demonstration, ...]:
    return tuple(Demonstration(f"text {i}", label) for i in range(count))
