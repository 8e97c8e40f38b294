"""`replay`: show a saved run, token by token and stage by stage, without data or model."""

from __future__ import annotations

import argparse
import math
import time

from mechanisms.cli.output import add_json, show
from mechanisms.cli.run_words import cut_off_in_words, own_words
from mechanisms.demos.demo_set import finite
from mechanisms.errors import UsageError, printable
from mechanisms.files import text_of
from mechanisms.records import Demonstration
from mechanisms.runs.events import (
    ChoiceReleased,
    DemoCompleted,
    DemoCutOff,
    DemoStarted,
    DraftsWritten,
    PriorsReleased,
    RunEvent,
    RunStopped,
    ScoreReleased,
    SetsMade,
    StageRelease,
    StageStarted,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.run_file import ENDS, from_lines

_BESIDE = 3
"""The number of candidates shown beside the released one."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_file", metavar="FILE", help="saved in step 3 of the app (docs/run_files.md)")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="between two events")
    add_json(parser)
    parser.set_defaults(run=_replay)


def _replay(options: argparse.Namespace) -> None:
    if not 0 <= options.pause <= 60:
        raise UsageError("--pause must be from 0 to 60 seconds.")
    events = from_lines(text_of(options.run_file))
    if not options.json:
        for event in events:
            for line in lines(event):
                print(printable(line), flush=True)
            time.sleep(options.pause)
    ended = events[-1]
    assert isinstance(ended, ENDS)
    made = ended.demo_set
    document = {
        "ended": "stopped" if isinstance(ended, RunStopped) else "completed",
        "tokens": sum(isinstance(event, TokenReleased) for event in events),
        "demonstrations": len(made.demonstrations),
        "epsilon": finite(made.certificate.claim.epsilon),
        "delta": made.certificate.claim.delta,
        "marks": list(made.certificate.disclosures),
    }
    show(options, document)


def lines(event: RunEvent) -> list[str]:
    """The lines that describe an event; control characters in a model's text are not yet escaped."""
    match event:
        case DemoStarted(label, number):
            return [f"{label}, number {number}"]
        case TokenReleased():
            return [_token(event)]
        case DemoCompleted(demonstration, number):
            return [f"  {demonstration.label}, {number}: {_whole(demonstration)}"]
        case DemoCutOff():
            return [f"  {cut_off_in_words(event)}"]
        case StageStarted(stage):
            return [f"Stage: {stage}"]
        case DraftsWritten(label, round_, drafts):
            return [f"{label}, round {round_}: {len(drafts)} drafts"]
        case VotesReleased():
            return _votes(event)
    return _judged(event)


def _token(event: TokenReleased) -> str:
    values = event.scores if event.scores is not None else event.public
    order = sorted(range(len(values)), key=lambda i: -values[i])[: _BESIDE + 1]
    beside = ", ".join(f"{event.candidates[i]!r} {values[i]:.1f}" for i in order if i != event.chosen)
    kind = "noisy" if event.scores is not None else "public, free" if event.free else "public"
    token = f"{event.candidates[event.chosen]!r} {values[event.chosen]:.1f}"
    return f"  {event.label}, {event.number}: token {event.step}  {token}   ({kind}; beside it {beside or 'nothing'})"


def _votes(event: VotesReleased) -> list[str]:
    head = f"{event.label}, round {event.round}: votes, with noise of ±{event.noise:.2g}"
    winners = ", ".join(f"draft {i + 1} ({event.votes[i]:.1f})" for i in event.winners)
    return [head, f"  winners: {winners or 'none'}"]


def _judged(event: RunEvent) -> list[str]:
    match event:
        case SetsMade(sets):
            return [f"{len(sets)} sets compete: {', '.join(each.name for each in sets)}"]
        case PriorsReleased(priors):
            return [f"  {name} leans to {', '.join(f'{100 * value:.0f}%' for value in of)}" for name, of in priors]
        case ChoiceReleased(_, (name, correction)):
            return [f"Chosen: {name}, correction {correction}"]
        case StageRelease():
            return [f"  {line}" for line in own_words(event)]
        case ScoreReleased(score):
            arms = score.arms.items()
            return [f"  {name}: {_of_hundred(arm.interval)} of 100" for name, arm in arms]
    return []


def _of_hundred(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{math.floor(100 * low)} to {math.ceil(100 * high)}"  # never narrower than it is


def _whole(each: Demonstration) -> str:
    return each.text if each.output is None else f"{each.text} → {each.output}"


COMMANDS = {"replay": _add_options}
