"""A short run, written down by hand: what a screen is replayed from without a model."""

from __future__ import annotations

from functools import cache

from mechanisms.accounting import BudgetSnapshot, Cap, PrivacyTarget
from mechanisms.data.sizes import WHETHER_SHOWN
from mechanisms.demos.demo_set import Certificate, DemoSet
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.events import (
    DemoCompleted,
    DemoStarted,
    PrivateDiagnostics,
    RunCompleted,
    RunEvent,
    RunStarted,
    TokenReleased,
)
from mechanisms.runs.request import DECLARED_COUNTS, LABEL_SET, NO_FILE, SynthesisRequest
from mechanisms.sampling import SamplingPlan
from mechanisms.steps.gaussian import GaussianMechanism

LABELS = ("News", "Sport")
TEMPLATE = PromptTemplate("Classify.", "Text", "Topic")
HOSTILE = "<img src=x onerror=alert(1)>${alert(2)}{{3}}"


@cache
def certificate(curator: bool) -> Certificate:
    request = SynthesisRequest(
        labels=LABELS,
        template=TEMPLATE,
        plan=SamplingPlan(subsets=8, tokens=3),
        mechanism=GaussianMechanism(20.0),
        target=PrivacyTarget(1.0, 1e-5),
        sizes=dict.fromkeys(LABELS, 40),
        content=NO_FILE,
        public_inputs=(LABEL_SET, DECLARED_COUNTS, WHETHER_SHOWN),
    )
    return Certificate(
        private=True,
        reason=None,
        claim=request.claim(),
        unit="record",
        mechanism=request.mechanism.name,
        transform=request.transform.name,
        scheme=request.plan.scheme.value,
        parameters=request.parameters(),
        event=request.certified_event(),
        public_inputs=request.public_inputs,
        disclosures=("clean values were on a screen",) if curator else (),
    )


def demo_set(*demonstrations: Demonstration, curator: bool = False) -> DemoSet:
    held = certificate(curator)
    return DemoSet(demonstrations, LABELS, TEMPLATE, held, "toy", "0" * 64, "2026-01-01T00:00:00+00:00")


def snapshot(epsilon: float = 1.0) -> BudgetSnapshot:
    return BudgetSnapshot("letters", "record", epsilon, 1e-5, "basic composition", Cap(10.0, 1e-4), 1)


def token(label: str, step: int, text: str, candidates=(" a", " b", HOSTILE), chosen: int = 0, **changes):
    values = {"number": 1, "scores": (7.0, -1.5, 2.0), "public": (3.0, 2.0, 1.0), "stop": False} | changes
    return TokenReleased(label, step=step, text=text, candidates=candidates, chosen=chosen, **values)


def recording() -> list[RunEvent]:
    written = [Demonstration("one two", "News"), Demonstration("three", "Sport")]
    return [
        RunStarted(demo_set(), 1, 3, snapshot(0.0), expected_rows=8),
        DemoStarted("News", 1, snapshot()),
        token("News", 1, "one"),
        token("News", 2, "one two"),
        token("News", 3, "one two", chosen=2, stop=True),
        DemoCompleted(written[0], 1),
        DemoStarted("Sport", 1, snapshot()),
        token("Sport", 1, "three"),
        DemoCompleted(written[1], 1),
        RunCompleted(demo_set(*written), snapshot()),
    ]


CLEAN = PrivateDiagnostics("News", 1, 1, (6.0, 1.0, 1.0))
