"""Two newer methods beside the product's, with the same rows, questions and epsilon, for research/docs/answers.md.

    python -m research.benchmarks.newer run DATA trec agnews sst2 dbpedia dbpedia-14 --out newer.jsonl
    python -m research.benchmarks.newer embed DATA trec agnews sst2 dbpedia dbpedia-14 --out newer.jsonl
    python -m research.benchmarks.newer table newer.jsonl DATA

DATA is that of `research.benchmarks.answers`, whose tasks, requests and releases these are. A line of the file is a
question with what the model says without examples and with each sampled row as the one example: labels' contextually
calibrated log-probabilities. A product of experts and the product's votes of shards read the same lines, so that they
differ in nothing but the release. Lines are kept, and a run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting import PrivacyTarget
from mechanisms.answers import AnswerRequest, LabelRespondent
from mechanisms.evaluation.evaluate import nearest_prototype
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.inference.models import EMBEDDED
from mechanisms.inference.models.catalogue import load_embedder, load_model
from mechanisms.noise import Floats, Integers, SecureRandomness
from mechanisms.queries import Retrieval
from mechanisms.records import Dataset, Record
from mechanisms.sampling import seat_in_subsets
from mechanisms.tallies import Prototypes
from mechanisms.tallies.votes import Votes
from research.benchmarks.answers import DELTA, TASKS, Task, ask, data_of, public_terms, request_of, rights
from research.lines import Line, done, keep, lines, markdown, run_and_table
from research.newer.buckets import Buckets, bits_for, hyperplanes
from research.newer.poetry import Poetry
from research.remembering import Remembering

EXPERTS = 10
"""Rows that join a question's sample on average, and shards of the product's votes."""
EPSILONS, CLIPS, BITS, RELEASES = (1.0, 4.0), (2.0, 0.5, 8.0), (4, 6, 10), 20
"""Of C and of the number of hyperplanes the first ones were chosen beforehand, the others are for comparison."""


def sampled_request(name: str, size: int) -> AnswerRequest:
    """The product's votes with Poisson samples: as many shards as experts, one row each."""
    task, rate = TASKS[name], EXPERTS / size
    sampled = {"retrieval": Retrieval.POISSON, "rate": rate, "shards": EXPERTS, "neighbours": 1}
    return request_of(task, queries=task.questions, **sampled)


def run(options: argparse.Namespace) -> None:
    """A question of every task in turn, so that what was cut off has as many of each."""
    model = load_model(options.model)
    for _ in zip_longest(*(reading(name, options, model) for name in options.tasks)):
        pass


def reading(name: str, options: argparse.Namespace, model: LanguageModel) -> Iterator[None]:
    private, asked, _ = data_of(options.data, name)
    request, randomness = sampled_request(name, len(private)), SecureRandomness()
    respondent = LabelRespondent(model, request)
    prompt, key = respondent.prompt, {"task": name, "model": options.model}
    for place in range(done(options.out, key), len(asked)):
        question = asked[place].text
        rows = [(private[row],) for row in randomness.poisson_sample(len(private), request.rate or 0.0)]
        public = respondent.gains([()], question, prompt.public_length).tolist()
        experts = respondent.gains(rows, question, prompt.length).tolist() if rows else []
        keep(options.out, key | {"question": place, "public": public, "experts": experts})
        yield


def embed(options: argparse.Namespace) -> None:
    """What answers without a language model, to the same questions: a line a method."""
    embedder = Remembering(load_embedder())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPICL_HOME"] = folder
        for name in options.tasks:
            for method, found in Embedded(name, options.data, embedder).methods():
                keep(options.out, {"task": name, "method": method, "accuracies": [float(np.mean(x)) for x in found]})


Methods = Iterator[tuple[str, Sequence[NDArray[Any]]]]
"""Names, each with what is right of the answers at each epsilon, shape (questions,)."""


class Embedded:
    """The private rows and the questions of a task as vectors."""

    def __init__(self, name: str, data: Path, embedder: Embedder) -> None:
        self.name, self.task, self.embedder = name, TASKS[name], embedder
        self.private, asked, others = data_of(data, name)
        self.others, self.questions = ([row.text for row in rows] for rows in (others, asked))
        self.labels, self.truths = (places(self.task, rows) for rows in (self.private, asked))
        self.vectors = embedder.embed([row.text for row in self.private])

    def methods(self) -> Methods:
        request, near = self.neighbours_labels()
        calibrated = [at(request, epsilon).mechanism for epsilon in EPSILONS]
        yield "neighbours' labels", [rights(mechanism.release, near, self.truths) for mechanism in calibrated]
        usual = bits_for(len(self.private))
        for bits in (usual, *BITS):
            name = f"buckets of {bits} hyperplanes" if bits in BITS else "buckets"
            yield name, [self.mean(self.buckets, each, bits) for each in EPSILONS]
        yield "prototypes", [self.mean(self.prototypes, each) for each in EPSILONS]

    def mean(self, right: Callable[..., NDArray[Any]], *terms: float) -> Floats:
        return np.asarray(np.mean([right(*terms) for _ in range(RELEASES)], axis=0))

    def neighbours_labels(self) -> tuple[AnswerRequest, list[Integers]]:
        """The product's answers by the labels of the nearest rows."""
        size = len(self.private)
        threshold, answers = public_terms(self.task, self.questions, self.others, size, self.embedder)
        request = request_of(self.task, queries=answers, threshold=threshold, retrieval=Retrieval.LABELS_ONLY)
        data = Dataset(self.name, self.task.labels, tuple(self.private))
        return request, ask(request.calibrated(), data, self.questions, self.embedder, None)[0]

    def prototypes(self, epsilon: float) -> NDArray[Any]:
        tally = Prototypes.costing(PrivacyTarget(epsilon, DELTA), len(self.task.labels))
        cast = Prototypes.contributions(self.labels, self.vectors.astype(np.float64))
        found = nearest_prototype(self.questions, tally.release(cast, SecureRandomness()), self.embedder)
        return np.asarray(found == self.truths)

    def buckets(self, epsilon: float, bits: int) -> NDArray[Any]:
        planes = hyperplanes(bits, self.embedder.dimensions, SecureRandomness())
        buckets = Buckets(planes, len(self.task.labels), Votes(epsilon, by_user=False))
        counts = buckets.release(self.labels, self.vectors, SecureRandomness())
        asked = buckets.of(self.embedder.embed(self.questions)).tolist()
        return np.asarray(np.array([buckets.answer(counts, each) for each in asked]) == self.truths)


def read_by_the_model(name: str, found: Sequence[Line], data: Path) -> Methods:
    """The methods that read the same lines."""
    private, asked, _ = data_of(data, name)
    truths = places(TASKS[name], asked[: len(found)])
    public = [np.array(line["public"]) for line in found]
    experts = [np.array(line["experts"]).reshape(-1, row.shape[1]) for line, row in zip(found, public, strict=True)]
    yield "zero-shot", [np.array([row.argmax() for row in public]) == truths]
    requests = [at(sampled_request(name, len(private)), epsilon) for epsilon in EPSILONS]
    shards = [votes(*each) for each in zip(public, experts, strict=True)]
    yield "votes of shards", [rights(each.mechanism.release, shards, truths) for each in requests]
    yield "votes of shards, without noise", [np.array([each.argmax() for each in shards]) == truths]
    for clip in CLIPS:
        drawn = [Poetry.costing(each.target, each.queries, each.rate or 0.0, clip) for each in requests]
        products = [drawn[0].product(np.vstack(each)) for each in zip(public, experts, strict=True)]
        yield f"product of experts, C = {clip:g}", [rights(each.release, products, truths) for each in drawn]
        clean = np.array([each.argmax() for each in products])
        yield f"product of experts, C = {clip:g}, without noise", [clean == truths]


def votes(public: Floats, experts: Floats) -> Integers:
    """The product's histogram: each row falls into a random shard, whose first row votes; an empty one's is public."""
    seats = seat_in_subsets(np.arange(len(experts)), EXPERTS, SecureRandomness()).rows
    heard = [experts[row[0]] if row else public[0] for row in seats]
    return np.bincount([each.argmax() for each in heard], minlength=public.shape[1])


def at(request: AnswerRequest, epsilon: float) -> AnswerRequest:
    return replace(request, target=PrivacyTarget(epsilon, DELTA)).calibrated()


def places(task: Task, rows: Sequence[Record]) -> Integers:
    return np.array([task.labels.index(row.label) for row in rows])


def table(options: argparse.Namespace) -> None:
    """Accuracies at the epsilons, or the one that knows none; how many questions the model has read stands above."""
    found, shown, heads = lines(options.file), dict[str, dict[str, str]](), {}
    for name in dict.fromkeys(line["task"] for line in found):
        of_task = [line for line in found if line["task"] == name]
        read = [line for line in of_task if "experts" in line]
        heads[name] = f"{name} ({len(read)})"
        by_model = read_by_the_model(name, read, options.data)
        accuracies = [(method, [float(np.mean(each)) for each in right]) for method, right in by_model]
        accuracies += [(line["method"], line["accuracies"]) for line in of_task if "method" in line]
        for method, cells in accuracies:
            shown.setdefault(method, {})[name] = " / ".join(f"{each:.3f}" for each in cells)
    rows = [[method, *(cells.get(name, "-") for name in heads)] for method, cells in shown.items()]
    print(markdown(["answers", *heads.values()], rows))


def main() -> None:
    parser, one, commands = run_and_table(__doc__, run, table)
    one.add_argument("--model", default=EMBEDDED)
    other = commands.add_parser("embed")
    other.add_argument("--out", required=True)
    other.set_defaults(act=embed)
    for each in (one, other, commands.choices["table"]):
        each.add_argument("data", type=Path)
    for each in (one, other):
        each.add_argument("tasks", nargs="+", choices=TASKS)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
