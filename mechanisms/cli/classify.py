"""`query` and `evaluate`: use a demo set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.cli.comparing import compared
from mechanisms.cli.grid import add_grid_options, check_grid, in_cells, read_in_cells
from mechanisms.cli.output import add_json, progress, read, show
from mechanisms.cli.scoring import about_to_score, in_json, not_private
from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.records import Record
from mechanisms.studio.data.csv_file import Mapping, read_table, to_dataset
from mechanisms.studio.evaluation.classify import Classifier
from mechanisms.studio.evaluation.evaluate import Progress, Scorecard, arms_of, evaluate
from mechanisms.studio.evaluation.reader import as_read_by, readers_in_words, same_reader
from mechanisms.studio.synthesis.demo_set import DemoSet, loads
from mechanisms.studio.synthesis.public_demonstrations import public_demonstrations


def add_commands(commands: Any) -> None:
    """Register both commands."""
    query = commands.add_parser("query", help="classify one text with a demo set")
    query.add_argument("demos", metavar="DEMOS")
    query.add_argument("text")
    query.set_defaults(run=_query)
    test = commands.add_parser("evaluate", help="accuracy on a labelled CSV, beside zero-shot and public-only")
    test.add_argument("demos", metavar="DEMOS", nargs="+", help="one set, or two to compare on the same rows")
    test.add_argument("--test", required=True, metavar="CSV")
    test.add_argument("--text-column", default="text")
    test.add_argument("--label-column", default="label")
    test.add_argument("--limit", type=int, help="use only the first rows")
    add_grid_options(test)
    test.set_defaults(run=_evaluate)
    for parser in (query, test):
        parser.add_argument("--model", default=EMBEDDED)
        add_json(parser)


def _query(options: argparse.Namespace) -> None:
    written = loads(read(options.demos))
    model = load_model(options.model)
    demo_set = _as_read_by(written, model)
    classifier = Classifier(model, demo_set.template, demo_set.labels, demo_set.demonstrations, demo_set.prior)
    [prediction] = classifier.predict([options.text])
    readings = {"": prediction.answer, "_calibrated": prediction.calibrated, "_raw": prediction.raw}
    labels = {f"label{way}": demo_set.labels[int(each.argmax())] for way, each in readings.items()}
    probabilities = {
        f"probabilities{way}": dict(zip(demo_set.labels, each.tolist(), strict=True)) for way, each in readings.items()
    }
    show(options, labels | probabilities | _models(written, model))


def _evaluate(options: argparse.Namespace) -> None:
    texts = [read(path) for path in options.demos]
    written = [loads(text) for text in texts]
    _check(options)
    mapping = Mapping(options.text_column, options.label_column)
    whole = to_dataset(read_table(Path(options.test)), mapping, "test file", ())
    test, owners = replace(whole, records=whole.records[: options.limit]), about_to_score(whole)
    model = load_model(options.model)
    sets = [_as_read_by(each, model) for each in written]
    if len(sets) > 1:
        show(options, compared(options.demos, sets, model, test.records) | not_private(owners))
        return
    document: dict[str, Any] = {"rows": 0, **_models(written[0], model), **not_private(owners)}
    if in_cells(options):
        show(options, document | read_in_cells(options, texts[0], sets[0], model, test, bool(owners)))
    else:
        show(options, document | _scorecards(sets[0], model, test.records))


def _check(options: argparse.Namespace) -> None:
    if options.limit is not None and options.limit < 1:
        raise UsageError("--limit must be at least 1.")
    if len(options.demos) > 2:
        raise UsageError("evaluate takes one set, or two to compare.")
    if len(options.demos) == 2 and in_cells(options):
        raise UsageError("Two sets are compared as they are: leave out --shots, --orders, --out and --plot.")
    check_grid(options)


def _scorecards(demo_set: DemoSet, model: LanguageModel, rows: Sequence[Record]) -> dict[str, Any]:
    arms = arms_of(demo_set, public_demonstrations(demo_set, model))
    document: dict[str, Any] = {}
    for result in evaluate(model, demo_set.template, demo_set.labels, arms, rows):
        match result:
            case Progress(done, total):
                progress(f"{done} of {total}")
            case Scorecard():
                document["rows"] = result.raw.total
                document[result.name] = _scores(result, demo_set)
    return document


def _as_read_by(written: DemoSet, model: LanguageModel) -> DemoSet:
    if not same_reader(written, model):
        progress(readers_in_words(written, model))
    return as_read_by(written, model)


def _models(written: DemoSet, model: LanguageModel) -> dict[str, Any]:
    return {"written_with": written.model_id, "read_by": model.name, "same_model": same_reader(written, model)}


def _scores(card: Scorecard, demo_set: DemoSet) -> dict[str, Any]:
    return {
        "raw": in_json(card.raw),
        "calibrated": in_json(card.calibrated),
        **({"prior": in_json(card.corrected)} if card.corrected else {}),
        "confusion": {"labels": list(demo_set.labels), "counts": card.confusion.tolist()},
    }
