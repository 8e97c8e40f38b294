"""Whole votes against divided ones at equal rho, in research/docs/answers.md.

    python -m research.benchmarks.divided_votes DATA trec agnews [--model gemma-3-270m] [--questions 60]

DATA, threshold and answers a row are those of `research.benchmarks.answers`. The shards are asked once, by the code of
the app; what they prefer is then turned into votes in several ways, and the noise that costs the same in each is drawn
anew.
Takes about 6 minutes for one data set and model on one idle core.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from mechanisms.accounting import PrivacyLedger, PrivacyTarget
from mechanisms.answers.request import AnswerRequest
from mechanisms.answers.session import open_session
from mechanisms.inference.models.catalogue import EMBEDDED, load_model
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.queries import QueryRelease
from mechanisms.queries.knn_votes import SENSITIVITY, KnnVotes
from mechanisms.queries.soft_votes import SoftVotes
from mechanisms.records import Dataset
from research.benchmarks.answers import DELTA, EPSILONS, TASKS, public_terms, rows
from research.remembering import Remembering

DRAWS = 400
SHARPNESS, CLIPS = (1, 2, 4, 8), (1, 2, 4)


@dataclass(frozen=True)
class Listening(KnnVotes):
    """Keeps what is preferred, and releases nothing."""

    heard: ClassVar[list[np.ndarray]] = []

    def vote(self, preferences):
        self.heard.append(preferences)
        return super().vote(preferences)

    def release(self, histogram, randomness) -> QueryRelease:
        return QueryRelease(None, None)


def preferences(request: AnswerRequest, data: Dataset, questions: list[str], embedder, model) -> np.ndarray:
    """What the shards prefer, shape (questions, shards, labels). Empty ones are asked without examples."""
    session = open_session(data, request, embedder, model, PrivacyLedger())
    Listening.heard.clear()
    for question in questions:
        session.ask(question)
    heard = np.array(Listening.heard).reshape(len(questions), 1 + request.shards, len(request.labels))
    return heard[:, 1:]  # before the shards the model is asked without any


def ways(preferred: np.ndarray) -> Iterator[tuple[str, np.ndarray, float]]:
    """Ways to vote: name, the votes added up, shape (questions, labels), and their L2 sensitivity."""

    def voted(mechanism: KnnVotes) -> np.ndarray:
        return np.apply_along_axis(mechanism.vote, 2, preferred).sum(axis=1) / mechanism.parts

    yield "whole", voted(KnnVotes()), SENSITIVITY
    for sharpness in SHARPNESS:
        yield f"divided, sharpness {sharpness}", voted(SoftVotes(sharpness=sharpness)), SENSITIVITY
    below = preferred - preferred.max(axis=2, keepdims=True)
    for clip in CLIPS:
        votes = np.maximum(below, -clip).sum(axis=1)
        yield f"log-probabilities, clipped at {clip}", votes, clip * math.sqrt(preferred.shape[2])


def section(name: str, folder: Path, count: int, embedder, model) -> Iterator[str]:
    task = TASKS[name]
    train, test = rows(folder / name / "train.csv", task), rows(folder / name / "test.csv", task)
    questions, truths = [row.text for row in test[:count]], [task.labels.index(row.label) for row in test[:count]]
    others = [row.text for row in test[task.questions :]]
    threshold, answers = public_terms(task, questions, others, len(train), embedder)
    asked = AnswerRequest(
        task.template,
        Listening(),
        PrivacyTarget(EPSILONS[-1], DELTA),
        answers,
        task.labels,
        threshold=threshold,
        shards=task.shards,
        neighbours=task.neighbours,
        max_record_tokens=task.max_record_tokens,
        max_query_tokens=task.max_query_tokens,
    )
    data = Dataset(f"{name}-divided", task.labels, tuple(train))
    preferred = preferences(asked.calibrated(), data, questions, embedder, model)
    noises = [replace(asked, target=PrivacyTarget(e, DELTA)).calibrated().mechanism.noise for e in EPSILONS]
    yield f"\n{name}, {model.name}: {count} questions, threshold {threshold:g}, {answers} answers a row\n"
    yield "| votes | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " | without noise |\n|---|---|---|---|---|"
    normal = np.random.default_rng()
    whole: list[np.ndarray] = []
    for way, votes, sensitivity in ways(preferred):
        scales = [noise * sensitivity / SENSITIVITY for noise in (*noises, 0.0)]
        noisy = (votes + scale * normal.normal(size=(DRAWS, *votes.shape)) for scale in scales)
        right = [(each.argmax(axis=2) == truths).mean(axis=0) for each in noisy]
        whole = whole or right
        yield f"| {way} | " + " | ".join(cell(*each) for each in zip(right, whole, strict=True)) + " |"


def cell(right: np.ndarray, whole: np.ndarray) -> str:
    """Accuracy, and the 95% bootstrap interval over questions of its difference to whole votes."""
    if right is whole:
        return f"{right.mean():.3f}"
    draws = np.random.default_rng().choice(right - whole, (4000, len(right))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return f"{right.mean():.3f} ({low:+.3f} to {high:+.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("tasks", nargs="+", choices=[name for name, task in TASKS.items() if task.labels])
    parser.add_argument("--model", default=EMBEDDED)
    parser.add_argument("--questions", type=int, default=60)
    options = parser.parse_args()
    model, embedder = load_model(options.model), Remembering(load_embedder())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPICL_HOME"] = folder
        for name in options.tasks:
            for line in section(name, options.data, options.questions, embedder, model):
                print(line, flush=True)


if __name__ == "__main__":
    main()
