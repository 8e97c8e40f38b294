"""A short run, written down by hand: what a screen is replayed from without a model."""

from __future__ import annotations

from mechanisms.accounting import BudgetSnapshot, Cap, Claim
from mechanisms.privacy_events import Composed, Gaussian
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.studio.demo_set import Certificate, DemoSet
from mechanisms.studio.events import (
    DemoCompleted,
    DemoStarted,
    PrivateDiagnostics,
    RunCompleted,
    RunStarted,
    SynthesisEvent,
    TokenReleased,
)

LABELS = ("News", "Sport")
HOSTILE = "<img src=x onerror=alert(1)>${alert(2)}{{3}}"


def demo_set(*demonstrations: Demonstration, curator: bool = False) -> DemoSet:
    certificate = Certificate(
        private=True,
        reason=None,
        claim=Claim(1.0, 1e-5, "prv", 0.99, "pld"),
        unit="record",
        mechanism="gaussian",
        transform="none",
        scheme="per-demonstration",
        parameters={"noise_multiplier": 2.0, "sensitivity": 1.0, "tokens": 3},
        event=Composed("label", tuple((label, (Gaussian(4.0),)) for label in LABELS)),
        public_inputs=("label set", "label counts declared public"),
        shown=("clean values were on a screen",) if curator else (),
    )
    template = PromptTemplate("Classify.", "Text", "Topic")
    return DemoSet(demonstrations, LABELS, template, certificate, "toy", "0" * 64, "2026-01-01T00:00:00+00:00")


def snapshot(epsilon: float = 1.0) -> BudgetSnapshot:
    return BudgetSnapshot("letters", "record", epsilon, 1e-5, "basic composition", Cap(10.0, 1e-4), 1)


def token(label: str, step: int, text: str, candidates=(" a", " b", HOSTILE), chosen: int = 0, **changes):
    values = {"scores": (7.0, -1.5, 2.0), "public": (3.0, 2.0, 1.0), "stop": False} | changes
    return TokenReleased(label, 1, step, text, candidates, chosen, **values)


def recording() -> list[SynthesisEvent]:
    written = [Demonstration("one two", "News"), Demonstration("three", "Sport")]
    return [
        RunStarted(demo_set(), 1, 3, 8, snapshot(0.0)),
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
