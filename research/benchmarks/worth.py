"""What demonstrations are worth: a run beside its baselines, for the table of the README and research/docs/worth.md.

    python -m research.benchmarks.worth run DATA agnews --epsilons 1 0.5 4 --tokens 1 --runs 5 --out worth.jsonl
    python -m research.benchmarks.worth table worth.jsonl

A line of the file is one run under a fresh key: fresh roles, drafts, votes, noise. The whole recipe "vote" costs
epsilon. Each set is then read on the same public test rows, with contextual calibration and with a prior that is
measured on 200 private rows at the same epsilon. Lines are kept, and runs that were cut off go on.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms import api
from mechanisms.accounting import PrivacyTarget
from mechanisms.demos.demo_set import DemoSet
from mechanisms.evaluation.prototypes import nearest_prototype
from mechanisms.evaluation.reader import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.inference.models import load_embedder
from mechanisms.noise import Floats, SecureRandomness
from mechanisms.records import Dataset, Demonstration, Record, default_template
from mechanisms.runs.judging import Correction, of_units, preferences, step, targets
from mechanisms.tallies import LabelBias, Prototypes
from research.lines import Line, cell, done, keep, lines, markdown, run_and_table
from research.remembering import Remembering
from research.runs import written

DELTA = 1e-5
CALIBRATORS, MEASUREMENTS, PROTOTYPE_ROWS = 200, 3, 1200


@dataclass(frozen=True)
class Task:
    """What prompts call a text and a label, and the labels in the file's words; None: as the file has them."""

    text: str
    label: str
    labels: tuple[str, ...] | None = None
    shots: int = 1
    tokens: int = 64
    """Public cap on the tokens of a text that the model reads."""


TASKS = {
    "agnews": Task("Article", "Topic", ("World", "Sports", "Business", "Technology")),
    "sst2": Task("Review", "Sentiment", ("Negative", "Positive"), shots=2, tokens=40),
    "trec": Task(
        "Question", "Type", ("Number", "Location", "Person", "Description", "Entity", "Abbreviation"), tokens=32
    ),
    "dbpedia": Task("Text", "Category"),
}


def rows_of(path: Path) -> list[Record]:
    with path.open(encoding="utf-8", newline="") as file:
        return [Record(row["text"], row["label"]) for row in csv.DictReader(file)]


class Bench:
    """One task and one model."""

    def __init__(self, data: Path, name: str, model: LanguageModel, tests: int) -> None:
        self.task, self.model, self.embedder = TASKS[name], model, Remembering(load_embedder())
        train, test = rows_of(data / name / "train.csv"), rows_of(data / name / "test.csv")
        random.Random(0).shuffle(test)  # which public rows are read, the same in every run
        self.labels = self.task.labels or tuple(sorted({each.label for each in train}))
        self.test = [each for each in test if each.label in self.labels][:tests]
        self.dataset = Dataset(name, self.labels, train)
        self.template = default_template(self.labels, self.task.text, self.task.label)
        self.truth = np.array([self.labels.index(each.label) for each in self.test])

    def afresh(self) -> None:
        """Go on under a fresh key, which divides the rows anew."""
        os.environ["DPICL_HOME"] = tempfile.mkdtemp()
        self.dataset = replace(self.dataset)

    def made(self, epsilon: float, **asked: Any) -> DemoSet:
        """A set from private rows."""
        usual: dict[str, Any] = {"shots": self.task.shots, "max_record_tokens": self.task.tokens}
        embedder = self.embedder if asked["recipe"] == "vote" else None
        whole = {"template": self.template, **usual, **asked}
        return written(self.dataset, self.model, epsilon=epsilon, delta=DELTA, embedder=embedder, **whole)

    def tokens(self, epsilon: float, mechanism: str = "gaussian", **asked: Any) -> DemoSet:
        """A set that is written token by token; `public` reads no row."""
        usual = {"tokens": 30, "subsets": 100, "candidates": 50}
        return self.made(epsilon, recipe="tokens", mechanism=mechanism, **usual | asked)

    def real(self, shots: int | None = None) -> list[Demonstration]:
        """Private rows as they are, so many of each label."""
        pick = random.SystemRandom()
        rows = {y: [each for each in self.dataset.records if each.label == y] for y in self.labels}
        chosen = [row for y in self.labels for row in pick.sample(rows[y], shots or self.task.shots)]
        return [Demonstration(each.text, each.label) for each in chosen]

    def reader(self, shown: Sequence[Demonstration]) -> Classifier:
        return Classifier(self.model, self.template, self.labels, shown, max_query_tokens=self.task.tokens)

    def accuracy(self, scores: Floats) -> float:
        return float((scores.argmax(axis=1) == self.truth).mean())

    def both_ways(self, shown: Sequence[Demonstration], private: Sequence[Record], epsilon: float) -> dict[str, float]:
        """Accuracy on the test rows: by contextual calibration, and with a prior of private rows."""
        reader = self.reader(shown)
        scores = reader.log_probabilities([each.text for each in self.test])
        offset = prior(reader.log_probabilities([each.text for each in private]), epsilon)
        return {"contextual": self.accuracy(scores + reader.contextual), "prior": self.accuracy(scores + offset)}

    def as_exported(self, made: DemoSet) -> float:
        """Accuracy with the set's own correction."""
        found = api.predictions(made, [each.text for each in self.test], self.model)
        return self.accuracy(np.array([each.answer for each in found]))

    def prototypes(self, epsilon: float) -> float:
        """Accuracy of noisy class means of embeddings, without any language model."""
        rows = random.SystemRandom().sample(list(self.dataset.records), min(PROTOTYPE_ROWS, len(self.dataset.records)))
        vectors = self.embedder.embed([each.text for each in rows]).astype(np.float64)
        places = np.array([self.labels.index(each.label) for each in rows])
        tally = Prototypes.costing(PrivacyTarget(epsilon, DELTA), by_user=False, alternatives=len(self.labels))
        means = tally.release(Prototypes.contributions(places, vectors), SecureRandomness())
        found = nearest_prototype([each.text for each in self.test], means, self.embedder)
        return float((found == self.truth).mean())

    def line(self, epsilon: float, with_tokens: bool) -> dict[str, Any]:
        """One run of everything."""
        self.afresh()
        private = random.SystemRandom().sample(list(self.dataset.records), CALIBRATORS)
        started = time.perf_counter()
        made = self.made(epsilon, recipe="vote")
        found: dict[str, Any] = {
            "seconds": round(time.perf_counter() - started, 1),
            "epsilon": made.certificate.claim.epsilon,
            "demonstrations": [[each.label, each.text] for each in made.demonstrations],
            "choice": made.choice and made.choice.to_json(),
            "score": made.score and made.score.to_json(),
            "recipe": self.as_exported(made),
            "prototypes": self.prototypes(epsilon),
        }
        arms: dict[str, Sequence[Demonstration]] = {
            "zero-shot": (),
            "public-only": self.tokens(epsilon, "public").demonstrations,
            "real rows": self.real(),
        }
        if with_tokens:
            arms["token by token"] = self.tokens(epsilon).demonstrations
        return found | {name: self.both_ways(shown, private, epsilon) for name, shown in arms.items()}


def prior(scores: Floats, epsilon: float) -> Floats:
    """A correction fitted with noise on private rows' scores, shape (rows, labels), for equal shares."""
    offset = np.zeros(scores.shape[1])
    for _ in range(MEASUREMENTS):
        units = [(Record("", ""),)] * len(scores)
        tally = LabelBias(epsilon / MEASUREMENTS)
        noisy = tally.release(of_units(preferences(scores, offset), units), SecureRandomness())
        offset = offset + step(noisy, targets(Correction.PRIOR, [1] * scores.shape[1]), tally.deviation)
    return offset


def run(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, api.load_model(options.model), options.tests)
    key = {"task": options.task, "model": options.model}
    for number in range(options.runs):
        for epsilon in options.epsilons:
            if done(options.out, key | {"target": epsilon}) <= number:
                keep(options.out, key | {"target": epsilon} | bench.line(epsilon, epsilon in options.tokens))


COLUMNS = [
    (arm, way) for arm in ("zero-shot", "public-only", "real rows", "token by token") for way in ("contextual", "prior")
]


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    heads = ["task, model, epsilon", "runs", *(" ".join(each) for each in COLUMNS), "recipe", "prototypes", "score"]
    print(markdown(heads, _rows(grouped(lines(options.file)))))


def _rows(groups: Iterable[tuple[str, Sequence[Line]]]) -> Iterator[Sequence[object]]:
    for name, group in groups:
        arms = [cell(line[arm][way] if arm in line else None for line in group) for arm, way in COLUMNS]
        alone = [cell(line.get(each) for line in group) for each in ("recipe", "prototypes")]
        yield [name, len(group), *arms, *alone, f"{sum(map(_held, group))} of {len(group)}"]


def grouped(found: Iterable[Line]) -> list[tuple[str, list[Line]]]:
    """The lines of each task, model and epsilon."""
    keys: dict[str, list[Line]] = {}
    for line in found:
        sets = f", {line['sets']} sets" if "sets" in line else ""  # of earlier runs, which chose among them
        keys.setdefault(f"{line['task']}, {line['model']}, {line['target']:g}{sets}", []).append(line)
    order = list(TASKS)
    return sorted(keys.items(), key=lambda each: (each[1][0]["model"], order.index(each[1][0]["task"]), each[0]))


def _held(line: Mapping[str, Any]) -> bool:
    """Whether the private interval of the exported set holds its accuracy on the public rows."""
    chosen = (line.get("choice") or {"chosen": "demonstrations"})["chosen"]
    kind = {"none": "zero-shot", "public-only": "public-only"}.get(chosen, "demonstrations")
    low, high = line["score"]["arms"][kind]["interval"]
    return bool(low <= line["recipe"] <= high)


def main() -> None:
    parser, one = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("task", choices=TASKS)
    one.add_argument("--model", default="embedded")
    one.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    one.add_argument("--runs", type=int, default=5)
    one.add_argument("--tests", type=int, default=200)
    one.add_argument("--tokens", type=float, nargs="*", default=[], help="epsilons at which to write token by token")
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
