"""What a Python program calls: the command line's `synthesize` and `query`, with the same ledger and the same checks.

data = read_csv("notes.csv", ["Cards", "Loans"])                               # private
demos = write(data, "demos.json", sizes="counted", epsilon=1.0, delta=1e-5)    # charged, and releasable
classify(demos, ["Where is my card?"])
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.cli.output import check_writable
from mechanisms.cli.output import read as text_of
from mechanisms.errors import NotWritten, UsageError
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.noise import SecureRandomness
from mechanisms.records import Dataset, PromptTemplate, default_template
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from mechanisms.studio.certificates.signature import signed
from mechanisms.studio.data.mapping import Mapping as Columns
from mechanisms.studio.data.mapping import to_dataset
from mechanisms.studio.data.marks import marks_at_the_end
from mechanisms.studio.data.record_files import KIND, of_kind
from mechanisms.studio.data.sources import name_of, read_source
from mechanisms.studio.evaluation.kept_file import keep
from mechanisms.studio.evaluation.labelled import labelled
from mechanisms.studio.synthesis.demo_set import DemoSet, loads, to_text
from mechanisms.studio.synthesis.events import RunCompleted
from mechanisms.studio.synthesis.request import (
    DECLARED_SIZES,
    FILE_FORMAT,
    LABEL_SET,
    MIN_TOKENS,
    SynthesisRequest,
    declared_counts,
)
from mechanisms.studio.synthesis.synthesize import synthesize

__all__ = ["NotWritten", "classify", "load", "load_model", "read_csv", "write"]

_USUAL = SamplingPlan()


def read_csv(
    path: str | Path,
    labels: Sequence[str],
    *,
    text: str = "text",
    label: str | None = "label",
    user: str | None = None,
    name: str | None = None,
) -> Dataset:
    """A private file under its public label set; what is odd about the file is a warning.

    Args:
        text, label, user: names of columns; with one of users all rows of a user are the privacy unit; without one of
            labels all rows are of the one kind that `labels` names.
        name: the data set's in the ledger; the file's name where it is left out.

    Raises:
        UsageError: the labels are none, or several for rows without any.
        DataError: the file cannot be read, or lacks a column.
    """
    if isinstance(labels, str):
        raise UsageError("Give the labels as a list, one text each.")
    table = read_source(path)
    _warn(table.remarks)
    if label is None:
        if len(labels) != 1:
            raise UsageError("Without a column of labels all rows are of one kind: give one name for it.")
        table, label = of_kind(table, labels[0]), KIND
    return to_dataset(table, Columns(text, label, user), (name or name_of(path)).strip(), tuple(labels))


def write(
    dataset: Dataset,
    out: str | Path,
    *,
    sizes: Literal["counted"] | Mapping[str, int],
    epsilon: float,
    delta: float,
    mechanism: str = "gaussian",
    shots: int = _USUAL.shots,
    tokens: int = _USUAL.tokens,
    subsets: int = _USUAL.subsets,
    template: PromptTemplate | None = None,
    model: LanguageModel | None = None,
) -> DemoSet:
    """Write demonstrations token by token into a file, with their certificate, signed.

    The run is charged to this installation's ledger before its first token, and stays charged if it fails.

    Args:
        sizes: rows (or users) of each label: "counted" declares the data set's own counts public, a mapping declares
            upper bounds.
        mechanism: its parameters are the usual ones, its noise is calibrated.
        shots, tokens, subsets: demonstrations of each label, their tokens at most, and rows expected at each step.
        template: how the task is put to the model.
        model: the embedded one where none is given.

    Raises:
        UsageError: a value is out of range, or the file cannot be written.
        NotWritten: the file can no longer be written when the run has ended; `text` is what it was to hold.
        BudgetRefused: the data set's cap does not allow the run.
        StudioError: the accountants refuse it, or there is no model.
    """
    check_writable(str(out))
    if isinstance(sizes, str) and sizes != "counted":
        raise UsageError('The sizes are "counted", or a number for each label.')
    plan = SamplingPlan(subsets=subsets, tokens=tokens, shots=shots)
    request = SynthesisRequest(
        labels=dataset.labels,
        template=template or default_template(dataset.labels),
        plan=plan,
        mechanism=mechanism_class(mechanism)(),
        target=PrivacyTarget(epsilon, delta),
        sizes=dataset.counted_sizes() if isinstance(sizes, str) else dict(sizes),
        content=fingerprint(dataset).content,
        by_user=dataset.by_user,
        min_tokens=min(MIN_TOKENS, tokens),
        public_inputs=(LABEL_SET, FILE_FORMAT, _declared(dataset, sizes)),
    ).calibrated()
    demo_set = _run(dataset, request, model or _embedded(), PrivacyLedger())
    text = to_text(signed(demo_set))
    try:
        keep(Path(out), text)
    except UsageError as error:
        raise NotWritten(f"{error} The set is not lost: this error's `text` holds it.", text) from error
    return demo_set


def _declared(dataset: Dataset, sizes: str | Mapping[str, int]) -> str:
    return declared_counts(dataset.by_user) if isinstance(sizes, str) else DECLARED_SIZES


def _run(dataset: Dataset, request: SynthesisRequest, model: LanguageModel, ledger: PrivacyLedger) -> DemoSet:
    data = fingerprint(dataset)
    _warn(ledger.rows.recognise(data))
    [done] = [
        event
        for event in synthesize(dataset, request, model, ledger, SecureRandomness())
        if isinstance(event, RunCompleted)
    ]
    return done.demo_set.with_marks(marks_at_the_end(data, ledger))  # shown while it ran counts too


def load(path: str | Path) -> DemoSet:
    """A demo set that was written before; `account --from` checks what it claims.

    Raises:
        UsageError: it cannot be read, or is no demo set.
    """
    return loads(text_of(str(path)))


def classify(demo_set: DemoSet, texts: Sequence[str], model: LanguageModel | None = None) -> list[str]:
    """The label that the model gives each text behind the demonstrations; reads nothing private, and costs nothing.

    Raises:
        UsageError: the texts are none, or the set gives no labels: it answers with text, holds records or has one.
    """
    if isinstance(texts, str):
        raise UsageError("Give the texts as a list.")
    found = labelled(demo_set, model or _embedded(), texts)
    return [demo_set.labels[int(each.answer.argmax())] for each in found]


@functools.cache
def _embedded() -> LanguageModel:
    return load_model()


def _warn(remarks: Sequence[str]) -> None:
    for each in remarks:
        warnings.warn(each, stacklevel=3)
