"""`audit`: what tests and attacks can prove about the privacy of steps, of whole runs and of what these release."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms import confidence
from mechanisms.audit.mechanism import CONFIDENCE, AuditProgress, AuditResult, audit_mechanism
from mechanisms.audit.one_run import audit_run, audited_runs
from mechanisms.cli.attacks import add_attacks
from mechanisms.cli.output import add_json, progress, show
from mechanisms.demos.demo_set import finite
from mechanisms.steps import mechanism_names


def add_commands(commands: Any) -> None:
    """Register the command and its verbs."""
    parser = commands.add_parser("audit", help="tests of the privacy claims, and attacks on what was released")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    mechanism = verbs.add_parser("mechanism", help="many draws of one step on a worst-case pair of neighbours")
    mechanism.add_argument("name", choices=mechanism_names())
    mechanism.add_argument("--epsilon", type=float, default=2.0, help="what one step is calibrated to cost")
    mechanism.add_argument("--draws", type=int, default=100_000)
    add_json(mechanism)
    mechanism.set_defaults(run=_mechanism)
    run = verbs.add_parser("run", help="one whole run on canaries alone: the epsilon that right guesses prove")
    run.add_argument("name", choices=audited_runs(), help="the vote of a recipe, or a token mechanism")
    run.add_argument("--epsilon", type=float, default=2.0, help="what the run is calibrated to cost")
    run.add_argument("--canaries", type=int, default=512, help="units that are in or out by a coin each")
    run.add_argument("--rate", type=float, default=1.0, help="sampling rate of a token mechanism")
    add_json(run)
    run.set_defaults(run=_run)
    add_attacks(verbs)


def _mechanism(options: argparse.Namespace) -> None:
    for told in audit_mechanism(options.name, options.epsilon, options.draws):
        match told:
            case AuditProgress(done, total):
                if done % (total // 10 or 1) == 0:
                    progress(f"{done} of {total}")
            case AuditResult():
                document = {
                    "mechanism": told.mechanism,
                    "epsilon_lower_bound": told.lower_bound,
                    "epsilon_claimed": told.claimed if told.claimed != float("inf") else None,
                    "delta": told.delta,
                    "confidence": CONFIDENCE,
                    "draws": told.draws,
                    "holds": told.holds,
                }
                show(options, document)


def _run(options: argparse.Namespace) -> None:
    found = audit_run(options.name, options.epsilon, options.canaries, options.rate)
    document = {
        "run": found.audited,
        "epsilon_lower_bound": found.guesses.lower_bound,
        "epsilon_claimed": finite(found.claimed),
        "delta": found.delta,
        "confidence": confidence.LEVEL,
        "canaries": found.canaries,
        "guesses": found.guesses.made,
        "correct": found.guesses.correct,
        "holds": found.holds,
    }
    show(options, document)
