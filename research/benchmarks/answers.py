"""Private answers on public research data: neighbours against Poisson samples (Koskela et al. 2025).

    python -m research.benchmarks.answers DATA trec agnews squad [--model gemma-3-270m.gguf]

DATA has trec/, agnews/, squad/ with train.csv (the private rows) and test.csv. Prints the tables of
research/docs/answers.md, in about 40 minutes for one model on 2 idle cores. Threshold and answers per row are chosen on
public rows alone: the rows of test.csv that are not asked. Which units take part depends on the number of answers that
they have paid for, never on epsilon. So the shards are asked once, by the product's code, and only the release is
repeated for every epsilon.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU

from mechanisms.accounting import PrivacyLedger
from mechanisms.answers.plan import AnswerPlan, plan_answers
from mechanisms.answers.session import exact_match, open_session
from mechanisms.answers.shards import TextRespondent
from mechanisms.answers.spec import AnswerSpec
from mechanisms.inference.models.embedder import load_embedder
from mechanisms.inference.models.listed import EMBEDDED
from mechanisms.inference.models.loading import load_model
from mechanisms.noise import Floats, Integers, Randomness, SecureRandomness
from mechanisms.queries import QueryMechanism, QueryRelease, Retrieval
from mechanisms.queries.retrieval import similarities
from mechanisms.records import Dataset, PromptTemplate, Record
from research.remembering import Remembering

EPSILONS, DELTA = (1.0, 4.0, 8.0), 1e-5
"""The epsilons of the tables, by default."""
DRAWS = 50
"""The number of releases of the same votes at each epsilon, to average over the noise."""
THRESHOLDS = np.round(np.arange(0.1, 0.75, 0.05), 2)
ENOUGH = 2 / 3


@dataclass(frozen=True)
class Task:
    questions: int
    template: PromptTemplate
    mechanism: str
    labels: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("text",)
    between: str = " "
    label: str = "label"
    shards: int = 10
    neighbours: int = 4
    max_record_tokens: int = 32
    max_query_tokens: int = 48
    answer_tokens: int = 16
    parameters: Mapping[str, int] = field(default_factory=dict)
    """The mechanism's parameters, by their flags."""
    folder: str = ""
    """The name of the data, if it is not that of the task."""


TASKS = {
    "trec": Task(
        100,
        PromptTemplate(
            "Classify the questions based on whether their answer type is a Number, Location, Person, Description, "
            "Entity, or Abbreviation.",
            "Question",
            "Answer Type",
        ),
        "knn-votes",
        ("Number", "Location", "Person", "Description", "Entity", "Abbreviation"),
    ),
    "agnews": Task(
        100,
        PromptTemplate(
            "Classify the news articles into the categories of World, Sports, Business, and Technology.",
            "Article",
            "Answer",
        ),
        "knn-votes",
        ("World", "Sports", "Business", "Technology"),
        max_record_tokens=48,
        max_query_tokens=64,
    ),
    "squad": Task(
        30,
        PromptTemplate(
            "Read each text and answer the question at its end with words from the text.", "Text and question", "Answer"
        ),
        "keywords",
        parameters={"fewest-keywords": 1, "most-keywords": 8},
        columns=("context", "question"),
        label="answer",
        shards=30,
        neighbours=1,
        max_record_tokens=256,
        max_query_tokens=256,
        answer_tokens=12,
    ),
    "squad-koskela": Task(
        100,
        PromptTemplate("", "Read the text", "Do not provide a Yes/No answer"),
        "keywords",
        parameters={"fewest-keywords": 15, "most-keywords": 30},
        columns=("context", "question"),
        between="\nAnswer the question with at most 4 words: ",
        label="answer",
        shards=20,
        max_record_tokens=256,
        max_query_tokens=256,
        answer_tokens=12,
        folder="squad",
    ),
}
"""The last one is that of Koskela et al. 2025, appendices D and G."""


def data_of(folder: Path, name: str, questions: int | None = None) -> tuple[list[Record], list[Record], list[Record]]:
    """A task's private rows, the rows whose texts are asked, and further public rows, all with the task's labels."""
    task = TASKS[name]

    def rows(file: str) -> list[Record]:
        with (folder / (task.folder or name) / file).open(encoding="utf-8", newline="") as lines:
            found = [
                Record(task.between.join(row[c] for c in task.columns), row[task.label])
                for row in csv.DictReader(lines)
            ]
        return [row for row in found if not task.labels or row.label in task.labels]

    test, asked = rows("test.csv"), questions or task.questions
    return rows("train.csv"), test[:asked], test[asked:]


def plan_of(task: Task, **settings: Any) -> AnswerPlan:
    """The plan for a task's questions at the largest epsilon; `settings` has further settings, including `queries`."""
    of_task = (
        "mechanism", "parameters", "shards", "neighbours", "max_record_tokens", "max_query_tokens", "answer_tokens"
    )  # fmt: skip
    asked = task.template
    prompts = {"instruction": asked.instruction, "text_field": asked.text, "label_field": asked.label}
    usual = {name: getattr(task, name) for name in of_task}
    return plan_answers(AnswerSpec.of(epsilon=EPSILONS[-1], delta=DELTA, **usual | prompts | settings), task.labels)


def public_terms(task: Task, questions: Sequence[str], others: Sequence[str], size: int, embedder) -> tuple[float, int]:
    """The threshold, and the number of answers per row.

    They are the highest threshold at which the median question reaches as many rows as the shards show, and the fewest
    answers that keep two thirds of the payments due.
    """
    stand_ins = embedder.embed(others)
    similar = np.stack([similarities(stand_ins, question) for question in embedder.embed(questions)])
    reached = {t: np.median((similar >= t).sum(axis=1)) * size / len(others) for t in THRESHOLDS}
    threshold = max(t for t in THRESHOLDS if reached[t] >= task.shards * task.neighbours or t == THRESHOLDS[0])
    payments = (similar >= threshold).sum(axis=0)
    answers = next(q for q in range(1, 1000) if np.minimum(payments, q).sum() >= ENOUGH * payments.sum())
    return float(threshold), answers


def recorded(mechanism: QueryMechanism, histograms: list[np.ndarray]) -> QueryMechanism:
    """The mechanism, changed to store the shards' histogram and release nothing."""

    class Recorded(type(mechanism)):
        def release(self, histogram, randomness) -> QueryRelease:
            histograms.append(histogram)
            return QueryRelease(None, None)

    return Recorded(**{each.name: getattr(mechanism, each.name) for each in fields(mechanism)})


def ask(plan: AnswerPlan, data: Dataset, questions: Sequence[str], embedder, model) -> tuple[list, list[str]]:
    """The shards' histograms, and the model's answers without data, for every question in order."""
    histograms: list[np.ndarray] = []
    listening = replace(plan, mechanism=recorded(plan.mechanism, histograms))
    session = open_session(data, listening, embedder, model, PrivacyLedger())
    zero_shot = []
    for question in questions:
        zero_shot.append(session.ask(question).zero_shot)
        print(f"{data.name}: {len(zero_shot)} of {len(questions)}", file=sys.stderr, flush=True)
    return histograms, zero_shot


def line(name: str, scores: np.ndarray, *rest: object) -> str:
    """A row of a table from per-question scores, shape (questions,)."""
    draws = np.random.default_rng().choice(scores, (4000, len(scores))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    cells = [name, f"{scores.mean():.3f}", f"{low:.3f} to {high:.3f}", *map(str, rest)]
    return "| " + " | ".join(cells) + " |"


class Arm:
    """One kind of retrieval with the shards' answers, for releases at any epsilon."""

    def __init__(self, name: str, plan: AnswerPlan, histograms: list[np.ndarray]) -> None:
        self.name, self.plan, self.histograms = name, plan, histograms

    def at(self, epsilon: float) -> AnswerPlan:
        return plan_answers(self.plan.spec.with_(epsilon=epsilon), self.plan.labels)


Release = Callable[[Integers, Randomness], QueryRelease]


def rights(release: Release, histograms: Sequence[Integers], answers: Integers) -> Floats:
    """The share of right releases of each question's histogram, shape (questions,)."""
    return np.array(
        [
            np.mean([release(each, SecureRandomness()).chosen == (truth,) for _ in range(DRAWS)])
            for each, truth in zip(histograms, answers, strict=True)
        ]
    )


def label_section(
    task: Task, arms: Sequence[Arm], zero_shot: list[str], truths: list[str], epsilons: Sequence[float]
) -> Iterator[str]:
    yield "| answers | epsilon | noise, votes | accuracy | 95% interval |\n|---|---|---|---|---|"

    def row(name: str, epsilon: object, noise: object, right: np.ndarray) -> str:
        return line(f"{name} | {epsilon} | {noise}", right)

    yield row("zero-shot", 0, "", np.array([a == b for a, b in zip(zero_shot, truths, strict=True)], float))
    answers = np.array([task.labels.index(truth) for truth in truths])
    for arm in arms:
        for epsilon in epsilons:
            mechanism = arm.at(epsilon).mechanism
            right = rights(mechanism.release, arm.histograms, answers)
            yield row(arm.name, f"{epsilon:g}", f"{mechanism.deviation:.2f}", right)
        clean = np.array([h.argmax() for h in arm.histograms])
        yield row(f"{arm.name}, without noise", "infinite", 0, (clean == answers).astype(float))


ROUGE = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
BLEU_OF_SENTENCE = BLEU(effective_order=True, lowercase=True)
"""BLEU with only the n-gram orders that an answer has, because short answers have no 4-grams."""


def scores_of_text(answer: str, truth: str) -> list[float]:
    """ROUGE-1, -2 and -L (F1 of stems), BLEU, ANLS (0 below one half; Biten et al. 2019) and exact match."""
    rouge = [each.fmeasure for each in ROUGE.score(truth, answer).values()]
    bleu = BLEU_OF_SENTENCE.sentence_score(answer, [truth]).score / 100
    anls = Levenshtein.normalized_similarity(*(" ".join(each.lower().split()) for each in (answer, truth)))
    return [*rouge, bleu, anls if anls > 1 / 2 else 0.0, float(exact_match(answer, truth))]


def text_section(
    arms: Sequence[Arm],
    zero_shot: list[str],
    truths: list[str],
    questions: list[str],
    model,
    epsilons: Sequence[float],
) -> Iterator[str]:
    names = "ROUGE-1 | 95% interval | ROUGE-2 | ROUGE-L | BLEU | ANLS | exact match | answered"
    yield f"| answers | epsilon | noise, shards | {names} |\n|---{'|---' * 10}|"

    def row(name: str, answers: Sequence[str], answered: object) -> str:
        scores = np.array([scores_of_text(a, t) for a, t in zip(answers, truths, strict=True)])
        return line(name, scores[:, 0], *(f"{mean:.3f}" for mean in scores[:, 1:].mean(axis=0)), answered)

    yield row("zero-shot | 0 |", zero_shot, "")
    for arm in arms:
        writer = TextRespondent(model, arm.plan)
        for epsilon in epsilons:
            mechanism = arm.at(epsilon).mechanism
            chosen = [mechanism.release(h, SecureRandomness()).chosen for h in arm.histograms]
            answers = [
                public if tokens is None else writer.final(tokens, question)[1]
                for tokens, question, public in zip(chosen, questions, zero_shot, strict=True)
            ]
            answered = f"{sum(tokens is not None for tokens in chosen)} of {len(chosen)}"
            yield row(f"{arm.name} | {epsilon:g} | {mechanism.deviation:.2f}", answers, answered)
        answers = [
            writer.final(widest_gap(h, arm.plan.mechanism), question)[1]
            for h, question in zip(arm.histograms, questions, strict=True)
        ]
        yield row(f"{arm.name}, without noise | infinite | 0", answers, f"{len(answers)} of {len(answers)}")


def widest_gap(histogram: np.ndarray, mechanism: QueryMechanism) -> list[int]:
    order = np.argsort(-histogram, kind="stable")
    ranked = histogram[order]
    sizes = range(mechanism.fewest_keywords, mechanism.most_keywords + 1)
    best = max(sizes, key=lambda k: ranked[k - 1] - ranked[k])
    return sorted(order[:best].tolist())


def section(name: str, task: Task, options: argparse.Namespace, embedder, model) -> str:
    train, asked, others = data_of(options.data, name, task.questions)
    questions, truths = [row.text for row in asked], [row.label for row in asked]
    threshold, answers = public_terms(task, questions, [row.text for row in others], len(train), embedder)
    answers = options.answers or answers
    terms = {"queries": answers, "threshold": threshold}
    rate = min(1.0, task.shards * task.neighbours / len(train))
    poisson = {"queries": task.questions, "retrieval": Retrieval.POISSON, "rate": rate}
    plans = {"neighbours": plan_of(task, **terms), "Poisson": plan_of(task, **terms | poisson)}
    if task.labels:
        plans["dummy"] = plan_of(task, **terms, retrieval=Retrieval.LABELS_ONLY)
    arms, zero_shot = [], []
    for kind, plan in plans.items():
        data = Dataset(f"{name}-{kind}", task.labels, tuple(train))
        needed = None if plan.spec.retrieval is Retrieval.LABELS_ONLY else model
        histograms, public = ask(plan, data, questions, embedder, needed)
        arms.append(Arm(kind, plan, histograms))
        zero_shot = zero_shot or public
    if task.labels:
        table = label_section(task, arms, zero_shot, truths, options.epsilons)
    else:
        table = text_section(arms, zero_shot, truths, questions, model, options.epsilons)
    setting = (
        f"{len(train)} rows, {len(questions)} questions, {task.shards} shards of {task.neighbours}; threshold "
        f"{threshold:g}, {answers} answers a row; Poisson rate {rate:.4f}."
    )
    return "\n".join([f"{name}, {model.name}", "", setting, "", *table, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("tasks", nargs="+", choices=TASKS)
    parser.add_argument("--model", default=EMBEDDED)
    parser.add_argument("--questions", type=int, help="that are asked (default: 100, of squad 30)")
    parser.add_argument("--shards", type=int, help="of a question (default: 10, of squad 30 and 20)")
    parser.add_argument("--answers", type=int, help="that a row pays for (default: by public rows)")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="E", default=EPSILONS)
    options = parser.parse_args(arguments)
    given = {name: value for name in ("questions", "shards") if (value := getattr(options, name))}
    tasks = {name: replace(TASKS[name], **given) for name in options.tasks}
    model, embedder = load_model(options.model), Remembering(load_embedder())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPICL_HOME"] = folder
        for name, task in tasks.items():
            print(section(name, task, options, embedder, model), flush=True)


if __name__ == "__main__":
    main()
