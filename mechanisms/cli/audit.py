"""`audit`: what a black-box test can prove about a mechanism's epsilon."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms.cli.output import add_json, progress, show
from mechanisms.steps import mechanism_names
from mechanisms.studio.assurance.audit import CONFIDENCE, AuditProgress, AuditResult, audit_mechanism


def add_commands(commands: Any) -> None:
    """Register the command and its verb."""
    parser = commands.add_parser("audit", help="black-box tests of the privacy claims")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    mechanism = verbs.add_parser("mechanism", help="many draws of one step on a worst-case pair of neighbours")
    mechanism.add_argument("name", choices=mechanism_names())
    mechanism.add_argument("--epsilon", type=float, default=2.0, help="what one step is calibrated to cost")
    mechanism.add_argument("--draws", type=int, default=100_000)
    add_json(mechanism)
    mechanism.set_defaults(run=_mechanism)


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
