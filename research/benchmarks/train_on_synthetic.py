"""Train on synthetic, test on real: hundreds of demonstrations as training data (research/docs/measures.md).

    python -m research.benchmarks.train_on_synthetic run DATA agnews --texts 400 --runs 3 --out synthetic.jsonl
    python -m research.benchmarks.train_on_synthetic table synthetic.jsonl

Every arm is as many texts of each label. "real rows" are drawn anew in every run. "vote" spends all of epsilon on one
ballot of `--drafts` public drafts a label, in which every private row votes once: the texts are the drafts with the
most noisy votes (no correction, choice or score is paid for). "public-only" are the first drafts of the same ballot,
whom nobody judged. "token by token" is `gaussian`, per demonstration, 80 expected rows of at most 40 tokens, 20 tokens
a text, with epsilon for all texts together (about two hours of one core). An arm at an epsilon is a line of the file,
under a fresh key. Lines are kept, and a run that was cut off goes on: with new drafts, so that its "vote" and
"public-only" may then be of two ballots.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.data.sizes import units_of
from mechanisms.inference.models.catalogue import load_model
from mechanisms.noise import Floats, SecureRandomness
from mechanisms.records import Demonstration
from mechanisms.runs.drafts import write_drafts
from mechanisms.runs.voting import VoteCollector
from mechanisms.tallies import Votes
from research.benchmarks.worth import TASKS, Bench, done
from research.benchmarks.worth_table import cell
from research.commands import lines, run_and_table
from research.measures.copying import longest_copied
from research.measures.measure import Labelled, Measures

REAL, PUBLIC, VOTE, TOKENS = "real rows", "public-only", "vote", "token by token"
DRAFT_TOKENS = 40
SUBSETS, ROW_TOKENS, TOKENS_A_TEXT = 80, 40, 20


class Round:
    """One run of all arms: its ballot is written and voted on once, whatever epsilon the votes are released at."""

    def __init__(self, bench: Bench, shots: int, drafts: int) -> None:
        self._bench, self._shots, self._drafts = bench, shots, drafts

    def texts(self, arm: str, epsilon: float | None) -> Sequence[Labelled]:
        """The texts of an arm."""
        os.environ["DPICL_HOME"] = tempfile.mkdtemp()  # a fresh key, and an empty ledger
        bench = self._bench
        bench.dataset = replace(bench.dataset)
        if arm == REAL:
            return self._real()
        if arm == PUBLIC:
            return self._taken({label: range(self._shots) for label in bench.labels})
        assert epsilon is not None
        if arm == VOTE:
            return self._winners(epsilon)
        bench.task = replace(bench.task, shots=self._shots, tokens=ROW_TOKENS)
        return bench.written(epsilon, TOKENS_A_TEXT, SUBSETS)

    def _real(self) -> list[Labelled]:
        pick, rows = random.SystemRandom(), self._bench.dataset.records
        return [
            row
            for y in self._bench.labels
            for row in pick.sample([each for each in rows if each.label == y], self._shots)
        ]

    @cached_property
    def ballots(self) -> dict[str, tuple[str, ...]]:
        """Public drafts of each label, fewer where the model writes too few of use."""
        bench, found = self._bench, dict[str, tuple[str, ...]]()
        for y in bench.labels:
            taken = [each for drafts in found.values() for each in drafts]
            asked = (bench.model, bench.template, y, bench.labels, self._drafts, DRAFT_TOKENS, SecureRandomness())
            found[y] = write_drafts(*asked, taken=taken)
        return found

    @cached_property
    def _polls(self) -> VoteCollector:
        return VoteCollector(self._bench.embedder, self.ballots)

    @cached_property
    def _cast(self) -> Floats:
        """Every private row's vote, shape (rows, places)."""
        return np.array(list(self._polls.contributions(units_of(self._bench.dataset, 1))))

    def _winners(self, epsilon: float) -> list[Labelled]:
        noisy = self._polls.by_label(Votes(epsilon, by_user=False).release(self._cast, SecureRandomness()))
        return self._taken({y: np.argsort(-votes, kind="stable").tolist() for y, votes in noisy.items()})

    def _taken(self, order: Mapping[str, Sequence[int]]) -> list[Labelled]:
        return [
            Demonstration(self.ballots[y][place], y)
            for y in self._bench.labels
            for place in order[y][: min(self._shots, len(self.ballots[y]))]
        ]


def run(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, load_model(options.model), options.tests, options.rows)
    shots = options.texts // len(bench.labels)
    if not 1 <= shots <= options.drafts:
        raise SystemExit("--texts must be at least one a label, and --drafts a label at least as many as its texts.")
    key = {name: getattr(options, name) for name in ("task", "model", "rows", "texts", "drafts")}
    measures = Measures(bench.labels, bench.test, bench.embedder)
    for number in range(options.runs):
        fresh = Round(bench, shots, options.drafts)
        for arm, epsilon in _arms(options):
            of_arm = key | {"arm": arm, "epsilon": epsilon}
            if done(options.out, of_arm) <= number:
                started = time.perf_counter()
                texts = fresh.texts(arm, epsilon)
                line = (
                    of_arm
                    | {"seconds": round(time.perf_counter() - started, 1)}
                    | _figures(bench, measures, texts, arm)
                )
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _arms(options: argparse.Namespace) -> Iterator[tuple[str, float | None]]:
    """Cheap ones first."""
    yield from ((REAL, None), (PUBLIC, None))
    for arm in (VOTE, TOKENS):
        if arm in options.arms:
            yield from ((arm, epsilon) for epsilon in options.epsilons)


def _figures(bench: Bench, measures: Measures, texts: Sequence[Labelled], arm: str) -> dict[str, Any]:
    found = measures.of(texts)
    written = [] if arm == REAL else [[each.label, each.text] for each in texts]
    return {
        "found": len(texts),
        "trained_on": found.trained_on.value,
        "label_fidelity": found.label_fidelity.value,
        **{f"distinct_{n}": share for n, share in enumerate(found.distinct, 1)},
        "mauve": found.mauve,
        "longest_copied": _copied(bench, [text for _, text in written]) if written else None,
        "classifier_of_real_rows": measures.held_out.value,
        "demonstrations": written,
    }


def _copied(bench: Bench, texts: Sequence[str]) -> int:
    return longest_copied(texts, (row.text for row in bench.dataset.records)).words


COLUMNS = ("trained_on", "label_fidelity", "distinct_1", "distinct_2", "distinct_3", "mauve", "longest_copied")


def table(options: argparse.Namespace) -> None:
    """The table of research/docs/measures.md: means over runs, and half of their 95% interval."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines(options.file):
        epsilon = "" if line["epsilon"] is None else f", epsilon {line['epsilon']:g}"
        setting = f"{line['task']}, {line['model']}, {line['texts']} texts of {line['drafts']} drafts a label"
        rows = f", {line['rows']} rows" if line["rows"] else ""
        groups.setdefault(f"{setting}{rows} | {line['arm']}{epsilon}", []).append(line)
    print("| setting | arm | runs |", " | ".join(each.replace("_", " ") for each in COLUMNS), "|")
    print("|---|---|---|" + "---|" * len(COLUMNS))
    for name, group in groups.items():
        print(f"| {name} | {len(group)} |", " | ".join(cell([of[column] for of in group]) for column in COLUMNS), "|")


def main() -> None:
    parser, one = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("task", choices=TASKS)
    one.add_argument("--model", default="embedded")
    one.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    one.add_argument("--arms", nargs="*", choices=(VOTE, TOKENS), default=[VOTE, TOKENS], help="the private ones")
    one.add_argument("--texts", type=int, default=400, help="of all labels together")
    one.add_argument("--drafts", type=int, default=256, help="of each label in a ballot")
    one.add_argument("--runs", type=int, default=3)
    one.add_argument("--tests", type=int, default=1000)
    one.add_argument("--rows", type=int, help="private rows, for a small data set")
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
