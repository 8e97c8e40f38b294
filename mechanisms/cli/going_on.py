"""`synthesize --journal` and `--resume`: a run that can go on after a crash."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.accounting import PrivacyLedger
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.errors import UsageError
from mechanisms.files import check_writable
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.recipe_request import RunRequest
from mechanisms.runs.request import SynthesisRequest

_SLACK = 1e-6


def add_journal_options(parser: argparse.ArgumentParser) -> None:
    """The options; one of them at most."""
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--journal", metavar="RUN", help="write the run down as it goes, so that it can be gone on with")
    files.add_argument("--resume", metavar="RUN", help="go on with a run that was cut off, given the same options")


def journal_of(options: argparse.Namespace, ledger: PrivacyLedger) -> RunJournal | None:
    """The journal that the options ask for.

    Raises:
        UsageError: the file cannot be used, or the run is not private.
    """
    path = options.journal or options.resume
    if path is None:
        return None
    if options.test_seed is not None:
        raise UsageError("A run with a test seed is not private: leave out --journal and --resume.")
    check_writable(path)
    return RunJournal.read(Path(path), ledger) if options.resume else RunJournal.new(Path(path))


def measured_before(journal: RunJournal, content: str) -> MeasuredSizes:
    """The sizes that were measured, and charged, before the run began.

    Args:
        content: keyed digest of the data set.

    Raises:
        UsageError: none were.
    """
    measured = journal.request(content).measured
    if measured is None:
        raise UsageError("The run that was cut off measured no sizes: leave out --count-epsilon.")
    return measured


def resumed(journal: RunJournal, asked: RunRequest) -> RunRequest:
    """The request of the run that was cut off, where the options ask for the same.

    Raises:
        UsageError: they ask for something else.
    """
    request = journal.request(asked.content)
    if bool(request.stages) != bool(asked.stages):
        have = "has" if request.stages else "has no"
        raise UsageError(f"The run that was cut off {have} stages: give the same options.")
    asked = asked.apportioned()
    if request.written is not None and asked.written is not None:
        _check(request.written, asked.written)
    if staged := asked.staged:
        same = replace(staged, written=request.written)
        if (request.parameters(), request.template) != (same.parameters(), same.template):
            raise UsageError("The run that was cut off had other settings: give the same options.")
    elif request.claim().epsilon > asked.target.epsilon * (1 + _SLACK):
        raise UsageError("The run that was cut off costs more than --epsilon: give the same options.")
    return request


def _check(request: SynthesisRequest, asked: SynthesisRequest) -> None:
    """Noise was calibrated when the run began: it is the run's, whatever is asked."""
    if request.mechanism.name == asked.mechanism.name:
        asked = replace(asked, mechanism=request.mechanism)
    if _settings(request) != _settings(asked):
        raise UsageError("The run that was cut off had other settings: give the same options.")


def _settings(request: SynthesisRequest) -> tuple[Any, ...]:
    names = (request.mechanism.name, request.transform.name, request.plan.scheme)
    schema = request.schema.digest if request.schema else None
    return request.parameters(), *names, request.labels, request.template, schema, request.target.delta


def goes_on(journal: RunJournal | None) -> bool:
    """Whether it is of a run that was cut off."""
    return journal is not None and journal.told is not None
