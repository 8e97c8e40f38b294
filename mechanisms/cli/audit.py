"""`audit mechanism`: a black-box test of what a token step claims."""

from __future__ import annotations

import argparse
import math

from mechanisms.audit import CONFIDENCE, audit_mechanism
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
    def told(done: int, total: int) -> None:
        if done % (total // 10 or 1) == 0:
            progress(f"{done} of {total}")

    found = audit_mechanism(options.name, options.epsilon, options.draws, told=told)
    document = {
        "mechanism": found.mechanism,
        "epsilon_lower_bound": found.lower_bound,
        "epsilon_claimed": found.claimed if math.isfinite(found.claimed) else None,
        "delta": found.delta,
        "confidence": CONFIDENCE,
        "draws": found.draws,
        "holds": found.holds,
    }
    show(options, document)


COMMANDS = {"audit": _add_options}
