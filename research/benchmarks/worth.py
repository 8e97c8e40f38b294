"""What demonstrations are worth: accuracies of recipes and of their baselines, for research/docs/worth.md.

    python -m research.benchmarks.worth DATA agnews --epsilons 1 0.5 4 --tokens 1 --runs 5 --out worth.jsonl
    python -m research.benchmarks.worth_table worth.jsonl

A line of the file is one run under a fresh key: fresh roles, drafts, votes, noise. The whole recipe costs epsilon. Each
set is then read on the same public test rows, with contextual calibration and with a prior that is measured on private
rows with the noise that the recipe's own measurement has. "public-only", "real rows" and "token by token" are made anew
in every run. Lines are kept, and a run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from mechanisms.accounting import Cap, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.demos.demo_set import DemoSet
from mechanisms.evaluation.reader import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.noise import Floats, SecureRandomness
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record, default_template
from mechanisms.runs import stage as run_stage
from mechanisms.runs.advice import proposed
from mechanisms.runs.drafts import write_drafts
from mechanisms.runs.events import CandidateSet, RunCompleted, SetsMade, StageStarted
from mechanisms.runs.judging import Correction, of_units, preferences, step, targets
from mechanisms.runs.recipe import Kind
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.runs.sets import interleaved
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from mechanisms.tallies import LabelBias
from research.commands import lines
from research.remembering import Remembering

DELTA = 1e-5
CALIBRATORS, MEASUREMENTS = 200, 3


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
    "clinic": Task("Message", "Department"),
    "bank": Task("Message", "Topic"),
}


def rows_of(path: Path) -> list[Record]:
    with path.open(encoding="utf-8", newline="") as file:
        return [Record(row["text"], row["label"]) for row in csv.DictReader(file)]


class Bench:
    """One task and one model; what does not change between runs is read once."""

    def __init__(self, data: Path, name: str, model: LanguageModel, tests: int, rows: int | None) -> None:
        self.task, self.model, self.embedder = TASKS[name], model, Remembering(load_embedder())
        train, test = rows_of(data / name / "train.csv"), rows_of(data / name / "test.csv")
        random.Random(0).shuffle(test)  # which public rows are read, the same in every run
        if rows:
            train = random.Random(1).sample(train, rows)
        self.labels = self.task.labels or tuple(sorted({each.label for each in train}))
        self.test = [each for each in test if each.label in self.labels][:tests]
        self.dataset = Dataset(name, self.labels, train)
        self.template = default_template(self.labels, self.task.text, self.task.label)

    def read(self, demonstrations: Sequence[Demonstration], records: Sequence[Record]) -> tuple[Floats, Classifier]:
        classifier = Classifier(
            self.model, self.template, self.labels, demonstrations, max_query_tokens=self.task.tokens
        )
        return classifier.log_probabilities([each.text for each in records]), classifier

    def truth(self, records: Sequence[Record]) -> Floats:
        return np.array([self.labels.index(each.label) for each in records])

    def prior(self, scores: Floats, epsilon: float) -> Floats:
        """A correction fitted on private rows with noise, for equal shares."""
        offset = np.zeros(len(self.labels))
        for _ in range(MEASUREMENTS):
            units = [(Record("", ""),)] * len(scores)
            tally = LabelBias(epsilon / MEASUREMENTS)
            noisy = tally.release(of_units(preferences(scores, offset), units), SecureRandomness())
            offset = offset + step(noisy, targets(Correction.PRIOR, [1] * len(self.labels)), tally.deviation)
        return offset

    def both_ways(self, demonstrations: Sequence[Demonstration], private: Sequence[Record], epsilon: float) -> Any:
        """Accuracy on the test rows: as the model answers, by contextual calibration, with a private prior."""
        scores, classifier = self.read(demonstrations, self.test)
        truth = self.truth(self.test)
        offset = self.prior(self.read(demonstrations, private)[0], epsilon)

        def accuracy(correction: Floats) -> float:
            return float(((scores + correction).argmax(axis=1) == truth).mean())

        return {
            "raw": accuracy(np.zeros(len(self.labels))),
            "contextual": accuracy(classifier.contextual),
            "prior": accuracy(offset),
        }

    def request(self, epsilon: float, kind: Kind) -> RecipeRequest:
        sizes = self.dataset.counted_sizes()
        recipe = proposed(kind, sizes, epsilon)
        return RecipeRequest(
            labels=self.labels,
            template=self.template,
            recipe=recipe,
            target=PrivacyTarget(epsilon, DELTA),
            sizes=sizes,
            content=fingerprint(self.dataset).content,
            shots=self.task.shots,
            max_record_tokens=self.task.tokens,
        )

    def written(self, epsilon: float, tokens: int = 30, subsets: int = 100) -> tuple[Demonstration, ...]:
        """Today's token by token, at the same epsilon."""
        request = SynthesisRequest(
            labels=self.labels,
            template=self.template,
            plan=SamplingPlan(shots=self.task.shots, tokens=tokens, subsets=subsets),
            mechanism=mechanism_class("gaussian")(),
            target=PrivacyTarget(epsilon, DELTA),
            sizes=self.dataset.counted_sizes(),
            content=fingerprint(self.dataset).content,
            candidates=50,
            max_record_tokens=self.task.tokens,
        ).calibrated()
        for event in synthesize(self.dataset, request, self.model, PrivacyLedger()):
            if isinstance(event, RunCompleted):
                return event.demo_set.demonstrations
        raise AssertionError("a run ends with its set")

    def run(self, epsilons: Sequence[float], tokens: Sequence[float]) -> Iterator[dict[str, Any]]:
        """One run of the default recipe at each epsilon, beside its baselines; all of them under one key."""
        os.environ["DPICL_HOME"] = tempfile.mkdtemp()
        self.dataset = replace(self.dataset)  # under the fresh key
        # Rows are public here: runs share a ledger for its key, and none is refused for what another one spent.
        room = 4 * len(epsilons)
        PrivacyLedger().set_cap(self.dataset.name, self.dataset.unit, Cap(room * max(epsilons), room * DELTA))
        private = random.SystemRandom().sample(list(self.dataset.records), min(CALIBRATORS, len(self.dataset.records)))
        real = self._real()
        with remembered():
            for epsilon in epsilons:
                found, sets = self._made(epsilon)
                arms = {
                    "zero-shot": (),
                    "public-only": sets[1].demonstrations,
                    "voted": sets[2].demonstrations,
                    "real rows": real,
                }
                if epsilon in tokens:
                    arms["token by token"] = self.written(epsilon)
                for name, demonstrations in arms.items():
                    found[name] = self.both_ways(demonstrations, private, epsilon)
                yield found

    def _made(self, epsilon: float) -> tuple[dict[str, Any], tuple[CandidateSet, ...]]:
        started, stages = time.perf_counter(), dict[str, float]()
        sets: tuple[CandidateSet, ...] = ()
        made: DemoSet | None = None
        request = self.request(epsilon, Kind.VOTE)
        for event in synthesize(self.dataset, request, self.model, PrivacyLedger(), embedder=self.embedder):
            match event:
                case StageStarted(stage):
                    stages[stage.value] = round(time.perf_counter() - started, 1)
                case SetsMade(sets):
                    pass
                case RunCompleted(made):
                    pass
        assert made is not None
        found: dict[str, Any] = {
            "target": epsilon,
            "sets": request.recipe.sets,
            "seconds": round(time.perf_counter() - started, 1),
            "stages": stages,
            "epsilon": made.certificate.claim.epsilon,
            "choice": made.choice and made.choice.to_json(),
            "words": made.template.text,
            "score": made.score and made.score.to_json(),
            "demonstrations": [[each.label, each.text] for each in made.demonstrations],
            "recipe": self._recipe(made),
        }
        return found, sets

    def _recipe(self, made: DemoSet) -> float:
        """Accuracy of the exported set as it is read: with its own correction."""
        classifier = Classifier(
            self.model, made.template, self.labels, made.demonstrations, max_query_tokens=self.task.tokens
        )
        prior = np.array([made.prior[label] for label in self.labels]) if made.prior else classifier.contextual
        scores = classifier.log_probabilities([each.text for each in self.test]) + prior
        return float((scores.argmax(axis=1) == self.truth(self.test)).mean())

    def _real(self) -> tuple[Demonstration, ...]:
        pick = random.SystemRandom()
        rows = {y: [each.text for each in self.dataset.records if each.label == y] for y in self.labels}
        chosen = {y: pick.sample(rows[y], self.task.shots) for y in self.labels}
        return interleaved(chosen, self.labels)


@contextmanager
def remembered() -> Iterator[None]:
    """Runs at several epsilons share public drafts, and what the model made of a text under a set: read once."""
    known: dict[tuple[Any, ...], dict[str, Floats]] = {}
    drafts: dict[str, tuple[str, ...]] = {}
    reading = Classifier.reading

    def read(self: Classifier, texts: Sequence[str]) -> Generator[int, None, Floats]:
        seen = known.setdefault(self.prompt, {})
        missing = [each for each in dict.fromkeys(texts) if each not in seen]
        scores = yield from reading(self, missing)
        seen.update(zip(missing, scores, strict=True))
        return np.array([seen[each] for each in texts]).reshape(len(texts), scores.shape[1])

    def write(model: LanguageModel, template: PromptTemplate, label: str, *given: Any) -> tuple[str, ...]:
        if label not in drafts:
            drafts[label] = write_drafts(model, template, label, *given)
        return drafts[label]

    with patch.object(Classifier, "reading", read), patch.object(run_stage, "write_drafts", write):
        yield


def run(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, load_model(options.model), options.tests, options.rows)
    key = {"task": options.task, "model": options.model, "rows": options.rows}
    for number in range(options.runs):
        wanted = [each for each in options.epsilons if done(options.out, key | {"target": each}) <= number]
        if not wanted:
            continue
        for found in bench.run(wanted, options.tokens):
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(key | found, ensure_ascii=False) + "\n")


def done(path: str, key: Mapping[str, Any]) -> int:
    return sum(all(line.get(k) == v for k, v in key.items()) for line in lines(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--rows", type=int, help="private rows, for a small data set")
    parser.add_argument("--tokens", type=float, nargs="*", default=[], help="epsilons at which to write token by token")
    parser.add_argument("--out", required=True)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
