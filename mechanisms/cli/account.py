"""`calibrate` and `account`: noise for a target, and the cost of given noise.

`account --from FILE` checks a demo set's certificate and prints the file's digest. It exits with 0 if the certificate
is consistent, and with 3 if it is not, after the list of problems, or if the digest differs from the given one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from mechanisms.accounting import PrivacyTarget, claim
from mechanisms.api import calibration, certificate_check, cost
from mechanisms.cli.options import add_plan_options, check_noise, composition, planned
from mechanisms.cli.output import add_json, show
from mechanisms.demos.signature import same_digest
from mechanisms.errors import AccountingError, UsageError
from mechanisms.files import text_of


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    _add_both(parser, _calibrate, "epsilon")


def _add_account(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", metavar="FILE", help="check a demo set's certificate")
    parser.add_argument("--digest", help="with --from: what the certificate page on paper says; refuse another file")
    _add_both(parser, _account)


def _add_both(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None], *more: str) -> None:
    add_plan_options(parser, *more)
    add_json(parser)
    parser.set_defaults(run=run)


def _calibrate(options: argparse.Namespace) -> None:
    spec, plan = planned(options)
    check_noise(spec)
    target = PrivacyTarget(spec.epsilon, spec.delta)
    compose = composition(options, plan, spec.delta)
    show(options, calibration(spec.made_mechanism.for_plan(plan), plan, compose, target))


def _account(options: argparse.Namespace) -> None:
    if options.source:
        _check(options)
        return
    if options.digest:
        raise UsageError("--digest is compared with a file: name it with --from FILE.")
    spec, plan = planned(options)
    check_noise(spec, required=True)
    given = spec.made_mechanism.for_plan(plan)
    event = composition(options, plan, spec.delta)(given.event)
    show(options, cost(given, plan, event, claim(event, spec.delta)))


def _check(options: argparse.Namespace) -> None:
    document = certificate_check(text_of(options.source))
    show(options, document)
    if document["problems"]:
        raise AccountingError(f"The certificate is refused. {document['problems'][0]}")
    if options.digest is not None and not same_digest(document["digest"], options.digest):
        raise AccountingError("This is not the file of that certificate page: the digests differ.")


COMMANDS = {"calibrate": _add_calibrate, "account": _add_account}
