"""Demonstrations from the rows of one concept: the probability of this concept given them, and a reader's accuracy with
them.

    python -m research.ginc.experiment DATA --runs 5 --epsilons 1 2 4 8 --out ginc.jsonl
    python -m research.ginc.table ginc.jsonl --figure ginc.svg

A line of the file is one set of demonstrations: a concept, a run, a plan, a method, an epsilon. An interrupted run
continues after its lines. Lines contain the words of sets that may be released, never those of rows.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.evaluation.classifier import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.loading import load_model
from mechanisms.noise import Floats
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.sampling import Scheme
from research.ginc.hmm import ginc, posterior
from research.ginc.model import LABEL, SENTENCE, TEMPLATE, folder
from research.lines import keep, lines
from research.runs import texts_written

LENGTH, SHOTS, CANDIDATES = 5, 4, 10
Asked = dict[str, Any]
"""Fields of `mechanisms.runs.spec.RunSpec`."""
_NUCLEUS = {"candidate_top_p": 0.9}


def _pta(**parameters: float | bool) -> Asked:
    return {"transform": "pta", "parameters": parameters}


PLANS: dict[str, Asked] = {
    "printed": {
        "scheme": Scheme.PER_TOKEN,
        "subsets": 5,
        "per_subset": 4,
        "tokens": 10,
        "min_tokens": 10,
        "delta": 1 / 1600,
    },
    "ours": {
        "scheme": Scheme.PER_DEMONSTRATION,
        "subsets": 300,
        "tokens": LENGTH,
        "min_tokens": LENGTH,
        "delta": 1e-5,
    },
}
"""M, N, T, delta and the sampling of Yamasaki et al. 2025, table 4; and one sample per demonstration with a row for
each unit, for texts as long as the rows."""
METHODS: dict[str, dict[str, Asked]] = {
    "printed": {
        "plain": {},
        "plain, top-p": _NUCLEUS,
        "pta": _pta(alpha=5.0),
        "pta, top-p": _pta(alpha=5.0) | _NUCLEUS,
        "pta, no base": _pta(alpha=2.0, base=False) | _NUCLEUS,
    },
    "ours": {"plain": {}, "pta": _pta(), "pta, no base": _pta(base=False)},
}
"""The methods of each plan: B1, BA2, P1, PA2 and PA3 with column MA1 of table 7; and with this program's default alpha.
"""
PUBLIC, REAL = "public", "real rows"


@dataclass(frozen=True)
class Cell:
    """The key of a line; `plan` and `method` are keys of the tables above, or a baseline without a plan.

    Lines of a plan "published" were measured before the plan was that of the paper (research/docs/ginc.md).
    """

    concept: int
    run: int
    plan: str
    method: str
    epsilon: float

    @property
    def releasable(self) -> bool:
        """Whether its words may be stored."""
        return math.isfinite(self.epsilon)


def cells(runs: int, epsilons: Sequence[float]) -> Iterator[Cell]:
    """All cells, run by run, so that an interruption leaves complete runs."""
    for run in range(1, runs + 1):
        for concept in range(len(ginc().start)):
            yield Cell(concept, run, "", PUBLIC, 0.0)
            yield Cell(concept, run, "", REAL, math.inf)
            for plan, methods in METHODS.items():
                for method in methods:
                    yield from (Cell(concept, run, plan, method, each) for each in (*epsilons, math.inf))


def rows_of(path: Path, concept: int) -> list[Record]:
    """A concept's rows of the available length; the label is the token that follows the text."""
    with path.open(encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if row["k"] == str(LENGTH) and row["hmm"] == str(concept)]
    return [Record(row["text"], row["label"]) for row in found]


class Bench:
    """A concept's rows, private and public, and the model that writes and reads."""

    def __init__(self, data: Path, concept: int, model: LanguageModel) -> None:
        self.model, self.concept, self.concepts = model, concept, ginc()
        self.rows = rows_of(data / "ginc" / "train.csv", concept)
        self.test = rows_of(data / "ginc" / "test.csv", concept)
        self.dataset = Dataset(
            f"ginc {concept}", (LABEL,), [Record(f"{each.text} {each.label}", LABEL) for each in self.rows]
        )

    @cached_property
    def truth(self) -> list[int]:
        return [self.concepts.codes[each.label] for each in self.test]

    def made(self, cell: Cell) -> tuple[str, ...]:
        """The texts of a cell's set."""
        if cell.method == REAL:
            return tuple(each.text for each in random.SystemRandom().sample(list(self.dataset.records), SHOTS))
        plan = cell.plan or "ours"
        made = texts_written(
            self.dataset,
            self.model,
            epsilon=cell.epsilon if 0 < cell.epsilon < math.inf else 1.0,  # a baseline has no guarantee
            mechanism=PUBLIC if cell.method == PUBLIC else "gaussian" if cell.releasable else "non-private",
            **METHODS[plan].get(cell.method, {}),
            sentence=SENTENCE,
            shots=SHOTS,
            max_record_tokens=LENGTH,
            candidates=CANDIDATES,
            **PLANS[plan],
        )
        return tuple(each.text for each in made.demonstrations)

    def line(self, cell: Cell) -> dict[str, Any]:
        """Make a set, and measure it."""
        started = time.process_time()
        texts = self.made(cell)
        likelihoods = np.array([self.concepts.log_likelihoods(text) for text in texts])
        return {
            "concept": cell.concept,
            "run": cell.run,
            "plan": cell.plan,
            "method": cell.method,
            "epsilon": cell.epsilon,
            "one": float(np.mean([posterior(each[None])[self.concept] for each in likelihoods])),
            "all": float(posterior(likelihoods)[self.concept]),
            "likeliest": float(np.mean([self._likeliest(each) for each in likelihoods])),
            "impossible": float(np.mean(~np.isfinite(likelihoods[:, self.concept]))),
            "distinct": len(set(texts)),
            "accuracy": self.accuracy(texts),
            "cpu_seconds": round(time.process_time() - started, 2),
            **({"texts": texts} if cell.releasable else {}),
        }

    def _likeliest(self, likelihoods: Floats) -> bool:
        return bool(np.isfinite(likelihoods[self.concept]) and likelihoods.argmax() == self.concept)

    def accuracy(self, texts: Sequence[str]) -> float:
        """The share of test rows whose next token is predicted rightly with these demonstrations in the prompt."""
        shown = [Demonstration(" ".join(words[:-1]), words[-1]) for words in map(str.split, texts)]
        classifier = Classifier(self.model, TEMPLATE, self.concepts.tokens, shown, max_query_tokens=LENGTH - 1)
        scores = classifier.log_probabilities([each.text for each in self.test])
        return float(np.mean(scores.argmax(axis=1) == self.truth))


def run(options: argparse.Namespace) -> None:
    known = {Cell(*(line[name] for name in Cell.__annotations__)) for line in lines(options.out)}
    model = load_model(str(folder()))
    for cell in cells(options.runs, options.epsilons):
        if cell not in known:
            os.environ["DPICL_HOME"] = tempfile.mkdtemp()  # a separate key
            line = Bench(Path(options.data), cell.concept, model).line(cell)
            keep(options.out, line)
            print({key: each for key, each in line.items() if key != "texts"}, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    parser.add_argument("--out", required=True)
    run(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
