"""Tang et al.'s published setting and the planner's, at the same epsilon and the same compute (docs/results).

    python -m research.benchmarks.published_setting run DATA agnews --runs 5 --judge gemma-3-270m --out setting.jsonl
    python -m research.benchmarks.published_setting table setting.jsonl

Both write with `gaussian` from the same rows and are charged the same epsilon, by the same accountants, for as many
tokens. The published side samples anew for every token, in subsets (Tang et al. 2024, table 9); ours is what `plan`
ranks first within the prompt tokens that the published side takes. Each set is read with contextual calibration and
with a prior measured on private rows (`research/benchmarks/worth.py`). Fidelity is how surely a classifier of real test
rows finds a demonstration's label; perplexity is the judge's. A line is one run under a fresh key; lines are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.inference.models.catalogue import load_model
from mechanisms.records import Demonstration
from mechanisms.runs.events import RunCompleted
from mechanisms.runs.planner import Task, cost, options, ranked
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class
from research.benchmarks.worth import CALIBRATORS, DELTA, TASKS, Bench, done
from research.benchmarks.worth_table import cell
from research.commands import lines, run_and_table
from research.measures.measure import Measures

PUBLISHED = {
    "agnews": SamplingPlan(Scheme.PER_TOKEN, subsets=10, per_subset=2, unit_rows=False, tokens=100),
    "dbpedia": SamplingPlan(Scheme.PER_TOKEN, subsets=40, per_subset=2, unit_rows=False, tokens=100),
}
"""Tang et al. 2024, table 9, where the files here have rows enough; a demonstration a label, the top 100 tokens."""
CANDIDATES = 100
WORDS = 16
"""Tokens of a prompt beside its rows, as far as the planner is concerned."""
ARMS = "published", "ours"


class Sides:
    """Both settings for one task."""

    def __init__(self, bench: Bench, name: str, epsilon: float) -> None:
        self._bench, self._epsilon = bench, epsilon
        published = PUBLISHED[name]
        size, prompt = min(bench.dataset.counted_sizes().values()), bench.task.tokens + WORDS
        of_subsets = Task(size, published.tokens, published.per_subset * prompt, published.per_subset)
        self.budget = cost(published, of_subsets, DELTA)
        of_rows = Task(size, published.tokens, prompt)
        target = PrivacyTarget(epsilon, DELTA)
        best = ranked(list(options(mechanism_class("gaussian")(), of_rows, target, self.budget, points=1)))[0]
        self.plans = dict(zip(ARMS, (published, best.plan), strict=True))

    def request(self, arm: str) -> SynthesisRequest:
        """What one side runs, calibrated."""
        bench = self._bench
        return SynthesisRequest(
            labels=bench.labels,
            template=bench.template,
            plan=self.plans[arm],
            mechanism=mechanism_class("gaussian")(),
            target=PrivacyTarget(self._epsilon, DELTA),
            sizes=bench.dataset.counted_sizes(),
            content=fingerprint(bench.dataset).content,
            candidates=CANDIDATES,
            max_record_tokens=bench.task.tokens,
        ).calibrated()

    def written(self, request: SynthesisRequest) -> tuple[Demonstration, ...]:
        """One run."""
        for event in synthesize(self._bench.dataset, request, self._bench.model, PrivacyLedger()):
            if isinstance(event, RunCompleted):
                return event.demo_set.demonstrations
        raise AssertionError("a run ends with its set")


def run(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, load_model(options.model), options.tests, None)
    judge = load_model(options.judge) if options.judge else None
    measures, sides = (
        Measures(bench.labels, bench.test, bench.embedder, judge),
        Sides(bench, options.task, options.epsilon),
    )
    key = {name: getattr(options, name) for name in ("task", "model", "epsilon", "judge")}
    for number in range(options.runs):
        for arm in ARMS:
            of_arm = key | {"arm": arm}
            if done(options.out, of_arm) <= number:
                line = of_arm | {"budget": sides.budget} | _measured(bench, sides, arm, measures, options.epsilon)
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _measured(bench: Bench, sides: Sides, arm: str, measures: Measures, epsilon: float) -> dict[str, Any]:
    os.environ["DPICL_HOME"] = tempfile.mkdtemp()  # a fresh key, and an empty ledger
    bench.dataset = replace(bench.dataset)
    request, started = sides.request(arm), time.perf_counter()
    made = sides.written(request)
    seconds = time.perf_counter() - started
    private = random.SystemRandom().sample(list(bench.dataset.records), CALIBRATORS)
    read, found = bench.both_ways(made, private, epsilon), measures.of(made)
    return {
        "plan": [request.plan.scheme.value, request.plan.subsets, request.plan.per_subset],
        "signal_to_noise": request.mechanism.signal_to_noise(request.plan),
        "claimed": request.claim().epsilon,
        "seconds": round(seconds, 1),
        "contextual": read["contextual"],
        "prior": read["prior"],
        "fidelity": found.label_fidelity.value,
        "perplexity": found.perplexity,
        "demonstrations": [[each.label, each.text] for each in made],
    }


COLUMNS = ("signal_to_noise", "contextual", "prior", "fidelity", "perplexity", "seconds")


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    print("| task, model, epsilon | side | plan | runs |", " | ".join(each.replace("_", "-") for each in COLUMNS), "|")
    print("|---|---|---|---|" + "---|" * len(COLUMNS))
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in lines(options.file):
        setting = f"{line['task']}, {line['model']}, {line['epsilon']:g}"
        groups.setdefault((setting, line["arm"], _plan(line["plan"])), []).append(line)
    for (setting, arm, plan), group in groups.items():
        figures = " | ".join(cell([line[column] for line in group]) for column in COLUMNS)
        print(f"| {setting} | {arm} | {plan} | {len(group)} | {figures} |")


def _plan(plan: Sequence[Any]) -> str:
    scheme, subsets, per_subset = plan
    return f"{scheme}, M = {subsets}, N = {per_subset}"


def main() -> None:
    parser, one = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("task", choices=[name for name in TASKS if name in PUBLISHED])
    one.add_argument("--model", default="embedded")
    one.add_argument("--epsilon", type=float, default=1.0)
    one.add_argument("--judge", help="the model whose perplexity is told")
    one.add_argument("--tests", type=int, default=200)
    one.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
