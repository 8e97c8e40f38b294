"""`query` and `evaluate`: use a demo set."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mechanisms.cli.output import add_json, progress, read, show
from mechanisms.cli.scoring import about_to_score, not_private
from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.studio.data.csv_file import Mapping, read_table, to_dataset
from mechanisms.studio.evaluation.classify import Classifier
from mechanisms.studio.evaluation.evaluate import Accuracy, Progress, Scorecard, arms_of, evaluate
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
    test.add_argument("demos", metavar="DEMOS")
    test.add_argument("--test", required=True, metavar="CSV")
    test.add_argument("--text-column", default="text")
    test.add_argument("--label-column", default="label")
    test.add_argument("--limit", type=int, help="use only the first rows")
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
    written = loads(read(options.demos))
    if options.limit is not None and options.limit < 1:
        raise UsageError("--limit must be at least 1.")
    mapping = Mapping(options.text_column, options.label_column)
    test = to_dataset(read_table(Path(options.test)), mapping, "test file", ())
    rows, owners = test.records[: options.limit], about_to_score(test)
    model = load_model(options.model)
    demo_set = _as_read_by(written, model)
    arms = arms_of(demo_set, public_demonstrations(demo_set, model))
    document: dict[str, Any] = {"rows": 0, **_models(written, model), **not_private(owners)}
    for result in evaluate(model, demo_set.template, demo_set.labels, arms, rows):
        match result:
            case Progress(done, total):
                progress(f"{done} of {total}")
            case Scorecard():
                document["rows"] = result.raw.total
                document[result.name] = _scores(result, demo_set)
    show(options, document)


def _as_read_by(written: DemoSet, model: LanguageModel) -> DemoSet:
    if not same_reader(written, model):
        progress(readers_in_words(written, model))
    return as_read_by(written, model)


def _models(written: DemoSet, model: LanguageModel) -> dict[str, Any]:
    return {"written_with": written.model_id, "read_by": model.name, "same_model": same_reader(written, model)}


def _scores(card: Scorecard, demo_set: DemoSet) -> dict[str, Any]:
    def accuracy(each: Accuracy) -> dict[str, Any]:
        return {"accuracy": round(each.value, 4), "interval": [round(bound, 4) for bound in each.interval]}

    return {
        "raw": accuracy(card.raw),
        "calibrated": accuracy(card.calibrated),
        **({"prior": accuracy(card.corrected)} if card.corrected else {}),
        "confusion": {"labels": list(demo_set.labels), "counts": card.confusion.tolist()},
    }
