"""The forecast of a run in stages beside what it took, by stage, on four shapes of data: for research/docs/engine.md.

    OMP_NUM_THREADS=1 python -m research.benchmarks.forecasts run --out forecasts.jsonl DATA "4 labels"
    python -m research.benchmarks.forecasts table forecasts.jsonl

DATA holds `agnews`, `dbpedia` and `trec` with a `train.csv` each; what the texts say does not matter. The settings are
those that step 2 proposes at epsilon 1. Time is the process's CPU time, of which a busy machine takes nothing away: for
the model's speed, and for the run. With `--wall` it is that of the clock. `--part` divides the rows that judge, the
rows that write and the drafts, so that a shape takes minutes; the labels and the lengths stay.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

from dpicl_ui.generate.pace import Pace, left, paced
from dpicl_ui.generate.run_view import RecipeView, reduce_recipe
from mechanisms.accounting import Cap, PrivacyLedger, PrivacyTarget
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.records import Dataset, Record
from mechanisms.runs.defaults import usual_recipe, usual_subsets
from mechanisms.runs.events import Drafting, RunCompleted, StageStarted, TokenReleased
from mechanisms.runs.forecast import ModelSpeed, measure_embedding, measure_speed
from mechanisms.runs.preview import suggested_delta
from mechanisms.runs.recipe import Recipe, Stage
from mechanisms.runs.recipe_forecast import seconds_by_part
from mechanisms.runs.recipe_request import RecipeRequest, has_stages
from mechanisms.runs.run import synthesize
from mechanisms.runs.spec import RunSpec
from research.commands import lines, run_and_table

ROWS, MANY_ROWS = 2000, 10_000
WORDS = 180
LARGEST = 0.6
ASKED_ABOUT = ("card", "transfer", "top-up", "exchange", "account", "cash withdrawal", "refund")
ASKED = ("arrival", "fee charged", "not working", "limit", "pending", "declined", "wrong amount", "support",
         "verification", "cancelled", "tracking")  # fmt: skip
NAMES = tuple(f"{about} {asked}" for about in ASKED_ABOUT for asked in ASKED)


def read(data: Path, name: str) -> list[tuple[str, str]]:
    with open(data / name / "train.csv", encoding="utf-8", newline="") as file:
        return [(row["text"], row["label"]) for row in csv.DictReader(file)]


def short(data: Path) -> list[tuple[str, str]]:
    """Four short labels."""
    return read(data, "agnews")[:ROWS]


def long(data: Path) -> list[tuple[str, str]]:
    """Five labels with texts of 180 words."""
    by_label: dict[str, list[str]] = {}
    for text, label in read(data, "dbpedia"):
        by_label.setdefault(label, []).extend(text.split())
    made = []
    for label in sorted(by_label)[:5]:
        words = by_label[label]
        made += [(" ".join(words[i : i + WORDS]), label) for i in range(0, len(words) - WORDS, WORDS)]
    return list(islice(cycle(made), ROWS))


def skewed(data: Path) -> list[tuple[str, str]]:
    """Twelve labels, of which the largest has 60%; long texts."""
    rows = read(data, "dbpedia")
    names = sorted({label for _, label in rows})[:12]
    rest = [(f"{a} {b}", label) for (a, label), (b, _) in pairwise(rows) if label in names]
    few = {name: [row for row in rest if row[1] == name] for name in names}
    many = [(f"{a} {b}", names[0]) for (a, _), (b, _) in zip(rows[5:], rows[:-5], strict=True)]
    share = int(ROWS * (1 - LARGEST) / 11)
    return [*many[: int(LARGEST * ROWS)], *(row for name in names[1:] for row in few[name][:share])]


def labels77(data: Path) -> list[tuple[str, str]]:
    """77 labels of short questions, 10,000 rows."""
    return list(islice(zip(cycle(text for text, _ in read(data, "trec")), cycle(NAMES), strict=False), MANY_ROWS))


SHAPES = {"4 labels": short, "5 labels, 180 words": long, "12 skewed labels": skewed, "77 labels": labels77}


def dataset_of(rows: Sequence[tuple[str, str]]) -> Dataset:
    names = tuple(dict.fromkeys(label for _, label in rows))
    return Dataset("shape", names, tuple(Record(text, label) for text, label in rows))


def request_for(dataset: Dataset, part: float) -> RecipeRequest:
    """What is proposed at epsilon 1, with only so much of the rows of each stage."""
    sizes = dataset.counted_sizes()
    target = PrivacyTarget(1.0, suggested_delta(sum(sizes.values())))
    subsets = max(4, round(part * usual_subsets(sizes)))
    request = RunSpec(target, recipe=usual_recipe(len(sizes)), subsets=subsets).request(dataset)
    assert has_stages(request)
    return replace(request, recipe=thinned(request.recipe, part)).calibrated()


def thinned(recipe: Recipe, part: float) -> Recipe:
    asked: dict[Stage, float] = {
        stage: part * share for stage, share in recipe.shares.items() if stage is not Stage.WRITE
    }
    return replace(recipe, shares={**recipe.shares, **asked}, drafts=max(4, round(part * recipe.drafts)))


Events = list[tuple[Any, float]]


def followed(dataset: Dataset, request: RecipeRequest, model: Any, embedder: Any, clock: Callable[[], float]) -> Events:
    """Each event of a run, and the seconds before it."""
    ledger = PrivacyLedger()
    ledger.set_cap("shape", "record", Cap(10.0, 1e-3))
    begun, events = clock(), []
    for event in synthesize(dataset, request, model, ledger, embedder=embedder):
        events.append((event, clock() - begun))
    return events


def told(shape: str, part: float, request: RecipeRequest, events: Events, speed: ModelSpeed) -> dict[str, Any]:
    """The forecast, what was said behind each stage's charge and end, and what it took."""
    forecast = seconds_by_part(request, speed)
    pace, view, said = Pace(forecast), RecipeView(), []
    took: dict[str, float] = {}
    name, since = "drafts", 0.0
    for event, now in events:
        pace, view = paced(pace, event, now), reduce_recipe(view, event)
        begins = isinstance(event, Drafting) and event.number == 1
        if begins or isinstance(event, StageStarted | RunCompleted):
            took[name] = took.get(name, 0.0) + now - since
            name, since = str(event.stage) if isinstance(event, StageStarted) else "drafts", now
        if isinstance(event, StageStarted | Drafting | TokenReleased) and (remaining := left(pace, view, now)):
            said.append((round(now, 1), remaining.bound, round(remaining.seconds, 1)))
    return {
        "shape": shape,
        "part": part,
        "forecast": {str(each or "drafts"): round(seconds, 1) for each, seconds in forecast.items()},
        "took": {each: round(seconds, 1) for each, seconds in took.items()},
        "said": said,
        "first_token": next((round(now, 1) for event, now in events if isinstance(event, TokenReleased)), None),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPICL_HOME"] = folder
        model, embedder = load_model("embedded"), load_embedder()
        clock = time.perf_counter if options.wall else time.process_time
        speed = measure_speed(model, clock)
        speed = replace(speed, embedded=measure_embedding(embedder, clock))
        dataset = dataset_of(SHAPES[options.shape](options.data))
        request = request_for(dataset, options.part)
        events = followed(dataset, request, model, embedder, clock)
    with open(options.out, "a", encoding="utf-8") as file:
        file.write(json.dumps(told(options.shape, options.part, request, events, speed)) + "\n")


def table(options: argparse.Namespace) -> None:
    print("| shape | part | forecast, s | took, s | of it | said while it ran, all, s | first token, s | peak, GiB |")
    print("|---|---|---|---|---|---|---|---|")
    for line in lines(options.file):
        forecast, took = (sum(line[each].values()) for each in ("forecast", "took"))
        whole = [now + seconds for now, bound, seconds in line["said"] if bound != "at least "]
        said = f"{min(whole):.0f} to {max(whole):.0f}" if whole else "-"
        cells = [line["shape"], f"{line['part']:g}", f"{forecast:.0f}", f"{took:.0f}", f"{forecast / took:.2f}", said]
        print("|", " | ".join([*cells, str(line["first_token"] or "-"), str(line["peak_gib"])]), "|")
        for stage, seconds in line["took"].items():
            print(f"|   {stage} | | {line['forecast'].get(stage, 0):.0f} | {seconds:.0f} | | | | |")


def main() -> None:
    parser, one = run_and_table(__doc__, run, table)
    one.add_argument("data", type=Path)
    one.add_argument("shape", choices=SHAPES)
    one.add_argument("--wall", action="store_true", help="time by the clock, on a quiet machine")
    one.add_argument("--part", type=float, default=1.0)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
