"""Short runs, written down by hand: what screens are replayed from without a model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from mechanisms.accounting import BudgetSnapshot, Cap
from mechanisms.demos.demo_set import ArmScore, DemoSet, Refusal, Score
from mechanisms.demos.directions import Directions
from mechanisms.public_inputs import DECLARED_COUNTS, LABEL_SET
from mechanisms.records import Demonstration
from mechanisms.runs.completion import complete
from mechanisms.runs.events import (
    DemoCompleted,
    DemoRefused,
    DemoStarted,
    PrivateDiagnostics,
    RunCompleted,
    RunEvent,
    RunStarted,
    SetsCompared,
    SetSoFar,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WORDS, WRITE, RunSpec
from mechanisms.runs.stages.calibrate import PriorsReleased
from mechanisms.runs.stages.openings import OpeningsReleased
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.runs.stages.vote import Ballot, VotesReleased
from mechanisms.runs.stages.words import Word, WordsReleased

LABELS = ("News", "Sport")
HOSTILE = "<img src=x onerror=alert(1)>${alert(2)}{{3}}"
DRAFTS = 14
ASKED: dict[str, Any] = {"kind": "headline", "writer": "an editor", "reader": "a reader"}
WRITTEN: dict[str, Any] = {"subsets": 8, "tokens": 3, "shots": 1, "parameters": {"noise-multiplier": 20.0}}
ALL: dict[str, float] = {OPENINGS: 0.05, WORDS: 0.3, VOTE: 0.1, CALIBRATE: 0.1, SCORE: 0.1}
SPECS: dict[str, dict[str, Any]] = {
    "tokens": {"recipe": "tokens", **WRITTEN},
    "both": {"recipe": "both", "drafts": DRAFTS, "shares": {**ALL, WRITE: 0.3}, **WRITTEN},
    "vote": {"recipe": "vote", "drafts": DRAFTS, "shots": 2, "split": "epsilon", "shares": ALL},
}


@cache
def plan(kind: str = "tokens", size: int = 3000) -> Plan:
    """The plan of a story; of its stages all, where it has several."""
    sizes = dict.fromkeys(LABELS, size)
    spec = complete(RunSpec.of(**ASKED, **SPECS[kind]), sizes)
    return Plan(spec=spec, labels=LABELS, sizes=sizes, public_inputs=(LABEL_SET, DECLARED_COUNTS))


@cache
def empty(kind: str, curator: bool) -> DemoSet:
    return plan(kind).empty_set("toy", "0" * 64, ("clean values were on a screen",) if curator else ())


def demo_set(*demonstrations: Demonstration, curator: bool = False, kind: str = "tokens") -> DemoSet:
    made = empty(kind, curator)
    return replace(made, demonstrations=demonstrations, created="2026-01-01T00:00:00+00:00")


def snapshot(epsilon: float = 1.0) -> BudgetSnapshot:
    return BudgetSnapshot("letters", "record", epsilon, 1e-5, "basic composition", Cap(10.0, 1e-4), 1)


def token(label: str, step: int, text: str, candidates=(" a", " b", HOSTILE), chosen: int = 0, **changes):
    values = {"number": 1, "scores": (7.0, -1.5, 2.0), "public": (3.0, 2.0, 1.0), "stop": False} | changes
    return TokenReleased(label, step=step, text=text, candidates=candidates, chosen=chosen, **values)


def writing(*words: str) -> list[RunEvent]:
    """Both labels' demonstrations, the first of which begins with an opening, and is asked for with these words."""
    return [
        StageStarted(WRITE),
        DemoStarted("News", 1, "Just", words),
        token("News", 1, "Just one"),
        token("News", 2, "Just one two", values=(4.0, 1.0, 2.0)),
        token("News", 3, "Just one two", chosen=2, values=(1.0, 1.5, 2.0), stop=True),
        DemoCompleted(Demonstration("Just one two", "News"), 1),
        DemoStarted("Sport", 1),
        token("Sport", 1, "three", stop=True),
        DemoCompleted(Demonstration("three", "Sport"), 1),
    ]


def recording() -> list[RunEvent]:
    """A run that only writes."""
    return as_told("tokens", writing())


def refusing() -> list[RunEvent]:
    """A run that only writes, of which the gate refused a text."""
    return as_told("tokens", [*writing(), DemoRefused("Sport", 1, "it breaks off")])


OPENED = ("I am", "Just", HOSTILE, "The", "We have", "You")
SHARES = (900.0, 600.0, 300.0, 4.0, -2.0, 1.0)
SCORED = Score(
    {
        "zero-shot": ArmScore(0.634, (0.6, 0.671)),
        "public-only": ArmScore(0.5, (0.3, 0.71)),
        "demonstrations": ArmScore(0.748, (0.714, 0.778)),
        "directions": ArmScore(0.7, (0.66, 0.74)),
    },
    held_out=True,
    level=0.9,
)


def openings(kind: str, counts: tuple[float, ...] = SHARES) -> OpeningsReleased:
    stage = plan(kind).stages[OPENINGS]
    groups = LABELS if stage.by_label else ("",)
    counted = {group: np.array(counts) for group in groups}
    told = {group: tuple(each.tolist()) for group, each in counted.items()}
    return OpeningsReleased(OPENED, told, stage.tally.deviation, stage.used(OPENED, counted))


CLEARED = (Word("minister", 12.4), Word("election", 7.6), Word("vote", 4.2))


def words(kind: str, cleared: tuple[Word, ...] = CLEARED) -> WordsReleased:
    """Of the first label; no word of the second one clears the noise."""
    deviations = plan(kind).stages[WORDS].deviations
    return WordsReleased(
        embedder="toy",
        sha256="e" * 64,
        directions=dict(zip(LABELS, ((1.0, 0.0), (-1.0, 0.0)), strict=True)),
        lengths=dict.fromkeys(LABELS, 0.2),
        noise=dict(zip(LABELS, deviations.tolist(), strict=True)),
        middle=(0.0, 1.0),
        words=dict(zip(LABELS, (cleared, ()), strict=True)),
        named=(),
    )


def votes(kind: str, written: bool = False) -> VotesReleased:
    """Two winners of each label, or one where a set has one: the text at place 3, and the hostile one, the last."""
    winners = (3, DRAFTS - 1)[: plan(kind).spec.shots]
    ballots = {}
    for label, text in zip(LABELS, ("Just one two", "three"), strict=True):
        drafts = (*([text] if written else []), *(f"{label} draft {i}" for i in range(DRAFTS - 1 - written)), HOSTILE)
        cast = tuple(20.0 - winners.index(i) if i in winners else -1.54321 + i / 10 for i in range(len(drafts)))
        ballots[label] = Ballot(drafts, cast, winners, int(written))
    return VotesReleased(ballots, plan(kind).stages[VOTE].tally.deviation)


def won(told: VotesReleased) -> tuple[Demonstration, ...]:
    return tuple(Demonstration(each.drafts[i], label) for label, each in told.ballots.items() for i in each.winners)


PRIORS = PriorsReleased(((61.8034, 38.1966), (50.0, 50.0), (80.0, 20.0)), ((55.0, 45.0), (50.5, 49.5)))


def told(kind: str) -> list[RunEvent]:
    """The releases of a run in stages."""
    written = WRITE in plan(kind).stages
    return [
        StageStarted(OPENINGS),
        openings(kind),
        StageStarted(WORDS),
        words(kind),
        *(writing("minister", "election") if written else []),
        StageStarted(VOTE),
        votes(kind, written),
        StageStarted(CALIBRATE),
        SetsCompared(tuple(Demonstration(f"public {each}", each) for each in LABELS), won(votes(kind, written))),
        PRIORS,
        StageStarted(SCORE),
        ScoreReleased(replace(SCORED, held_out=plan(kind).by_roles)),
    ]


def as_told(kind: str, events: list[RunEvent]) -> list[RunEvent]:
    """A story with its beginning, the set as it stands before each release that changes it, and its end."""
    made = demo_set(kind=kind)
    seen: list[RunEvent] = [RunStarted(made, plan(kind), snapshot(0.0))]
    for event in events:
        before = made
        match event:
            case DemoCompleted(each):
                every = sorted((*made.demonstrations, each), key=lambda one: made.labels.index(one.label))
                made = replace(made, demonstrations=tuple(every))
            case DemoRefused(label, _, reason):
                kept = tuple(each for each in made.demonstrations if each.label != label)
                made = replace(made, demonstrations=kept, refused=(*made.refused, Refusal(label, reason)))
            case WordsReleased():
                held = Directions(event.embedder, event.sha256, event.directions)
                found = {label: tuple(each.word for each in told) for label, told in event.words.items()}
                made = replace(made, words=found, directions=held)
            case VotesReleased():
                made = replace(made, demonstrations=won(event))
            case PriorsReleased():
                made = replace(made, prior={"News": -0.5, "Sport": 0.5})
            case ScoreReleased(score):
                made = replace(made, score=score)
        seen += [event] if made is before else [SetSoFar(made), event]
    return [*seen, RunCompleted(made, snapshot())]


STORIES = {
    "tokens": recording(),
    "refused": refusing(),
    "both": as_told("both", told("both")),
    "vote": as_told("vote", told("vote")),
}
CLEAN = PrivateDiagnostics("News", 1, 1, (6.0, 1.0, 1.0))
