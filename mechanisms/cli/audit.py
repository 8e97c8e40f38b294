"""`audit mechanism`: a black-box test of what a token step claims."""

from __future__ import annotations

import argparse
import math

from mechanisms.audit.mechanism import CONFIDENCE, AuditProgress, AuditResult, audit_mechanism
from mechanisms.cli.output import add_json, progress, show
from mechanisms.steps import mechanism_names


def _add_options(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    step = verbs.add_parser("mechanism", help="many draws of one step on a worst-case pair of neighbours")
    step.add_argument("name", choices=mechanism_names())
    step.add_argument("--epsilon", type=float, default=2.0, help="what one step is calibrated to cost")
    step.add_argument("--draws", type=int, default=100_000)
    add_json(step)
    step.set_defaults(run=_mechanism)


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
                    "epsilon_claimed": told.claimed if math.isfinite(told.claimed) else None,
                    "delta": told.delta,
                    "confidence": CONFIDENCE,
                    "draws": told.draws,
                    "holds": told.holds,
                }
                show(options, document)


COMMANDS = {"audit": _add_options}
