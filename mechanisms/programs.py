"""What a Python program calls: the command line's `synthesize` and `query`, with its ledger, checks and defaults.

data = read_csv("notes.csv", ["Cards", "Loans"])                               # private
demos = write(data, "demos.json", sizes="counted", epsilon=1.0, delta=1e-5)    # charged, and releasable
classify(demos, ["Where is my card?"])
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.cli.output import check_writable
from mechanisms.cli.output import read as text_of
from mechanisms.data.columns import ColumnMapping as Columns
from mechanisms.data.columns import to_dataset
from mechanisms.data.disclosures import marks_at_the_end
from mechanisms.data.record_files import KIND, of_kind
from mechanisms.data.sources import name_of, read_source
from mechanisms.demos.demo_set import DemoSet, loads, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import NotWritten, UsageError
from mechanisms.evaluation.reader import labelled
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.kept_file import keep
from mechanisms.records import Dataset, PromptTemplate, default_template
from mechanisms.runs.advice import proposed
from mechanisms.runs.defaults import MECHANISM, usual_lengths, usual_recipe, usual_subsets
from mechanisms.runs.events import RunCompleted, SetKept
from mechanisms.runs.recipe import Kind
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest
from mechanisms.runs.request import (
    DECLARED_SIZES,
    FILE_FORMAT,
    LABEL_SET,
    MIN_TOKENS,
    SynthesisRequest,
    declared_counts,
)
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class

__all__ = ["NotWritten", "classify", "load", "load_model", "read_csv", "write"]


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
    recipe: str | None = None,
    mechanism: str = MECHANISM,
    shots: int = SamplingPlan.shots,
    tokens: int | None = None,
    subsets: int | None = None,
    template: PromptTemplate | None = None,
    model: LanguageModel | None = None,
) -> DemoSet:
    """Write demonstrations into a file, with their certificate, signed; what is left out is as in the app.

    The run is charged to this installation's ledger before it reads a row, and stays charged if it fails. One in stages
    that fails leaves in the file what it had released.

    Args:
        sizes: rows (or users) of each label: "counted" declares the data set's own counts public, a mapping declares
            upper bounds.
        recipe: "both", "vote" or "tokens" (token by token, without stages); "both" where it is left out and there are
            several labels.
        mechanism: its parameters are the usual ones, its noise is calibrated.
        shots: demonstrations of each label.
        tokens, subsets: where they are written token by token, their tokens at most and the rows expected at each step.
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
    declared = dataset.counted_sizes() if isinstance(sizes, str) else dict(sizes)
    usual = usual_lengths(len(dataset.labels))
    kind = usual_recipe(len(dataset.labels), mechanism, shots) if recipe is None else _kind(recipe)
    tokens = usual.tokens if tokens is None else tokens
    asked = SynthesisRequest(
        labels=dataset.labels,
        template=template or default_template(dataset.labels),
        plan=SamplingPlan(subsets=usual_subsets(declared) if subsets is None else subsets, tokens=tokens, shots=shots),
        mechanism=mechanism_class(mechanism)(),
        target=PrivacyTarget(epsilon, delta),
        sizes=declared,
        content=fingerprint(dataset).content,
        by_user=dataset.by_user,
        max_record_tokens=usual.max_record_tokens,
        min_tokens=min(MIN_TOKENS, tokens),
        public_inputs=(LABEL_SET, FILE_FORMAT, _declared(dataset, sizes)),
    )
    demo_set = _run(dataset, _planned(asked, kind).calibrated(), model or _embedded(), PrivacyLedger(), Path(out))
    _keep(demo_set, Path(out))
    return demo_set


def _kind(recipe: str) -> Kind:
    if recipe not in list(Kind):
        raise UsageError(f"There is no recipe '{recipe}': choose one of {', '.join(Kind)}.")
    return Kind(recipe)


def _declared(dataset: Dataset, sizes: str | Mapping[str, int]) -> str:
    return declared_counts(dataset.by_user) if isinstance(sizes, str) else DECLARED_SIZES


def _planned(asked: SynthesisRequest, kind: Kind) -> RunRequest:
    if kind is Kind.TOKENS:
        return asked
    return RecipeRequest.of(asked, proposed(kind, asked.sizes, asked.target.epsilon))


def _run(
    dataset: Dataset,
    request: RunRequest,
    model: LanguageModel,
    ledger: PrivacyLedger,
    out: Path,
) -> DemoSet:
    data, last = fingerprint(dataset), None
    _warn(ledger.rows.recognise(data))
    try:
        embedder = load_embedder() if request.stages else None
        with closing(synthesize(dataset, request, model, ledger, embedder=embedder)) as events:
            for event in events:
                if isinstance(event, SetKept | RunCompleted):
                    last = event.demo_set
    except BaseException:
        if last is not None:
            _keep(last.with_marks(marks_at_the_end(data, ledger)), out)
        raise
    assert last is not None
    return last.with_marks(marks_at_the_end(data, ledger))  # shown while it ran counts too


def _keep(demo_set: DemoSet, out: Path) -> None:
    text = to_text(signed(demo_set))
    try:
        keep(out, text)
    except UsageError as error:
        raise NotWritten(f"{error} The set is not lost: this error's `text` holds it.", text) from error


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
