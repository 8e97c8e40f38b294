"""The value of exported texts: whole runs on public sets, for the tables of research/docs/texts.md and worth.md.

    python -m research.benchmarks.worth run DATA agnews --epsilons 1 --runs 5 --out worth.jsonl
    python -m research.benchmarks.worth run DATA agnews --runs 10 --texts-only --out texts.jsonl
    python -m research.benchmarks.worth table worth.jsonl
    python -m research.benchmarks.worth texts worth.jsonl

A line of the file is one run as in the app, under a new key: new roles, drafts, votes and noise. It has the unedited
texts, the share that a classifier trained on real rows assigns to their own label, their similarity to the rows, and
accuracies on public test rows with those of zero-shot and public-only. An interrupted run continues after its lines.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms import api
from mechanisms.accounting import PrivacyTarget
from mechanisms.data.sources import BANK, CLINIC, DESK, Example
from mechanisms.demos.demo_set import DemoSet
from mechanisms.evaluation.class_prototypes import nearest_prototype
from mechanisms.evaluation.classifier import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.inference.models import load_embedder
from mechanisms.noise import Floats, SecureRandomness
from mechanisms.records import Dataset, Demonstration, Record, default_template
from mechanisms.runs.spec import CALIBRATE, SCORE, Split
from mechanisms.tallies import Prototypes
from research.lines import Line, cell, done, keep, lines, markdown, run_and_table
from research.measures.linear_classifier import LinearClassifier
from research.remembering import Remembering
from research.runs import written

DELTA = 1e-5
_HELD_OUT, _TRAINED_ON = 800, 4000
"""The number of rows only for tests, and the number on which the classifier is trained."""


@dataclass(frozen=True)
class Task:
    """A public set as its owner would describe it.

    Attributes:
        asked: the fields of `RunSpec` for the prompt.
        labels: the used labels; None: all.
        example: the bundled file of the task.
    """

    asked: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None
    example: Example | None = None


def _bundled(example: Example) -> Task:
    wording = example.wording
    words = {
        "kind": wording.kind,
        "writer": wording.writer,
        "reader": wording.reader,
        "label_words": dict(wording.words),
    }
    return Task(words, example=example)


_TREC = {
    "Number": "a number",
    "Location": "a place",
    "Person": "a person",
    "Description": "a definition or explanation",
    "Entity": "a thing, such as an animal, a food or a word",
    "Abbreviation": "the meaning of an abbreviation",
}
TASKS = {
    "desk": _bundled(DESK),
    "clinic": _bundled(CLINIC),
    "bank": _bundled(BANK),
    "agnews": Task({"kind": "news item", "writer": "a journalist", "label_words": {"World": "world politics"}}),
    "sst2": Task({"kind": "sentence from a film review", "writer": "a film critic", "relation": "that is"}),
    "trec": Task({"kind": "question", "relation": "that asks for", "label_words": _TREC}),
    "dbpedia": Task(
        {"kind": "first sentence of an encyclopedia article", "label_words": {"Company": "a company"}},
        ("Company", "Village", "Album", "Plant"),
    ),
}


def rows_of(data: Path, name: str) -> tuple[tuple[str, ...], list[Record]]:
    """A task's labels and its rows, in an order that is the same in every run."""
    example, labels = TASKS[name].example, TASKS[name].labels
    path, text, label = (
        (example.path, example.mapping.text, example.mapping.label)
        if example
        else (data / name / "train.csv", "text", "label")
    )
    with path.open(encoding="utf-8", newline="") as file:
        rows = [Record(row[text], row[label]) for row in csv.DictReader(file)]
    labels = labels or tuple(sorted({each.label for each in rows}))
    rows = [each for each in rows if each.label in labels]
    random.Random(0).shuffle(rows)
    return labels, rows


def hidden(task: Task, labels: Sequence[str], rows: Sequence[Record]) -> tuple[Task, tuple[str, ...], list[Record]]:
    """The same rows under uninformative label names, like those of queues, codes and tiers: Q1, Q2, ..."""
    names = {label: f"Q{number}" for number, label in enumerate(labels, start=1)}
    asked = {name: value for name, value in task.asked.items() if name not in ("label_words", "relation")}
    return replace(task, asked=asked), tuple(names.values()), [Record(each.text, names[each.label]) for each in rows]


class Bench:
    """One task and one model; with `unnamed` the labels have uninformative names."""

    def __init__(self, data: Path, name: str, model: LanguageModel, tests: int, unnamed: bool = False) -> None:
        self.task, self.model, self.embedder = TASKS[name], model, Remembering(load_embedder())
        self.labels, rows = rows_of(data, name)
        if unnamed:
            self.task, self.labels, rows = hidden(self.task, self.labels, rows)
        held_out, self.rows = rows[:_HELD_OUT], rows[_HELD_OUT:]
        self.test = held_out[:tests]
        self.name = name
        self.template = default_template(self.labels, self.task.asked["kind"].capitalize())
        self.truth = np.array([self.labels.index(each.label) for each in self.test])
        trained_on = self.rows[:_TRAINED_ON]
        self.vectors = self.embedder.embed([each.text for each in trained_on])
        self.vector_labels = np.array([each.label for each in trained_on])
        self.rows_labels = self.vector_labels.tolist()
        self.classifier = LinearClassifier(self.vectors, self.rows_labels)

    def made(self, epsilon: float, **settings: Any) -> DemoSet:
        """A set from private rows, under a fresh key, which divides the rows anew."""
        os.environ["DPICL_HOME"] = tempfile.mkdtemp()
        dataset = Dataset(self.name, self.labels, self.rows)
        settings = {**self.task.asked, **settings}
        return written(dataset, self.model, epsilon=epsilon, delta=DELTA, embedder=self.embedder, **settings)

    def coverage(self, made: Sequence[Demonstration]) -> float:
        """The mean cosine of a row to the nearest text of its label."""
        found = []
        for label in self.labels:
            texts = self.embedder.embed([each.text for each in made if each.label == label])
            found.append((self.vectors[self.vector_labels == label] @ texts.T).max(axis=1).mean())
        return float(np.mean(found))

    def accuracy(self, scores: Floats) -> float:
        return float((scores.argmax(axis=1) == self.truth).mean())

    def contextual(self, shown: Sequence[Demonstration]) -> float:
        """The accuracy on the test rows with contextual calibration."""
        reader = Classifier(self.model, self.template, self.labels, shown, max_query_tokens=64)
        return self.accuracy(reader.log_probabilities([each.text for each in self.test]) + reader.contextual)

    def as_exported(self, made: DemoSet) -> float:
        """The accuracy with the set's own correction."""
        found = api.predictions(made, [each.text for each in self.test], self.model)
        return self.accuracy(np.array([each.answer for each in found]))

    def prototypes(self, epsilon: float) -> float:
        """The accuracy of noisy class means of embeddings, without a language model."""
        places = np.array([self.labels.index(label) for label in self.vector_labels])
        tally = Prototypes.costing(PrivacyTarget(epsilon, DELTA), len(self.labels))
        vectors = self.vectors.astype(np.float64)
        means = tally.release(Prototypes.contributions(places, vectors), SecureRandomness())
        found = nearest_prototype(self.embedder.embed([each.text for each in self.test]), means)
        return float((found == self.truth).mean())

    def making(self, epsilon: float) -> dict[str, float]:
        """The default shares of the stages on which texts depend."""
        planned = api.plan(
            Dataset(self.name, self.labels, self.rows), sizes="counted", epsilon=epsilon, delta=DELTA, **self.task.asked
        )
        return {name: share for name, share in (planned.spec.shares or {}).items() if name not in (CALIBRATE, SCORE)}

    def line(self, epsilon: float, shots: int, texts_only: bool) -> dict[str, Any]:
        """One run of all stages, or only of those on which texts depend."""
        shares = {"split": Split.ROLES, "shares": self.making(epsilon)} if texts_only else {}
        started = time.perf_counter()
        made = self.made(epsilon, shots=shots, **shares)
        seconds = time.perf_counter() - started
        texts, labels = ([getattr(each, name) for each in made.demonstrations] for name in ("text", "label"))
        line = {
            "seconds": round(seconds, 1),
            "epsilon": made.certificate.claim.epsilon,
            "demonstrations": [list(each) for each in zip(labels, texts, strict=True)],
            "refused": [[each.label, each.reason] for each in made.refused],
            "score": made.score and made.score.to_json(),
            "own": self.classifier.accuracy(self.embedder.embed(texts), labels).value,
            "tstr": LinearClassifier(self.embedder.embed(texts), labels).accuracy(self.vectors, self.rows_labels).value,
            "coverage": self.coverage(made.demonstrations),
        }
        return line if texts_only else line | self.accuracies(made, epsilon)

    def accuracies(self, made: DemoSet, epsilon: float) -> dict[str, float]:
        """The accuracies of the set and its baselines on the test rows."""
        compared = made.baselines
        public = compared.public_only.demonstrations if compared and compared.public_only else None
        return {
            "set, own correction": self.as_exported(made),
            "set, contextual": self.contextual(made.demonstrations),
            "zero-shot, contextual": self.contextual(()),
            **({"public-only, contextual": self.contextual(public)} if public else {}),
            "prototypes": self.prototypes(epsilon),
        }


def run(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, api.load_model(options.model), options.tests)
    key = {"task": options.task, "model": options.model, "shots": options.shots}
    for _ in range(options.runs):
        for epsilon in options.epsilons:
            if done(options.out, key | {"target": epsilon}) < options.runs:
                keep(options.out, key | {"target": epsilon} | bench.line(epsilon, options.shots, options.texts_only))


COLUMNS = (
    "own", "coverage", "tstr", "set, own correction", "set, contextual", "zero-shot, contextual",
    "public-only, contextual", "prototypes", "seconds",
)  # fmt: skip


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    heads = ["task, model, epsilon, shots", "runs", *COLUMNS, "score holds", "refused"]
    print(markdown(heads, _rows(grouped(lines(options.file)))))


def _rows(groups: Iterable[tuple[str, Sequence[Line]]]) -> Iterator[Sequence[object]]:
    for name, group in groups:
        figures = [cell(line.get(each) for line in group) for each in COLUMNS]
        refused = sum(len(line["refused"]) for line in group)
        yield [name, len(group), *figures, f"{sum(map(_held, group))} of {len(group)}", refused]


def texts(options: argparse.Namespace) -> None:
    """Every exported text, unedited."""
    for name, group in grouped(lines(options.file)):
        print(f"\n## {name}\n")
        for number, line in enumerate(group, start=1):
            shown = (f"| {number} | {label} | {text} |" for label, text in line["demonstrations"])
            print("\n".join(["| run | label | text |", "|---|---|---|", *shown] if number == 1 else shown))


def grouped(found: Iterable[Line]) -> list[tuple[str, list[Line]]]:
    """The lines of each task, model, epsilon and number of demonstrations per label."""
    keys: dict[str, list[Line]] = {}
    for line in found:
        keys.setdefault(f"{line['task']}, {line['model']}, {line['target']:g}, {line['shots']}", []).append(line)
    order = list(TASKS)
    return sorted(keys.items(), key=lambda each: (each[1][0]["model"], order.index(each[1][0]["task"]), each[0]))


def _held(line: Mapping[str, Any]) -> bool:
    """Whether the private interval of the set contains its accuracy on the public rows."""
    if not line["score"]:
        return False
    low, high = line["score"]["arms"]["demonstrations"]["interval"]
    return bool(low <= line["set, own correction"] <= high)


def main() -> None:
    parser, one, commands = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("task", choices=TASKS)
    one.add_argument("--model", default="embedded")
    one.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    one.add_argument("--runs", type=int, default=5)
    one.add_argument("--shots", type=int, default=2)
    one.add_argument("--tests", type=int, default=200)
    one.add_argument("--texts-only", action="store_true", help="do not calibrate and score, as no text depends on it")
    shown = commands.add_parser("texts")
    shown.add_argument("file")
    shown.set_defaults(act=texts)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
