"""Class prototypes, without any language model: noisy class means of embeddings, from as many rows as vote.

python -m research.benchmarks.prototypes DATA agnews sst2 trec dbpedia
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np

from mechanisms.accounting import PrivacyTarget
from mechanisms.evaluation.prototypes import nearest_prototype
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.noise import SecureRandomness
from mechanisms.tallies import Prototypes
from research.benchmarks.worth import DELTA, TASKS, rows_of
from research.benchmarks.worth_table import cell
from research.remembering import Remembering

PROTOTYPE_ROWS = 1200


def prototypes(options: argparse.Namespace) -> None:
    """Class means of embeddings with noise, from as many rows as vote in a recipe: no language model at all."""
    embedder = Remembering(load_embedder())
    for name in options.tasks:
        train, test = (rows_of(Path(options.data) / name / f"{part}.csv") for part in ("train", "test"))
        labels = sorted({each.label for each in train})
        random.Random(0).shuffle(test)
        chosen = random.SystemRandom().sample(train, min(PROTOTYPE_ROWS, len(train)))
        vectors = embedder.embed([each.text for each in chosen]).astype(np.float64)
        places = np.array([labels.index(each.label) for each in chosen])
        asked = [each for each in test if each.label in labels][: options.tests]
        truth = np.array([labels.index(each.label) for each in asked])
        for epsilon in options.epsilons:
            tally = Prototypes.costing(PrivacyTarget(epsilon, DELTA), by_user=False, alternatives=len(labels))
            rates = []
            for _ in range(options.runs):
                made = tally.release(Prototypes.contributions(places, vectors), SecureRandomness())
                found = nearest_prototype([each.text for each in asked], made, embedder)
                rates.append(float((found == truth).mean()))
            print(f"{name}, epsilon {epsilon:g}: {cell(rates)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("tasks", nargs="+", choices=TASKS)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tests", type=int, default=200)
    prototypes(parser.parse_args())


if __name__ == "__main__":
    main()
