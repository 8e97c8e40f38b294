"""The effect of tau on the reading of a noisy vector: a table of research/docs/texts.md.

    python -m research.benchmarks.tokens run DATA agnews --out prior.jsonl
    python -m research.benchmarks.tokens table prior.jsonl

A line is one set written token by token, one demonstration per label, with all of epsilon. A tau of 1000 ignores the
public expectation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mechanisms import api
from mechanisms.records import Dataset
from mechanisms.runs.text import Gate
from research.benchmarks.worth import TASKS, Bench
from research.lines import Line, cell, done, keep, lines, markdown, run_and_table
from research.runs import texts_written

TAUS = (0.03, 0.05, 0.1, 0.2, 0.5, 1000.0)


def run(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, api.load_model("embedded"), tests=0)
    gate = Gate(bench.model, [row.text for row in bench.rows[:200]])
    dataset = Dataset(options.task, bench.labels, bench.rows)
    settings = {"label_words": {}, **bench.task.asked, "candidate_top_p": None, "min_tokens": None, "shots": 1}
    for _ in range(options.runs):
        for epsilon in options.epsilons:
            for tau in TAUS:
                key = {"task": options.task, "epsilon": epsilon, "rule": f"tau {tau:g}"}
                if done(options.out, key) >= options.runs:
                    continue
                read = {"temperature": 1.0, "top-p": 0.8, "prior-deviation": tau}
                made = texts_written(
                    dataset, bench.model, mechanism="gaussian", epsilon=epsilon, parameters=read, **settings
                ).demonstrations
                texts, labels = [each.text for each in made], [each.label for each in made]
                own = bench.classifier.accuracy(bench.embedder.embed(texts), labels).value
                refused = sum(gate.reason(text) is not None for text in texts) / len(texts)
                keep(options.out, key | {"texts": texts, "own": own, "refused": refused})


def table(options: argparse.Namespace) -> None:
    """The shares of texts that the gate refuses and that a classifier assigns to their own label, and an example."""
    found: dict[tuple[str, float, str], list[Line]] = {}
    for line in lines(options.file):
        found.setdefault((line["task"], line["epsilon"], line["rule"]), []).append(line)
    rows = [
        [*key, len(group), *(cell(line[each] for line in group) for each in ("refused", "own")), group[0]["texts"][0]]
        for key, group in found.items()
    ]
    print(markdown(["set", "epsilon", "rule", "runs", "refused", "own", "a text"], rows))


def main() -> None:
    parser, one, _ = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("task", choices=TASKS)
    one.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    one.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
