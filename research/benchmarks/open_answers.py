"""Demonstrations that say text to their text: exact answers and shared words, for research/docs/open_answers.md.

    python -m research.benchmarks.open_answers run DATA --tasks mit_g mit_d squad --runs 5 --out open.jsonl
    python -m research.benchmarks.open_answers table open.jsonl

"rows' answers" are token by token from private rows, text and output under one epsilon; "model's answers" are texts
that were written so for the same epsilon, and what the model says to them zero-shot. "public-only" has as many tokens
and no rows, "real rows" are drawn anew in every run. All read the same public test rows, greedily. A line of the file
is one arm of one run, under a fresh key; lines are kept, and a run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.data.columns import ColumnMapping as Columns
from mechanisms.data.columns import to_dataset
from mechanisms.data.sources import KIND, of_kind, read_table
from mechanisms.demos.demo_set import Answers, Outputs
from mechanisms.evaluation.open_answers import OpenScorecard, evaluate_open
from mechanisms.evaluation.reader import Arm
from mechanisms.inference.models.catalogue import load_model
from mechanisms.records import Dataset, Demonstration, PromptTemplate
from mechanisms.runs.events import RunCompleted
from mechanisms.runs.public_demonstrations import written_publicly
from mechanisms.runs.request import MIN_TOKENS, SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class
from research.benchmarks.worth import done
from research.benchmarks.worth_table import cell
from research.commands import lines, run_and_table

DELTA = 1e-5
ZERO, PUBLIC, REAL, ROWS, MODEL = "zero-shot", "public-only", "real rows", "rows' answers", "model's answers"


@dataclass(frozen=True)
class Task:
    """Columns of the file, what prompts call one row and its fields, and what they ask for."""

    text: str
    output: str
    kind: str
    template: PromptTemplate
    max_text: int = 48
    max_output: int = 12


def _of_films(output: str) -> Task:
    asked = f"Copy the {output.lower()} that each description of a film names."
    return Task("text", "label", "Film", PromptTemplate(asked, "Description", "Topic", output))


TASKS = {
    "mit_g": _of_films("Genre"),
    "mit_d": _of_films("Director"),
    "squad": Task(
        "question",
        "answer",
        "General knowledge",
        PromptTemplate("Answer each question in a few words.", "Question", "Topic", "Answer"),
        max_text=32,
        max_output=16,
    ),
}


def rows_of(path: Path, task: Task) -> Dataset:
    columns = Columns(task.text, KIND, output=task.output)
    return to_dataset(of_kind(read_table(path), task.kind), columns, path.parent.name, (task.kind,))


class Bench:
    """One task and one model."""

    def __init__(self, options: argparse.Namespace, name: str, model: Any) -> None:
        self.task, self.model, self.options = TASKS[name], model, options
        folder = Path(options.data) / name
        self.private = rows_of(folder / "train.csv", self.task)
        self.test = list(rows_of(folder / "test.csv", self.task).records)
        random.Random(0).shuffle(self.test)  # which public rows are read, the same in every run
        self.test = self.test[: options.tests]
        self.plan = SamplingPlan(
            Scheme.PER_DEMONSTRATION, subsets=options.subsets, tokens=options.tokens, shots=options.shots
        )

    def outputs(self, answers: Answers) -> Outputs:
        return Outputs(answers, self.options.output_tokens, self.task.max_output)

    def demonstrations(self, arm: str, epsilon: float | None) -> Sequence[Demonstration]:
        """The demonstrations of an arm, made anew."""
        if arm == ZERO:
            return ()
        if arm == REAL:
            drawn = random.SystemRandom().sample(list(self.private.records), self.plan.shots)
            return [Demonstration(each.text, each.label, each.output) for each in drawn]
        if arm == PUBLIC:
            like, labels = [Demonstration("", self.task.kind)] * self.plan.shots, (self.task.kind,)
            outputs, tokens = self.outputs(Answers.PRIVATE), self.plan.tokens
            least = min(MIN_TOKENS, tokens - outputs.charged)
            return written_publicly(like, labels, self.task.template, self.model, tokens, least, outputs=outputs)
        assert epsilon is not None
        return self.written(epsilon, Answers.PRIVATE if arm == ROWS else Answers.MODEL)

    def written(self, epsilon: float, answers: Answers) -> Sequence[Demonstration]:
        """Token by token from private rows."""
        os.environ["DPICL_HOME"] = tempfile.mkdtemp()  # a fresh key, and an empty ledger
        data, outputs = replace(self.private), self.outputs(answers)
        request = SynthesisRequest(
            labels=data.labels,
            template=self.task.template,
            plan=self.plan,
            mechanism=mechanism_class("gaussian")(),
            target=PrivacyTarget(epsilon, DELTA),
            sizes=data.counted_sizes(),
            content=fingerprint(data).content,
            candidates=50,
            max_record_tokens=self.task.max_text,
            min_tokens=min(MIN_TOKENS, self.plan.tokens - outputs.charged),
            outputs=outputs,
        ).calibrated()
        for event in synthesize(data, request, self.model, PrivacyLedger()):
            if isinstance(event, RunCompleted):
                return event.demo_set.demonstrations
        raise AssertionError("a run ends with its set")

    def figures(self, shown: Sequence[Demonstration]) -> dict[str, Any]:
        """How well the model answers the test rows behind these demonstrations."""
        limits = self.task.max_output, self.task.max_text
        for told in evaluate_open(self.model, self.task.template, [Arm("", shown)], self.test, *limits):
            if isinstance(told, OpenScorecard):
                return {"exact": told.exact.value, "f1": told.f1.value, "rows": told.exact.total}
        raise AssertionError("an evaluation ends with its scorecard")


def arms(epsilons: Sequence[float]) -> Iterator[tuple[str, float | None]]:
    """Cheap ones first."""
    yield from ((ZERO, None), (PUBLIC, None), (REAL, None))
    for arm in (ROWS, MODEL):
        yield from ((arm, epsilon) for epsilon in epsilons)


def run(options: argparse.Namespace) -> None:
    model = load_model(options.model)
    names = ("model", "subsets", "tokens", "output_tokens", "shots", "tests")
    for name in options.tasks:
        bench, key = Bench(options, name, model), {"task": name} | {each: getattr(options, each) for each in names}
        for number in range(options.runs):
            for arm, epsilon in arms(options.epsilons):
                own = key | {"arm": arm, "epsilon": epsilon}
                # The model alone says the same each time.
                if done(options.out, own) > (0 if arm == ZERO else number) or (arm == ZERO and number):
                    continue
                started = time.perf_counter()
                shown = bench.demonstrations(arm, epsilon)
                found = bench.figures(shown) | {"seconds": round(time.perf_counter() - started, 1)}
                texts = [] if arm == REAL else [[each.text, each.output] for each in shown]
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(own | found | {"demonstrations": texts}, ensure_ascii=False) + "\n")


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines(options.file):
        epsilon = "" if line["epsilon"] is None else f", epsilon {line['epsilon']:g}"
        plan = f"{line['shots']} of {line['tokens']} tokens, {line['subsets']} rows"
        setting = f"{line['task']}, {line['model']}, {plan}, {line['tests']} tests"
        groups.setdefault(f"{setting} | {line['arm']}{epsilon}", []).append(line)
    print("| setting | arm | runs | exact | F1 |\n|---|---|---|---|---|")
    for name, group in groups.items():
        print(
            f"| {name} | {len(group)} |", " | ".join(cell([of[each] for of in group]) for each in ("exact", "f1")), "|"
        )


def main() -> None:
    parser, one = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    one.add_argument("--model", default="embedded")
    one.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    one.add_argument("--subsets", type=int, default=100, help="expected private rows of a step")
    one.add_argument("--tokens", type=int, default=40, help="of a demonstration, both fields")
    one.add_argument("--output-tokens", type=int, default=8, help="of these, what is kept for the output")
    one.add_argument("--shots", type=int, default=4)
    one.add_argument("--runs", type=int, default=5)
    one.add_argument("--tests", type=int, default=200)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
