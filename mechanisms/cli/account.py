"""`calibrate` and `account`: noise for a target, and the cost of given noise.

`account --from FILE` checks a demo set's certificate and prints the file's digest. It exits with 0 if the certificate
is consistent, and with 3 if it is not, after the list of problems, or if the digest differs from the given one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from mechanisms.accounting import PrivacyTarget, claim
from mechanisms.api import calibration, certificate_check, cost
from mechanisms.cli.options import (
    add_plan_options,
    add_rate_options,
    check_transform,
    composition,
    mechanism,
    sampling_plan,
)
from mechanisms.cli.output import add_json, show
from mechanisms.demos.signature import same_digest
from mechanisms.errors import AccountingError, UsageError
from mechanisms.files import text_of


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epsilon", type=float, required=True)
    add_plan_options(parser)
    _add_both(parser, _calibrate)


def _add_account(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", metavar="FILE", help="check a demo set's certificate")
    parser.add_argument("--digest", help="with --from: what the certificate page on paper says; refuse another file")
    add_plan_options(parser, delta_required=False)  # a demo set carries its own delta
    _add_both(parser, _account)


def _add_both(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None]) -> None:
    add_rate_options(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def _calibrate(options: argparse.Namespace) -> None:
    plan = sampling_plan(options)
    check_transform(options)
    target, compose = PrivacyTarget(options.epsilon, options.delta), composition(options, plan)
    show(options, calibration(mechanism(options, plan), plan, compose, target))


def _account(options: argparse.Namespace) -> None:
    if options.source:
        _check(options)
        return
    if options.digest:
        raise UsageError("--digest is compared with a file: name it with --from FILE.")
    if options.delta is None:
        raise UsageError("Give --delta, or a demo set with --from FILE.")
    plan = sampling_plan(options)
    check_transform(options)
    given, compose = mechanism(options, plan, required=True), composition(options, plan)
    event = compose(given.event)
    show(options, cost(given, plan, event, claim(event, PrivacyTarget(1.0, options.delta).delta)))


def _check(options: argparse.Namespace) -> None:
    document = certificate_check(text_of(options.source))
    show(options, document)
    if document["problems"]:
        raise AccountingError(f"The certificate is refused. {document['problems'][0]}")
    if options.digest is not None and not same_digest(document["digest"], options.digest):
        raise AccountingError("This is not the file of that certificate page: the digests differ.")


COMMANDS = {"calibrate": _add_calibrate, "account": _add_account}
