"""The effect of public exemplars on a model's drafts: a table of research/docs/texts.md.

    python -m research.benchmarks.exemplars run DATA TASK --out exemplars.jsonl [--runs 2]
    python -m research.benchmarks.exemplars table exemplars.jsonl

Sixteen drafts per label from public words alone, with and without exemplars.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms import api
from mechanisms.noise import SecureRandomness
from mechanisms.records import Demonstration
from mechanisms.runs.drafts import DraftRequest, Nearness, write_drafts, write_samples
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.text import Gate
from research.benchmarks.worth import TASKS, Bench
from research.lines import cell, done, keep, lines, markdown, run_and_table
from research.measures.linear_classifier import LinearClassifier

_DRAFTS = 16
_INTRODUCES = re.compile(r"\bI['’]?m an? |\bI am an? |\bmy name is |\bDr\.? [A-Z]")


def line(bench: Bench, **settings: Any) -> dict[str, Any]:
    """Drafts of every label, with their measures."""
    spec, randomness = RunSpec(**bench.task.asked, **settings), SecureRandomness()
    gate = Gate(bench.model, write_samples(bench.model, spec.wording, bench.labels[0], 24, randomness), spec.wording)
    nearness = Nearness(bench.embedder, spec.wording, bench.labels)
    made: list[Demonstration] = []
    for label in bench.labels:
        request = DraftRequest(spec.wording, label, bench.labels, _DRAFTS, spec.draft_tokens, {})
        taken = [each.text for each in made]
        found = write_drafts(bench.model, request, gate, randomness, taken, nearness)
        made += [Demonstration(text, label) for text in found]
    texts, labels = [each.text for each in made], [each.label for each in made]
    vectors = bench.embedder.embed(texts)
    return {
        "coverage": bench.coverage(made),
        "tstr": LinearClassifier(vectors, labels).accuracy(bench.vectors, bench.rows_labels).value,
        "own": bench.classifier.accuracy(vectors, labels).value,
        "introduce": float(np.mean([bool(_INTRODUCES.search(each)) for each in texts])),
        "words": float(np.mean([len(each.split()) for each in texts])),
        "drafts": [[each.label, each.text] for each in made],
    }


def run(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, api.load_model("embedded"), 1)
    for _ in range(options.runs):
        for shown in (False, True):
            key = {"task": options.task, "shown": shown}
            if done(options.out, key) < options.runs:
                keep(options.out, key | line(bench, **({} if shown else {"exemplars": 0})))


COLUMNS = ("coverage", "tstr", "own", "introduce", "words")


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    found, rows = lines(options.file), list[list[object]]()
    for task in TASKS:
        for shown in (False, True):
            group = [each for each in found if (each["task"], each["shown"]) == (task, shown)]
            if group:
                figures = [cell(each[name] for each in group) for name in COLUMNS]
                rows.append([task, "exemplars" if shown else "none", len(group), *figures])
    print(markdown(["set", "shown", "runs", *COLUMNS], rows))


def main() -> None:
    parser, one, _ = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("task", choices=TASKS)
    one.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
