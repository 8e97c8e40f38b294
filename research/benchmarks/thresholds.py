"""A released threshold for each question, compared with `answer`'s public one: the table of research/docs/newer.md.

    python -m research.benchmarks.thresholds run DATA agnews --out thresholds.jsonl [--rows 1500] [--runs 5]
    python -m research.benchmarks.thresholds table thresholds.jsonl

After MuRAG-Ada (Wu et al. 2025): units are counted with noise, in order of decreasing similarity, until there are
enough. Shards vote with the labels of their neighbours, without a language model. Questions, and the number of answers
that a row pays for, are chosen on public rows alone.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mechanisms.accounting.rdp import largest_rho
from mechanisms.inference.models import load_embedder
from mechanisms.noise import Floats, Integers, Randomness, SecureRandomness
from mechanisms.queries import nearest_by_shard
from mechanisms.queries.knn_votes import KnnVotes
from mechanisms.queries.mechanism import GRID
from mechanisms.queries.retrieval import similarities
from research.benchmarks.answers import DELTA, ENOUGH, TASKS, data_of, public_terms
from research.lines import cell, done, keep, lines, markdown, run_and_table
from research.remembering import Remembering

WIDTH = 0.02
"""The width of a bin of similarities."""
COUNTING_SHARE = 0.3
"""The part of an answer's rho that pays for the counts."""


class Counting(NamedTuple):
    """Noisy counts of one bin of units after another, most similar first, until their sum reaches `enough`.

    A unit is in one bin, so the L2 sensitivity is 1. A unit in an unopened bin changes no release, and earlier counts
    determine whether a bin is opened: so only units at or above the threshold pay.

    Attributes:
        noise: the standard deviation of the noise on each bin's count; 0 gives no guarantee.
        enough: the desired number of units.
    """

    noise: float
    enough: int

    @classmethod
    def costing(cls, rho: float, enough: int) -> Counting:
        """The mechanism with the least noise with which a question costs a unit `rho`."""
        return cls(1 / math.sqrt(2 * rho), enough)

    @property
    def rho(self) -> float:
        """The cost of one question to a unit at or above the released threshold."""
        return 1 / (2 * self.noise**2) if self.noise else math.inf

    def release(self, similar: Floats, randomness: Randomness) -> float:
        """The threshold: the lower edge of the last opened bin, at least 0.

        Args:
            similar: the similarity of every unit that can still pay, shape (units,).
        """
        found = 0.0
        for edge in range(round(1 / WIDTH) - 1, -1, -1):
            low, high = edge * WIDTH, (edge + 1) * WIDTH if edge + 1 < round(1 / WIDTH) else math.inf
            count = np.array([((similar >= low) & (similar < high)).sum() * GRID], dtype=np.int64)
            found += float((randomness.gaussian(count, self.noise * GRID) if self.noise else count)[0]) / GRID
            if found >= self.enough:
                return low
        return 0.0


class Asked(NamedTuple):
    """Public questions and private rows' similarities to them, shape (questions, rows), with the labels of both."""

    similar: Floats
    answers: Integers
    row_labels: Integers
    labels: int


def answered(asked: Asked, threshold: Callable[[Floats], float], votes: KnnVotes, queries: int, shards: int, shown: int,
             randomness: Randomness) -> tuple[float, float]:  # fmt: skip
    """Accuracy, and the mean number of units that pay for a question.

    Args:
        threshold: computes the threshold from the similarities of units that can still pay.
        queries: the number of answers that a unit pays for.
    """
    rows = len(asked.row_labels)
    shard = (randomness.uniform(rows) * shards).astype(np.int64)
    paid, right, payers_seen = np.zeros(rows, dtype=np.int64), [], []
    for similar, truth in zip(asked.similar, asked.answers, strict=True):
        able = paid < queries
        payers = np.flatnonzero(able & (similar >= threshold(similar[able])))
        paid[payers] += 1
        payers_seen.append(len(payers))
        near = nearest_by_shard(similar.astype(np.float32), shard, payers, shards, shown)
        cast = [np.bincount(asked.row_labels[list(own)], minlength=asked.labels).argmax() if own else place
                % asked.labels for place, own in enumerate(near)]  # fmt: skip
        histogram = np.bincount(np.array(cast, dtype=np.int64), minlength=asked.labels).astype(np.int64)
        right.append(votes.release(histogram, randomness).chosen == (truth,))
    return float(np.mean(right)), float(np.mean(payers_seen))


def _public(threshold: float, similar: Floats) -> float:
    return threshold


def run(options: argparse.Namespace) -> None:
    task, embedder = TASKS[options.task], Remembering(load_embedder())
    train, asked_rows, others = data_of(Path(options.data), options.task, options.questions)
    train, others = train[: options.rows], others[:400]
    vectors = [embedder.embed([each.text for each in part]) for part in (train, asked_rows, others)]
    places = [np.array([task.labels.index(each.label) for each in part]) for part in (train, asked_rows)]
    asked = Asked(np.stack([similarities(vectors[0], each) for each in vectors[1]]), places[1], places[0],
                  len(task.labels))  # fmt: skip
    questions, stand_ins = ([each.text for each in part] for part in (asked_rows, others))
    fixed, fixed_queries = public_terms(task, questions, stand_ins, len(train), embedder)
    enough = task.shards * task.neighbours
    public = np.stack([similarities(vectors[2], each) for each in vectors[1]])
    wanted = max(1, round(enough * len(others) / len(train)))
    payments = (public >= np.sort(public, axis=1)[:, -wanted][:, None]).sum(axis=0)
    queries = next(q for q in range(1, 1000) if np.minimum(payments, q).sum() >= ENOUGH * payments.sum())
    randomness = SecureRandomness()
    for epsilon in options.epsilons:
        rho = largest_rho(epsilon, DELTA)
        counting = Counting.costing(COUNTING_SHARE * rho / queries, enough)
        exact, released = Counting(0, enough), (1 - COUNTING_SHARE) * rho / queries
        arms: dict[str, tuple[Callable[[Floats], float], float, int]] = {
            "public threshold": (partial(_public, fixed), rho / fixed_queries, fixed_queries),
            "released threshold": (partial(counting.release, randomness=randomness), released, queries),
            "exact threshold (not private)": (partial(exact.release, randomness=randomness), rho / queries, queries),
        }
        for name, (threshold, each_rho, most) in arms.items():
            key = {"task": options.task, "epsilon": epsilon, "arm": name}
            votes = KnnVotes().calibrate(each_rho, 0.0)
            for _ in range(options.runs - done(options.out, key)):
                accuracy, payers = answered(asked, threshold, votes, most, task.shards, task.neighbours, randomness)
                keep(options.out, key | {"accuracy": accuracy, "payers": payers, "queries": most, "votes": votes.noise,
                                         "counts": counting.noise if "released" in name else None})  # fmt: skip


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    groups: dict[tuple[str, float, str], list[dict[str, Any]]] = {}
    for line in lines(options.file):
        groups.setdefault((line["task"], line["epsilon"], line["arm"]), []).append(line)
    rows = [[task, f"{epsilon:g}", arm, len(of), of[0]["queries"], f"{of[0]['votes']:.1f}",
             "-" if of[0]["counts"] is None else f"{of[0]['counts']:.1f}", cell(each["payers"] for each in of),
             cell(each["accuracy"] for each in of)] for (task, epsilon, arm), of in groups.items()]  # fmt: skip
    print(markdown(["set", "epsilon", "arm", "runs", "answers a row", "noise, votes", "noise, counts", "payers",
                    "accuracy"], rows))  # fmt: skip


def main() -> None:
    parser, one, _ = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("task", choices=[name for name, task in TASKS.items() if task.labels])
    one.add_argument("--rows", type=int, default=1500)
    one.add_argument("--questions", type=int, default=100)
    one.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    one.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
