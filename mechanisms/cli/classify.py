"""`query` and `evaluate`: use a demo set for labels, or for text where it has outputs or is of one kind of text."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mechanisms.cli.comparing import compared
from mechanisms.cli.completions import completion_of, perplexities
from mechanisms.cli.grid import add_grid_options, check_grid, in_cells, read_in_cells
from mechanisms.cli.label_names import add_label_names, label_names
from mechanisms.cli.open_answers import answer_of, answered
from mechanisms.cli.output import add_json, progress, show
from mechanisms.cli.reader_options import add_reader_options, remote_reader
from mechanisms.cli.reading_elsewhere import evaluated_elsewhere, queried_elsewhere
from mechanisms.cli.scoring import about_to_score, not_private, scorecards
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.sources import KIND, of_kind, read_source
from mechanisms.demos.demo_set import DemoSet, loads
from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import check_texts
from mechanisms.evaluation.evaluate import arms_of
from mechanisms.evaluation.reader import (
    LocalReader,
    as_read_by,
    check_gives_labels,
    check_labels,
    labelled,
    readers_in_words,
    same_reader,
)
from mechanisms.files import text_of
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.records import Dataset, Record
from mechanisms.runs.public_demonstrations import public_demonstrations

_NO_CELLS = (
    "A table of cells is of one model's weights, and a server does not show whose it answers with: leave out --shots, "
    "--orders, --seed, --out and --plot."
)

_LABEL = "label"
_ONE_KIND = (
    "A set of one kind of text is read as it is, here: leave out the second set, --shots, --orders, --seed, "
    "--out, --plot, --reader-url and --reader-model."
)
_HERE = "What is answered with text is answered by a model of this machine: leave out --reader-url and --reader-model."


def add_commands(commands: Any) -> None:
    """Register both commands."""
    query = commands.add_parser("query", help="classify one text with a demo set, answer it, or go on with it")
    query.add_argument("demos", metavar="DEMOS")
    query.add_argument("text")
    query.set_defaults(run=_query)
    test = commands.add_parser(
        "evaluate", help="accuracy (of texts alone, perplexity) on a file, beside zero-shot and public-only"
    )
    test.add_argument("demos", metavar="DEMOS", nargs="+", help="one set, or two to compare on the same rows")
    test.add_argument("--test", required=True, metavar="FILE")
    test.add_argument("--text-column", default="text")
    test.add_argument("--label-column", help="default: label; with a set of one kind of text there may be none ('')")
    add_label_names(test)
    test.add_argument("--output-column", help="outputs instead of labels: how often the set answers just so")
    test.add_argument("--limit", type=int, help="use only the first rows")
    add_grid_options(test)
    test.set_defaults(run=_evaluate)
    for parser in (query, test):
        add_reader_options(parser)
        add_json(parser)


def _query(options: argparse.Namespace) -> None:
    written, remote = loads(text_of(options.demos)), remote_reader(options)
    if remote is not None and written.in_text:
        raise UsageError(_HERE)
    if not written.in_text:
        check_gives_labels(written)
    if remote is not None:
        show(options, queried_elsewhere(remote, written, options.text))
        return
    model = load_model(options.model or EMBEDDED)
    demo_set = _as_read_by(written, model)
    terms = _models(written, model) | not_private((), written.certificate.why_not_private)
    if demo_set.template.output is not None:
        show(options, {"answer": answer_of(demo_set, model, options.text)} | terms)
        return
    if demo_set.completes:
        show(options, {"completion": completion_of(demo_set, model, options.text)} | terms)
        return
    [prediction] = labelled(written, model, [options.text])
    readings = {"": prediction.answer, "_calibrated": prediction.calibrated, "_raw": prediction.raw}
    labels = {f"label{way}": demo_set.labels[int(each.argmax())] for way, each in readings.items()}
    probabilities = {
        f"probabilities{way}": dict(zip(demo_set.labels, each.tolist(), strict=True)) for way, each in readings.items()
    }
    show(options, labels | probabilities | terms)


def _evaluate(options: argparse.Namespace) -> None:
    texts = [text_of(path) for path in options.demos]
    written = [loads(text) for text in texts]
    remote = remote_reader(options)
    _check(options, written, elsewhere=remote is not None)
    whole = _test_file(options, written[0])
    test = replace(whole, records=_read_by(written[0], whole)[: options.limit])
    if remote is not None:
        show(options, evaluated_elsewhere(remote, options.demos, written, whole, test.records))
        return
    if written[0].completes:
        check_texts([each.text for each in test.records])
    terms = not_private(about_to_score(whole), *(each.certificate.why_not_private for each in written))
    model = load_model(options.model or EMBEDDED)
    sets = [_as_read_by(each, model) for each in written]
    if len(sets) > 1:
        show(options, compared(options.demos, sets, LocalReader(model), test.records) | terms)
        return
    document: dict[str, Any] = {"rows": 0, **_models(written[0], model), **terms}
    if options.output_column:
        show(options, document | answered(sets[0], model, test.records))
    elif sets[0].completes:
        show(options, document | perplexities(sets[0], model, test.records))
    elif in_cells(options):
        show(options, document | read_in_cells(options, texts[0], sets[0], model, test, bool(terms)))
    else:
        arms = arms_of(sets[0], public_demonstrations(sets[0], model))
        show(options, document | scorecards(LocalReader(model), sets[0], arms, test.records))


def _test_file(options: argparse.Namespace, written: DemoSet) -> Dataset:
    table, label = read_source(options.test), _LABEL if options.label_column is None else options.label_column
    mapping = ColumnMapping(options.text_column, label, label_names=label_names(options))
    unsaid = options.label_column is None and _LABEL not in table.columns
    if options.output_column or (written.completes and (unsaid or label == "")):  # which label a row has is not asked
        mapping = ColumnMapping(options.text_column, KIND, output=options.output_column)
        table = of_kind(table, written.labels[0])
    return to_dataset(table, mapping, "test file", ())


def _read_by(written: DemoSet, test: Dataset) -> Sequence[Record]:
    """The rows that a set is for: of a single kind of text, that kind's."""
    return [each for each in test.records if each.label in written.labels] if written.completes else test.records


def _check(options: argparse.Namespace, sets: Sequence[DemoSet], elsewhere: bool) -> None:
    if options.limit is not None and options.limit < 1:
        raise UsageError("--limit must be at least 1.")
    if len(options.demos) > 2:
        raise UsageError("evaluate takes one set, or two to compare.")
    if len(options.demos) == 2 and in_cells(options):
        raise UsageError("Two sets are compared as they are: leave out --shots, --orders, --out and --plot.")
    if elsewhere and in_cells(options):
        raise UsageError(_NO_CELLS)
    _check_outputs(options, sets, elsewhere)
    check_grid(options, read=(*options.demos, options.test))


def _check_outputs(options: argparse.Namespace, sets: Sequence[DemoSet], elsewhere: bool) -> None:
    if options.output_column and elsewhere:
        raise UsageError(_HERE)
    if options.output_column and (len(options.demos) == 2 or in_cells(options)):
        raise UsageError("Outputs are read of one set as it is: leave out --shots, --orders, --out and --plot.")
    for each in sets:
        if options.output_column and each.template.output is None:
            raise UsageError("The demonstrations of this set have no outputs: leave out --output-column.")
        if not options.output_column and each.template.output is not None and len(each.labels) == 1:
            raise UsageError("The demonstrations of this set have outputs: give the test file's --output-column.")
        if each.completes and (elsewhere or len(options.demos) == 2 or in_cells(options)):
            raise UsageError(_ONE_KIND)
        if not options.output_column and not each.completes:
            check_labels(each.labels, each.schema)


def _as_read_by(written: DemoSet, model: LanguageModel) -> DemoSet:
    if not same_reader(written, model):
        progress(readers_in_words(written, model))
    return as_read_by(written, model)


def _models(written: DemoSet, model: LanguageModel) -> dict[str, Any]:
    return {"written_with": written.model_id, "read_by": model.name, "same_model": same_reader(written, model)}
