"""A set tried on rows that may be read as they are: what comes before, and figures beside zero-shot and public-only.

Whoever reads is a model of this machine, or one elsewhere, which gets no row that a private data set has, and no set
that promises nothing. Figures have no noise: `mark_test_file` remembers whose rows they are of.
"""

from __future__ import annotations

from collections.abc import Callable

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.sizes import mark_scored, owners_of
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, Progress, Scorecard, arms_of
from mechanisms.evaluation.evaluate import evaluate as evaluated
from mechanisms.evaluation.reader import (
    Arm,
    LocalReader,
    QueryReader,
    as_read_by,
    check_labels,
    same_reader,
    without_corrections,
)
from mechanisms.evaluation.remote_reader import RemoteReader, read_remotely_in_words, refuse_set_without_promise
from mechanisms.inference import LanguageModel
from mechanisms.inference.models import default_model, load_model
from mechanisms.inference.models.listing import listed_as
from mechanisms.records import Dataset
from mechanisms.runs.drafts import public_demonstrations

Reader = LanguageModel | RemoteReader
"""What reads public demonstrations: a model of this machine, or one behind an address."""
_SHARED = (
    "The test file shares rows with {names}: private rows never leave this machine. Bring rows that took no part, or "
    "read the set with a model of this machine."
)


# Before anything is read.


def mark_test_file(test: Dataset) -> list[str]:
    """Mark a whole file's rows, whose figures have no noise; the names of the private data sets that have some of them.

    Later certificates of those data sets say that they were shown; figures of such rows are for their curator alone.
    """
    scored, ledger = fingerprint(test), PrivacyLedger()
    owners = owners_of(scored, ledger)
    mark_scored(scored, ledger)
    return owners


def about_to_send(reader: RemoteReader, demo_set: DemoSet, test: Dataset | None = None) -> list[str]:
    """What leaves this machine with a set and a whole test file, in sentences to be read before anything does.

    Raises:
        UsageError: private rows would leave: the file shares some, or the set promises nothing.
    """
    _check_may_leave(demo_set, test)
    return [reader.leaving, read_remotely_in_words(demo_set, reader)]


# One text.


def label_remotely(demo_set: DemoSet, text: str, reader: RemoteReader) -> str | None:
    """The label that the answer of a model elsewhere names; None where it names none, or several.

    Raises:
        UsageError: the set promises nothing.
        ModelUnavailable: there is no answer.
    """
    _, shown = _read_by(reader, demo_set)
    return reader.label(shown.template, shown.labels, Arm(PRIVATE, shown.demonstrations), text)


# A labelled file.


def evaluate(
    demo_set: DemoSet,
    test: Dataset,
    model: Reader | None = None,
    *,
    writer: LanguageModel | None = None,
    told: Callable[[int, int], object] = lambda done, of: None,
) -> dict[str, Scorecard]:
    """Accuracies on labelled rows that may be read as they are: zero-shot, public-only and the set, by these names.

    Nothing is remembered of the rows here: where they may be somebody's, call `mark_test_file` first.

    Args:
        writer: writes the public-only set where a model elsewhere reads: see `writer_of`; None leaves that set out.
        told: gets how many rows are done, and of how many.

    Raises:
        UsageError: no row has one of the set's labels, or the set has a single one; or private rows would leave.
        ModelUnavailable: a model elsewhere does not answer.
    """
    check_labels(demo_set.labels)
    reader, shown = _read_by(model, demo_set, test)
    writer = reader.model if isinstance(reader, LocalReader) else writer
    arms = arms_of(shown, public_demonstrations(shown, writer) if writer else None)
    found: dict[str, Scorecard] = {}
    for each in evaluated(reader, shown.template, shown.labels, arms, test.records):
        if isinstance(each, Progress):
            told(each.done, each.total)
        else:
            found[each.name] = each
    return found


def writer_of(demo_set: DemoSet) -> LanguageModel | None:
    """The model that wrote a set, where it is listed and on this machine."""
    name = listed_as(demo_set.model_id)
    model = load_model(name) if name else None
    return model if model is not None and same_reader(demo_set, model) else None


# Who reads, and beside what.


def _read_by(model: Reader | None, demo_set: DemoSet, test: Dataset | None = None) -> tuple[QueryReader, DemoSet]:
    """Who reads, and the set as that one may."""
    if isinstance(model, RemoteReader):
        _check_may_leave(demo_set, test)
        return model, without_corrections(demo_set)
    reader = LocalReader(model or default_model())
    return reader, as_read_by(demo_set, reader.model)


def _check_may_leave(demo_set: DemoSet, test: Dataset | None) -> None:
    if test is not None and (owners := owners_of(fingerprint(test), PrivacyLedger())):
        raise UsageError(_SHARED.format(names=", ".join(f"'{name}'" for name in owners)))
    refuse_set_without_promise(demo_set)
