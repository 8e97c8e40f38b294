"""The recipes "vote" and "both", read alike, and what the outcome card says of each (research/docs/worth.md).

    python -m research.benchmarks.both_or_vote run DATA --out both_or_vote.jsonl
    python -m research.benchmarks.both_or_vote table both_or_vote.jsonl

A line is one run of a recipe as the app proposes it, under a fresh key, with the sentence that the outcome card makes
of its private score (`verdict`), and what public test rows say to each of the sentence's comparisons (`truth`). Where
the two recipes have as many lines of a set, they run one after the other as a pair, with the same public drafts: what
they differ in is then the recipe. Sets with the fewest lines come first. Lines are kept; a run that is cut off goes on.

"skewed" is made of DBpedia: three of its labels are one, "Person", with 60% of the rows, so that 12 are left. Its test
rows are the same number of each label, and its accuracies weigh them as the private rows have them.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import PUBLIC_ONLY, ZERO_SHOT, Score
from mechanisms.evaluation.evaluate import PRIVATE, verdict_of_score
from mechanisms.evaluation.reader import Arm, Classifier
from mechanisms.files import bundled
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.noise import Floats
from mechanisms.records import Dataset, PromptTemplate, Record, default_template
from mechanisms.rounding import rounded_up
from mechanisms.runs.advice import proposed
from mechanisms.runs.events import RunCompleted
from mechanisms.runs.preview import preview
from mechanisms.runs.recipe import Kind, Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import MIN_TOKENS, SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from mechanisms.tallies import Weighing
from research.benchmarks.worth import DELTA, TASKS, rows_of
from research.commands import lines, run_and_table
from research.remembering import Memory, Remembering

SKEWED, PEOPLE, LARGEST = "skewed", ("Artist", "Athlete", "Politician"), 0.6
SETS = ("sst2", "trec", "agnews", SKEWED, "dbpedia", "clinic", "bank")
BUNDLED = {"clinic": ("clinic_messages", "message", "department"), "bank": ("bank_support", "text", "topic")}
RECIPES = (Kind.VOTE, Kind.BOTH)
TOKENS = 24
"""Of a demonstration that rows write, as the app proposes it."""
NAMING = "naming the largest label"


@dataclass(frozen=True)
class Material:
    """A task: private rows, public test rows with their weights (they add up to 1), and how prompts put it."""

    private: Dataset
    test: Sequence[Record]
    weights: Floats
    template: PromptTemplate

    @property
    def truth(self) -> Floats:
        """Places of the test rows' labels."""
        return np.array([self.private.labels.index(each.label) for each in self.test])


def material(data: Path, name: str, rows: int, tests: int) -> Material:
    """A set, the same in every run."""
    task = TASKS["dbpedia" if name == SKEWED else name]
    if name in BUNDLED:
        # Their test files have 40 rows: what is read is the rows themselves.
        file, text, label = BUNDLED[name]
        with bundled(f"examples/{file}.csv").open(encoding="utf-8", newline="") as opened:
            train = [Record(row[text], row[label]) for row in csv.DictReader(opened)]
        test = train[:tests]
    elif name == SKEWED:
        train, test = skewed(rows_of(data / "dbpedia/train.csv"), rows_of(data / "dbpedia/test.csv"), rows, tests)
    else:
        train, test = rows_of(data / name / "train.csv"), rows_of(data / name / "test.csv")[:tests]
        train = train if name == "trec" else random.Random(1).sample(train, min(rows, len(train)))
    labels = tuple(sorted({each.label for each in train}))
    weights = np.full(len(test), 1 / len(test))
    if name == SKEWED:
        private, public = (Counter(each.label for each in found) for found in (train, test))
        weights = np.array([private[each.label] / len(train) / public[each.label] for each in test])
    return Material(Dataset(name, labels, train), test, weights, default_template(labels, task.text, task.label))


def skewed(train: Sequence[Record], test: Sequence[Record], rows: int, tests: int) -> tuple[list[Record], list[Record]]:
    """12 labels, the largest with 60% of the private rows and as many test rows as each other one."""
    merged = [[Record(each.text, _merged(each.label)) for each in found] for found in (train, test)]
    labels, shuffle = sorted({each.label for each in merged[0]}), random.Random(2)
    small = round(rows * (1 - LARGEST) / (len(labels) - 1))
    wanted = dict.fromkeys(labels, small) | {_merged(PEOPLE[0]): round(rows * LARGEST)}
    private, public = ({label: [each for each in found if each.label == label] for label in labels} for found in merged)
    kept = [each for label in labels for each in shuffle.sample(private[label], wanted[label])]
    asked = [each for label in labels for each in shuffle.sample(public[label], tests // len(labels))]
    return kept, asked


def _merged(label: str) -> str:
    return "Person" if label in PEOPLE else label


def request_of(dataset: Dataset, template: PromptTemplate, kind: Kind, epsilon: float) -> RecipeRequest:
    """What the app proposes for a recipe."""
    sizes, target = dataset.counted_sizes(), PrivacyTarget(epsilon, DELTA)
    recipe, content = proposed(kind, sizes, epsilon), fingerprint(dataset).content
    plan, mechanism = SamplingPlan(tokens=TOKENS), mechanism_class("gaussian")()
    writing = SynthesisRequest(
        labels=dataset.labels,
        template=template,
        plan=plan,
        mechanism=mechanism,
        target=target,
        sizes=sizes,
        content=content,
        min_tokens=MIN_TOKENS,
    )
    written = writing if Stage.WRITE in recipe.shares else None
    staged = RecipeRequest(
        labels=dataset.labels,
        template=template,
        recipe=recipe,
        target=target,
        sizes=sizes,
        content=content,
        written=written,
    )
    return preview(staged).request


class Bench:
    """One model, and the sets as they are asked for."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._material = partial(material, Path(options.data), rows=options.rows, tests=options.tests)
        self._model, self._embedder = load_model(options.model), Remembering(load_embedder())
        self._epsilon = options.epsilon

    def line(self, name: str, kind: Kind, memory: Memory) -> dict[str, Any]:
        """One run, and what public rows say to it."""
        os.environ["DPICL_HOME"] = tempfile.mkdtemp()  # a fresh key, and an empty ledger
        task = self._material(name)
        with memory.shared():
            started = time.perf_counter()
            made = self._made(task, kind)
            seconds = round(time.perf_counter() - started, 1)
            read = self._read(task, made)
        assert made.choice
        assert made.score
        shown = {arm: figures(task, scores) for arm, scores in read.items()}
        if made.demonstrations:
            shown[PRIVATE] = shown.pop(made.score.exported(False))
        if made.choice.chosen == PUBLIC_ONLY:
            shown[PUBLIC_ONLY] = shown[PRIVATE]
        arms, without = made.score.arms, not made.demonstrations
        share = made.majority[1] if made.majority else None
        sentence = verdict_of_score(made.score, without, share)
        return {
            "task": name,
            "recipe": str(kind),
            "epsilon": float(rounded_up(made.certificate.claim.epsilon, 3)),
            "seconds": seconds,
            "chosen": made.choice.chosen,
            "rows": len(task.test),
            "majority": round(float(naming(task, Weighing.ROWS)), 4),
            "arms": shown,
            "private_score": {arm: [round(x, 3) for x in (a.accuracy, *a.interval)] for arm, a in arms.items()},
            "weighing": str(made.score.weighing),
            "verdict": sentence,
            "truth": checked(task, made.score, without, share, read) if sentence else [],
        }

    def _made(self, task: Material, kind: Kind) -> DemoSet:
        dataset = replace(task.private)  # under the fresh key
        request = request_of(dataset, task.template, kind, self._epsilon)
        for event in synthesize(dataset, request, self._model, PrivacyLedger(), embedder=self._embedder):
            if isinstance(event, RunCompleted):
                return event.demo_set
        raise AssertionError("a run ends with its set")

    def _read(self, task: Material, made: DemoSet) -> dict[str, dict[str, Floats]]:
        """What each arm of the score answers to the test rows, by kind of correction: the run's own is "prior"."""
        assert made.choice
        assert made.score
        assert made.choice.public_only
        public, own = made.choice.public_only, made.score.exported(not made.demonstrations)
        arms = {
            ZERO_SHOT: Arm(ZERO_SHOT, (), made.choice.zero_shot, made.template),
            PUBLIC_ONLY: Arm(PUBLIC_ONLY, public.demonstrations, public.prior, public.template),
            own: Arm(own, made.demonstrations, made.prior, made.template),
        }
        return {name: self._answers(task, arm) for name, arm in arms.items()}

    def _answers(self, task: Material, arm: Arm) -> dict[str, Floats]:
        labels, cap = task.private.labels, RecipeRequest.max_record_tokens
        template = arm.template or task.template
        reader = Classifier(self._model, template, labels, arm.demonstrations, max_query_tokens=cap)
        scores = reader.log_probabilities([each.text for each in task.test])
        offset = reader.contextual if arm.prior is None else np.array([arm.prior[label] for label in labels])
        ways = {"raw": np.zeros(len(labels)), "calibrated": reader.contextual, "prior": offset}
        return {way: (scores + each).argmax(axis=1) == task.truth for way, each in ways.items()}


def figures(task: Material, right: Mapping[str, Floats]) -> dict[str, float]:
    """Accuracies of an arm, and the balanced one of its own correction."""
    found = {way: rate(task, each, Weighing.ROWS) for way, each in right.items()}
    return {way: round(x, 4) for way, x in (found | {"balanced": rate(task, right["prior"], Weighing.LABELS)}).items()}


def rate(task: Material, values: Floats, weighing: Weighing) -> float:
    """Mean over test rows, or over labels of the means of their rows."""
    if weighing is Weighing.ROWS:
        return float(task.weights @ values)
    return float(np.mean([values[task.truth == place].mean() for place in np.unique(task.truth)]))


def naming(task: Material, weighing: Weighing) -> float:
    """How often naming one label every time is right, at best."""
    return max(rate(task, task.truth == place, weighing) for place in np.unique(task.truth))


def checked(
    task: Material, score: Score, without: bool, majority: float | None, read: Mapping[str, Mapping[str, Floats]]
) -> list[dict[str, Any]]:
    """What the sentence says of each comparison, and by how much the exported set is better on the public test rows."""
    own, found = score.exported(without), []
    says = {name: gain.interval for name, gain in score.gains.items()}
    if majority is not None:
        low, high = score.arms[own].interval
        says[NAMING] = (low - majority, high - majority)
    for name, (low, high) in says.items():
        said = "better" if low > 0 else "worse" if high < 0 else "not shown"
        if name == NAMING:
            gain = rate(task, read[own]["prior"], score.weighing) - naming(task, score.weighing)
        else:
            apart = read[own]["prior"].astype(float) - read[name]["prior"].astype(float)
            gain = rate(task, apart, score.weighing)
        holds = None if said == "not shown" else gain > 0 if said == "better" else gain < 0
        found.append({"than": name, "said": said, "gain": round(gain, 4), "holds": holds})
    return found


def run(options: argparse.Namespace) -> None:
    """Go on until every set has so many lines of each recipe."""
    bench, zero_shot = Bench(options), dict[str, Memory]()
    while waiting := sorted(
        (name for name in options.sets if count(options.out, name) < options.draws), key=partial(count, options.out)
    ):
        name = waiting[0]
        behind = [kind for kind in RECIPES if drawn(options.out, name, kind) == count(options.out, name)]
        kept = zero_shot.setdefault(name, Memory())
        pair = Memory(scores=dict(kept.scores))
        for kind in behind:
            line = bench.line(name, kind, pair)
            place = {"draw": drawn(options.out, name, kind) + 1, "paired": len(behind) > 1}
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(line | place, ensure_ascii=False) + "\n")
        # Prompts without demonstrations come again; they are the shortest.
        kept.scores = {prompt: pair.scores[prompt] for prompt in sorted(pair.scores, key=len)[:2]}


def drawn(path: str, name: str, kind: Kind) -> int:
    """Lines of a set and a recipe."""
    return sum(line["task"] == name and line["recipe"] == kind for line in lines(path))


def count(path: str, name: str) -> int:
    """Lines that a set has of either recipe."""
    return min(drawn(path, name, kind) for kind in RECIPES)


COLUMNS = (("zero-shot", "prior"), ("public-only", "prior"), (None, "prior"), (None, "balanced"))


def table(options: argparse.Namespace) -> None:
    """The table of research/docs/worth.md: means over runs, and the lowest and highest of them."""
    found = lines(options.file)
    print(
        "| set | recipe | runs | majority | zero-shot | public-only | as exported | balanced | chosen | praise held |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in SETS:
        for kind in RECIPES:
            if group := [line for line in found if line["task"] == name and line["recipe"] == kind]:
                cells = [_cell([_figure(line, *column) for line in group]) for column in COLUMNS]
                majority = f"{np.mean([line['majority'] for line in group]):.3f}".lstrip("0")
                cells = [name, str(kind), str(len(group)), majority, *cells, _chosen(group), _held(group)]
                print("|", " | ".join(cells), "|")


def _figure(line: Mapping[str, Any], arm: str | None, way: str) -> float | None:
    arms = line["arms"]
    found = arms.get(arm or (PRIVATE if PRIVATE in arms else ZERO_SHOT))
    return found and float(found[way])


def _cell(figures: Sequence[float | None]) -> str:
    known = sorted(each for each in figures if each is not None)
    mean, low, high = (f"{x:.3f}".lstrip("0") for x in (np.mean(known), known[0], known[-1])) if known else "---"
    return f"{mean} ({low} to {high})" if len(known) > 1 else mean


def _chosen(group: Sequence[Mapping[str, Any]]) -> str:
    kinds = Counter(line["chosen"].split(",")[0].rstrip(" 0123456789") for line in group)
    return ", ".join(f"{kind} {times}" for kind, times in kinds.most_common())


def _held(group: Sequence[Mapping[str, Any]]) -> str:
    """Of all that runs said to be better, how much is better on the public rows."""
    said = [each["holds"] for line in group for each in line.get("truth", []) if each["said"] == "better"]
    return f"{sum(said)} of {len(said)}" if said else "-"


def main() -> None:
    """The command line."""
    parser, one = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("--model", default="embedded")
    one.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    one.add_argument("--epsilon", type=float, default=1.0)
    one.add_argument("--draws", type=int, default=5, help="of each recipe on each set")
    one.add_argument("--rows", type=int, default=4000, help="private rows of a large set")
    one.add_argument("--tests", type=int, default=400, help="public rows that are read")
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
