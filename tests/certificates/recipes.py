"""Demo sets of recipes, certified without a run."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from mechanisms.accounting import PrivacyTarget
from mechanisms.data.sizes import WHETHER_SHOWN, MeasuredSizes
from mechanisms.demos.demo_set import Certificate, DemoSet
from mechanisms.demos.findings import ArmScore, Choice, Score
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import NO_FILE, SynthesisRequest
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class

LABELS = ("a", "b")
SIZES = {"a": 450, "b": 520}
MEASURED = MeasuredSizes(SIZES, 0.2, 1e-8, NO_FILE)
TEMPLATE = PromptTemplate("Classify.", "T", "L")
FOUND = {
    "prior": {"a": 3.5, "b": -0.31},
    "choice": Choice(12, "none", "prior", {"a": 0.25, "b": -0.25}),
    "score": Score({"zero-shot": ArmScore(0.61, (0.57, 0.66)), "prototypes": ArmScore(1.0, (0.9, 1.0))}, False),
}
SHARES = {Stage.VOTE: 0.2, Stage.CALIBRATE: 0.1, Stage.CHOOSE: 0.1, Stage.SCORE: 0.125}


def recipe(kind: Kind, division: Division, **changes: Any) -> Recipe:
    shares = dict(SHARES)
    if kind is not Kind.VOTE:
        shares[Stage.WRITE] = 0.4
    if kind is Kind.TOKENS:
        del shares[Stage.VOTE]
    return Recipe(kind, division, **{"shares": shares, "rounds": 2 if kind is Kind.VOTE else 1} | changes)


def asked(
    used: Recipe, by_user: bool = False, measured: bool = False, scheme: Scheme = Scheme.PER_DEMONSTRATION
) -> RecipeRequest:
    target, written = PrivacyTarget(2.0, 1e-5), None
    if Stage.WRITE in used.shares:
        share = used.shares[Stage.WRITE] if used.division is Division.ROLES else 1.0
        plan = SamplingPlan(scheme, subsets=12, tokens=5, shots=2, share=share)
        noisy = mechanism_class("gaussian")(noise_multiplier=20.0)
        written = SynthesisRequest(
            labels=LABELS,
            template=TEMPLATE,
            plan=plan,
            mechanism=noisy,
            target=target,
            sizes=SIZES,
            content=NO_FILE,
            by_user=by_user,
        )
    request = RecipeRequest(
        labels=LABELS,
        template=TEMPLATE,
        recipe=used,
        target=target,
        sizes=SIZES,
        content=NO_FILE,
        by_user=by_user,
        shots=2,
        written=written,
    )
    return request.with_measured_sizes(MEASURED) if measured else request


def certified(request: RecipeRequest, **changes: Any) -> DemoSet:
    """The demo set of a run in which nothing was found yet."""
    certificate = Certificate(
        private=True,
        reason=None,
        claim=request.claim(),
        unit="user:who" if request.by_user else "record",
        mechanism=f"recipe {request.recipe.kind}",
        transform="none",
        scheme=request.recipe.division.value,
        parameters=request.parameters(),
        event=request.certified_event(),
        public_inputs=(*request.public_inputs, WHETHER_SHOWN),
    )
    made = DemoSet((), request.labels, request.template, certificate, "toy", "0" * 64, stages=request.stage_records())
    return replace(made, **changes)


@cache
def text_of(kind: Kind, division: Division, by_user: bool = False, measured: bool = False) -> str:
    """The file of a run that found everything, and that no demonstrations serve best."""
    return certified(asked(recipe(kind, division), by_user, measured), **FOUND).dumps()


def document_of(kind: Kind, division: Division, by_user: bool = False, measured: bool = False) -> dict[str, Any]:
    """The same, to be edited."""
    read: dict[str, Any] = json.loads(text_of(kind, division, by_user, measured))
    return read


def demonstrations(count: int, label: str = "a") -> tuple[Demonstration, ...]:
    return tuple(Demonstration(f"text {i}", label) for i in range(count))
