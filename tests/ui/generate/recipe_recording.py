"""Short runs of recipes, written down by hand: what the screens of their stages are replayed from."""

from __future__ import annotations

from dataclasses import replace

from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import ArmScore, Choice, Score
from mechanisms.records import Demonstration, default_template
from mechanisms.runs.events import (
    CandidateSet,
    ChoiceReleased,
    DemoCompleted,
    DraftsWritten,
    PriorsReleased,
    RunCompleted,
    RunEvent,
    RunStarted,
    ScoreReleased,
    SetKept,
    SetsMade,
    StageStarted,
    VotesReleased,
)
from mechanisms.runs.recipe import Stage
from tests.ui.generate import recording as tokens
from tests.ui.generate.recording import HOSTILE, LABELS, snapshot

TEMPLATE = default_template(LABELS)

VOTING = (Stage.VOTE, Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE)
SCORE = Score(
    {
        "zero-shot": ArmScore(0.634, (0.6, 0.671)),
        "public-only": ArmScore(0.5, (0.3, 0.71)),
        "demonstrations": ArmScore(0.748, (0.714, 0.778)),
    },
    held_out=True,
)


def recipe_set(*demonstrations: Demonstration) -> DemoSet:
    """A set of two rounds of votes, whose stage "write" expects 8 rows at 3 tokens."""
    plain = tokens.demo_set(*demonstrations)
    parameters = {"recipe": "both", "rounds": 2, "tokens": 40, "written": plain.certificate.parameters}
    return replace(plain, certificate=replace(plain.certificate, parameters=parameters))


def drafts(label: str, number: int, count: int = 14) -> DraftsWritten:
    return DraftsWritten(label, number, (*(f"{label} draft {i} of round {number}" for i in range(count - 1)), HOSTILE))


def votes(label: str, number: int, count: int = 14, winners: tuple[int, ...] = (3, 13)) -> VotesReleased:
    counted = tuple(20.0 - winners.index(i) if i in winners else -1.54321 + i / 10 for i in range(count))
    return VotesReleased(label, number, counted, winners, 1.41421356)


def ballots(number: int) -> list[RunEvent]:
    return [event for label in LABELS for event in (drafts(label, number), votes(label, number))]


def winners(place: int) -> tuple[Demonstration, ...]:
    texts = ("draft 3 of round 2", None)
    return tuple(Demonstration(f"{label} {texts[0]}" if place == 0 else HOSTILE, label) for label in LABELS)


SETS = (
    CandidateSet("none", (), TEMPLATE),
    CandidateSet("public-only", (Demonstration("p", "News"), Demonstration("q", "Sport")), TEMPLATE),
    CandidateSet("voted 1", winners(0), TEMPLATE),
    CandidateSet("voted 2", winners(1), TEMPLATE),
)
PRIORS = PriorsReleased(tuple((each.name, (0.618034, 0.381966)) for each in SETS))


def deciding(chosen: tuple[str, str]) -> list[RunEvent]:
    among = tuple((each.name, correction) for each in SETS for correction in ("none", "prior"))
    return [
        StageStarted(Stage.CALIBRATE, snapshot()),
        SetsMade(SETS),
        PRIORS,
        StageStarted(Stage.CHOOSE, snapshot()),
        ChoiceReleased(among, chosen),
        PriorsReleased(((chosen[0], (0.6, 0.4)),)),
        StageStarted(Stage.SCORE, snapshot()),
        ScoreReleased(SCORE),
        RunCompleted(recipe_set(), snapshot()),
    ]


def started(stages: tuple[Stage, ...]) -> RunStarted:
    return RunStarted(recipe_set(), 1, 40, snapshot(0.0), stages)


def as_told(events: list[RunEvent]) -> list[RunEvent]:
    """A story with the set as it stands: before each release that changes it, and in the end."""
    told, known, made = [], {}, recipe_set()
    for event in events:
        before = made
        match event:
            case DemoCompleted(each):
                known[each.label] = each
                made = recipe_set(*known.values())
            case VotesReleased(label, number, _, (first, *_)):
                known[label] = Demonstration(drafts(label, number).drafts[first], label)
                made = recipe_set(*known.values())
            case ChoiceReleased(among, (name, correction)):
                [held] = [each.demonstrations for each in SETS if each.name == name]
                made = replace(made, demonstrations=held, choice=Choice(len(among), name, correction))
            case PriorsReleased():
                made = replace(made, prior={"News": float(len(told)), "Sport": 0.0})
            case ScoreReleased(score):
                made = replace(made, score=score)
            case RunCompleted():
                event = replace(event, demo_set=made)
        told += [event] if made is before else [SetKept(made), event]
    return told


def voted(chosen: tuple[str, str] = ("voted 1", "prior")) -> list[RunEvent]:
    """Two rounds of votes, then the choice and the score."""
    opening = [started(VOTING), StageStarted(Stage.VOTE, snapshot())]
    return as_told([*opening, *ballots(1), *ballots(2), *deciding(chosen)])


def both() -> list[RunEvent]:
    """Written token by token first."""
    _, *written, _ = tokens.recording()
    told = (event for event in voted()[1:] if not isinstance(event, SetKept))
    return as_told([started(tuple(Stage)), StageStarted(Stage.WRITE, snapshot()), *written, *told])


def short() -> list[RunEvent]:
    """A vote and nothing else."""
    ending = RunCompleted(recipe_set(), snapshot())
    return as_told([started((Stage.VOTE,)), StageStarted(Stage.VOTE, snapshot()), *ballots(1), *ballots(2), ending])


STORIES = {
    "vote": voted(),
    "none": voted(("none", "prior")),
    "both": both(),
    "short": short(),
    "tokens": tokens.recording(),
}
