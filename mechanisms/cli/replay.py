"""`replay`: show a saved run, token by token and stage by stage, without data or model."""

from __future__ import annotations

import argparse
import time

from mechanisms.cli.output import add_json, show
from mechanisms.cli.run_words import own_words
from mechanisms.demos.demo_set import finite
from mechanisms.errors import UsageError, printable
from mechanisms.files import text_of
from mechanisms.runs.events import (
    ENDS,
    DemoCompleted,
    DemoStarted,
    RunEvent,
    RunStopped,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.run_file import from_lines

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
        case StageStarted(stage):
            return [f"Stage: {stage}"]
        case DemoStarted(label, number, opening):
            return [f"{label}, number {number}{f': begins with {opening!r}' if opening else ''}"]
        case TokenReleased():
            return [_token(event)]
        case DemoCompleted(demonstration, number):
            return [f"  {demonstration.label}, {number}: {demonstration.text}"]
    return [f"  {line}" for line in own_words(event)]


def _token(event: TokenReleased) -> str:
    values = event.scores if event.scores is not None else event.public
    order = sorted(range(len(values)), key=lambda i: -values[i])[: _BESIDE + 1]
    beside = ", ".join(f"{event.candidates[i]!r} {values[i]:.1f}" for i in order if i != event.chosen)
    kind = "noisy" if event.scores is not None else "public, free" if event.free else "public"
    token = f"{event.candidates[event.chosen]!r} {values[event.chosen]:.1f}"
    return f"  {event.label}, {event.number}: token {event.step}  {token}   ({kind}; beside it {beside or 'nothing'})"


COMMANDS = {"replay": _add_options}
