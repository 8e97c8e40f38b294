"""`replay`: show a saved run, token by token and stage by stage; and what is said of a run's events as it goes.

All lines hold public values and releases only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from mechanisms.accounting import Claim
from mechanisms.cli.output import add_json, show
from mechanisms.demos.demo_set import finite
from mechanisms.errors import UsageError, printable
from mechanisms.files import text_of
from mechanisms.rounding import rounded_up
from mechanisms.runs.events import (
    ENDS,
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    Drafting,
    Release,
    RunStarted,
    RunStopped,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.plan import Plan
from mechanisms.runs.run_file import from_lines
from mechanisms.runs.spec import Recipe, Split

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
            for line in [_token(event)] if isinstance(event, TokenReleased) else lines_of(event):
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


def _token(event: TokenReleased) -> str:
    values = event.scores if event.scores is not None else event.public
    order = sorted(range(len(values)), key=lambda i: -values[i])[: _BESIDE + 1]
    beside = ", ".join(f"{event.candidates[i]!r} {values[i]:.1f}" for i in order if i != event.chosen)
    kind = "noisy" if event.scores is not None else "public, free" if event.free else "public"
    token = f"{event.candidates[event.chosen]!r} {values[event.chosen]:.1f}"
    return f"  {event.label}, {event.number}: token {event.step}  {token}   ({kind}; beside it {beside or 'nothing'})"


def lines_of(event: CuratorEvent, name: str = "") -> Iterator[str]:
    """The lines for an event of a run on the data set `name`; tokens have none."""
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
            yield printable(f"{demonstration.label}, demonstration {number}: {demonstration.text}")
        case DemoRefused(label, number, reason):
            yield printable(f"{label}, demonstration {number}: refused, {reason}")
        case DemoCutOff(label, number, finished):
            how = "finished from public text alone" if finished else "left out"
            yield printable(f"{label}, demonstration {number}: cut off, {how}")
        case Release():
            yield from map(printable, event.lines())


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


COMMANDS = {"replay": _add_options}
