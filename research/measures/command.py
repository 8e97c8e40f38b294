"""`measure`: the value of demonstrations as training data."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from mechanisms import confidence
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.api import mark_test_file
from mechanisms.cli.options import (
    add_json,
    add_label_names,
    in_json,
    label_names,
    not_private,
    progress,
    show,
    warn_of_owners,
)
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.disclosures import CLEAN_VALUES
from mechanisms.data.sources import name_of, read_table
from mechanisms.demos.demo_set import PUBLIC_ONLY
from mechanisms.errors import UsageError
from mechanisms.files import text_of
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.embedder import load_embedder
from mechanisms.inference.models.loading import load_model
from mechanisms.records import Dataset
from mechanisms.runs.score import ScoredSet, read_set
from research.measures.copying import longest_copied
from research.measures.matching import matching
from research.measures.measure import Figures, Labelled, Measures

DEMONSTRATIONS, REAL_ROWS = "demonstrations", "real rows"
_TRAIN = (
    "--train reads real rows without noise: the figures of the arm 'real rows' promise these rows nothing. It is for "
    "rows that their owner says are public, as in a benchmark."
)
_PRIVATE = (
    "--private reads private rows without noise: the lengths of what was copied are not private, for the curator "
    "alone, and every later certificate of these rows says that clean values were shown."
)
_OWN_TEXT = "The model of --model wrote one of the sets: its own text surprises it little; choose another one."
_REASON = "figures without noise on real rows: not private"


def add_commands(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("measure", help="how good many demonstrations are: as training data, and as texts")
    parser.add_argument("demos", metavar="DEMOS", nargs="+", help="demo sets of one task; their texts are pooled")
    parser.add_argument("--test", required=True, metavar="FILE", help="real public rows that wrote none of the texts")
    parser.add_argument("--public", nargs="+", default=[], metavar="DEMOS", help="sets written without private rows")
    parser.add_argument(
        "--train", metavar="FILE", help="real rows that are public, as in a benchmark: as many of them as texts"
    )
    parser.add_argument(
        "--private", metavar="FILE", help="private rows: the longest run of words copied from one; not private"
    )
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    add_label_names(parser)
    parser.add_argument("--model", help="a second model, which wrote none of the texts: their perplexity under it")
    add_json(parser)
    parser.set_defaults(run=_measure)


def _measure(options: argparse.Namespace) -> None:
    sets, public = _sets(options.demos), _sets(options.public)
    labels = _labels([*sets, *public])
    test = _rows(options, options.test, labels)
    arms: dict[str, Sequence[Labelled]] = {DEMONSTRATIONS: _texts(sets)}
    owners = mark_test_file(test)
    warn_of_owners(owners)
    if public:
        arms[PUBLIC_ONLY] = _as_many(_texts(public), arms[DEMONSTRATIONS])
    if options.train:
        train = _rows(options, options.train, labels)
        others = mark_test_file(train)
        warn_of_owners(others, "file of --train")
        owners += others
        progress(_TRAIN)
        arms[REAL_ROWS] = _as_many(train.records, arms[DEMONSTRATIONS])
    copied = dict(_copied(options, labels, arms)) if options.private else {}
    reader = _reader(options, [*sets, *public]) if options.model else None
    progress("embedding the test rows")
    measures = Measures(labels, test.records, load_embedder(), reader)
    document = {
        "rows": measures.rows,
        "level": confidence.LEVEL,
        "classifier_of_real_rows": in_json(measures.held_out),
        **({"perplexity_by": reader.name} if reader else {}),
        **_terms(options, owners, [*sets, *public]),
    }
    for name, texts in arms.items():
        progress(f"{name}: {len(texts)} texts")
        document[name] = _figures(measures.of(texts)) | copied.get(name, {})
    show(options, document)


def _sets(paths: Sequence[str]) -> list[ScoredSet]:
    return [read_set(text_of(path)) for path in paths]


def _labels(sets: Sequence[ScoredSet]) -> tuple[str, ...]:
    labels = sets[0].labels
    if any(set(each.labels) != set(labels) for each in sets):
        raise UsageError("The sets are of different tasks: give sets with the same labels.")
    return labels


def _texts(sets: Sequence[ScoredSet]) -> list[Labelled]:
    texts: list[Labelled] = [each for one in sets for each in one.demonstrations]
    if not texts:
        raise UsageError("There are no demonstrations to measure in these sets.")
    return texts


def _as_many(texts: Sequence[Labelled], like: Sequence[Labelled]) -> list[Labelled]:
    """As many texts of each label as `like` has, or all if there are fewer."""
    return [texts[place] for place in matching([each.label for each in texts], [each.label for each in like])]


def _rows(options: argparse.Namespace, path: str, labels: tuple[str, ...]) -> Dataset:
    mapping = ColumnMapping(options.text_column, options.label_column, label_names=label_names(options))
    return to_dataset(read_table(path), mapping, name_of(path), labels)


def _copied(
    options: argparse.Namespace, labels: tuple[str, ...], arms: dict[str, Sequence[Labelled]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The copies in each arm of written texts; marks the private rows first."""
    private = _rows(options, options.private, labels)
    PrivacyLedger().rows.mark(fingerprint(private), CLEAN_VALUES)
    progress(_PRIVATE)
    for name in (DEMONSTRATIONS, PUBLIC_ONLY):
        if name in arms:
            found = longest_copied([each.text for each in arms[name]], (record.text for record in private.records))
            number = None if found.text is None else found.text + 1
            yield name, {"longest_copied": {"words": found.words, "text_number": number}}


def _reader(options: argparse.Namespace, sets: Sequence[ScoredSet]) -> LanguageModel:
    model = load_model(options.model)
    if any(each.model_sha256 == model.sha256 for each in sets):
        progress(_OWN_TEXT)
    return model


def _terms(options: argparse.Namespace, owners: Sequence[str], sets: Sequence[ScoredSet]) -> dict[str, Any]:
    """The document's statements about itself."""
    if options.train or options.private:
        return {"private": False, "reason": _REASON, "curator_only": True}
    return not_private(owners, *(each.reason for each in sets))


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "texts": figures.texts,
        "label_fidelity": in_json(figures.label_fidelity),
        "trained_on": in_json(figures.trained_on),
        **{f"distinct_{n}": round(share, 4) for n, share in enumerate(figures.distinct, 1)},
        **({} if figures.perplexity is None else {"perplexity": round(figures.perplexity, 2)}),
    }
