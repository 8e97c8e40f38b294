"""Does the planner propose what is good, and do rows choose what is right? Many runs on stored scores.

    python -m research.benchmarks.stored DATA FOLDER agnews sst2 trec --repeats 2
    python -m research.benchmarks.planner run FOLDER --rounds 10 --out planner.jsonl
    python -m research.benchmarks.planner table planner.jsonl

The stages that judge sets run as they are (`mechanisms.runs.stages`), but their model is a table of scores that were
read once. A run draws its rows anew, with replacement from the stored private ones, and all coins and noise. What it
exports is then measured on the stored test rows. The sets are given: what the vote's share is worth to them is not
simulated. A line of the file is a few runs; lines are kept, and runs that were cut off go on.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.noise import Floats, Integers
from mechanisms.runs.advice import fewest_for_roles, proposed
from mechanisms.runs.events import CandidateSet
from mechanisms.runs.judging import FITTED, preferences, step, targets
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from research.benchmarks.simulated import JUDGES, accuracy, simulated
from research.benchmarks.stored import Rows, Stored, all_stored
from research.commands import lines, run_and_table

SIZES, EPSILONS = (400, 8000), (0.5, 1.0, 4.0)
GAP, WITHIN = 0.05, 0.03
MEASUREMENTS = 3
DRAWS, FEWEST_DRAWS, MANY_PASSES = 10, 2, 10_000
"""Runs of a line; of what is proposed twice as many, and fewer where many rows are read."""

PROPOSED, AS_IT_IS = "as proposed", "as it is"
EPSILON_GRID = (
    (0.2, 0.2, 0.4, 0.2),
    (0.2, 0.5, 0.15, 0.15),
    (0.25, 0.25, 0.25, 0.25),
    (0.1, 0.5, 0.3, 0.1),
)
"""Shares of epsilon: vote, calibrate, choose, score."""
FEW_ROLES = ((0.2, 0.3, 0.25, 0.25), (0.1, 0.4, 0.4, 0.1))
"""Shares of 400 rows."""
MANY_ROLES = (
    (0.15, 0.02, 0.025, 0.016),
    (0.15, 0.06, 0.01, 0.016),
    (0.15, 0.08, 0.035, 0.032),
)
"""Shares of 8,000 rows; the last one reads twice as many as are proposed."""


def grid(sizes: Mapping[str, int], epsilon: float) -> Iterator[tuple[str, Recipe]]:
    """The planner's recipe, its recipe of the other division, and others."""
    few = sum(sizes.values()) < fewest_for_roles(len(sizes))
    first = proposed(Kind.VOTE, sizes, epsilon)
    yield PROPOSED, first
    for division, vectors in (
        (Division.EPSILON, EPSILON_GRID if few else ()),
        (Division.ROLES, FEW_ROLES if few else MANY_ROLES),
    ):
        if division is not first.division:
            other = proposed(Kind.VOTE, sizes, epsilon, division=division)
            yield f"{division}, {_vector(other)}", other
        for vector in vectors:
            shares = dict(zip((Stage.VOTE, *JUDGES), vector, strict=True))
            recipe = replace(first, division=division, shares=shares)
            yield f"{division}, {_vector(recipe)}", recipe


def _vector(recipe: Recipe) -> str:
    return " ".join(f"{recipe.shares[stage]:.2g}".lstrip("0") for stage in (Stage.VOTE, *JUDGES))


def worth_of_sets(stored: Stored, counts: Sequence[int], rows: Rows) -> Floats:
    """Each set's accuracy under the best of its corrections, fitted on all stored private rows without noise."""
    found = []
    for place, contextual in enumerate(stored.contextual):
        offsets = [np.zeros(len(stored.labels)), contextual]
        for correction in FITTED:
            offset, target = np.zeros(len(stored.labels)), targets(correction, counts)
            for _ in range(MEASUREMENTS):
                offset = offset + step(preferences(stored.private.scores[place], offset).sum(axis=0), target)
            offsets.append(offset)
        found.append(max(accuracy(rows, place, offset) for offset in offsets))
    return np.array(found)


def without(sets: Sequence[CandidateSet]) -> Integers:
    """Whether each set is "none"."""
    return np.array([not each.demonstrations for each in sets], dtype=np.int64)


def lead(stored: Stored, counts: Sequence[int], rows: Rows) -> tuple[float, float]:
    """By how much the best "none" is above the best of the other sets, and above the worst of them."""
    worth, none = worth_of_sets(stored, counts, rows), without(stored.sets) == 1
    return float(worth[none].max() - worth[~none].max()), float(worth[none].max() - worth[~none].min())


def cases(stored: Stored, counts: Sequence[int]) -> Iterator[tuple[str, Stored]]:
    """The task as it is, and two that are made of it: "none" more than 5 points above all others, or below them.

    A planted set answers a share of the rows with its scores moved on by one label. It is the same rows under each
    planted set, and the least share with which private and test rows both show the gap.
    """
    yield AS_IT_IS, stored
    none = without(stored.sets) == 1
    for title, spoilt in (("planted: best", ~none), ("planted: worst", none)):
        for share in np.arange(0.0, 1.0, 0.02):
            made = _spoilt(stored, spoilt, float(share))
            leads = [lead(made, counts, rows) for rows in (made.private, made.test)]
            if all(best > GAP if spoilt is not none else worst < -GAP for best, worst in leads):
                yield title, made
                break


def _spoilt(stored: Stored, sets: Any, share: float) -> Stored:
    def of(rows: Rows) -> Rows:
        scores = rows.scores.copy()
        mine = np.random.default_rng(0).permutation(len(rows.truth)) < share * len(rows.truth)
        scores[np.ix_(sets, mine)] = np.roll(scores[np.ix_(sets, mine)], 1, axis=2)
        return Rows(scores, rows.truth)

    return replace(stored, private=of(stored.private), test=of(stored.test))


def run(options: argparse.Namespace) -> None:
    repeats: dict[str, int] = defaultdict(int)
    made = []
    for each in all_stored(Path(options.folder)):
        repeats[each.task] += 1
        counts = np.bincount(each.private.truth, minlength=len(each.labels)).tolist()
        about = {"task": each.task, "repeat": repeats[each.task]}
        made += [(about | {"case": case}, counts, stored) for case, stored in cases(each, counts)]
    for number in range(1, options.rounds + 1):
        for about, counts, stored in made:
            for line in _measured(stored, counts, about, lines(options.out), number, options.epsilons):
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def _measured(
    stored: Stored,
    counts: Sequence[int],
    about: Mapping[str, Any],
    done: Sequence[Mapping[str, Any]],
    number: int,
    epsilons: Sequence[float],
) -> Iterator[dict[str, Any]]:
    worth, none = worth_of_sets(stored, counts, stored.test), without(stored.sets)
    best, worst = lead(stored, counts, stored.test)
    for rows, epsilon in product(SIZES, epsilons):
        sizes = dict(zip(stored.labels, [max(1, round(rows * each / sum(counts))) for each in counts], strict=True))
        for title, recipe in grid(sizes, epsilon):
            line = {**about, "rows": rows, "epsilon": epsilon, "recipe": title}
            known = sum(line.items() <= each.items() for each in done)
            if known >= number or (title != PROPOSED and about["case"] != AS_IT_IS):
                continue
            passes = _passes(recipe, rows, len(none))
            found = [simulated(stored, recipe, sizes, epsilon) for _ in range(_draws(title, passes))]
            yield line | {
                "accuracy": [each.accuracy for each in found],
                "below": [float(worth.max() - worth[each.chosen]) for each in found],
                "none": [int(none[each.chosen]) for each in found],
                "width": float(np.mean([each.width for each in found])),
                "passes": passes,
                "over_best": best,
                "over_worst": worst,
            }


def _passes(recipe: Recipe, rows: int, sets: int) -> int:
    """Rows that the model reads, once for each set: a set is not read twice for the same row."""
    if recipe.division is Division.EPSILON:
        return sets * rows
    calibrators, choosers, scorers = (round(rows * recipe.shares[stage]) for stage in JUDGES)
    return 2 * calibrators + sets * choosers + 3 * scorers


def _draws(title: str, passes: int) -> int:
    return 2 * DRAWS if title == PROPOSED else FEWEST_DRAWS if passes > MANY_PASSES else DRAWS


def table(options: argparse.Namespace) -> None:
    """The tables of research/docs/worth.md."""
    found = lines(options.file)
    for rows in SIZES:
        print(f"\n**{rows:,} rows**\n")
        _grid_table([line for line in found if line["rows"] == rows and line["case"] == AS_IT_IS])
    print()
    _gap_table([line for line in found if line["case"] == AS_IT_IS])
    print()
    _choice_table(found)


def _grid_table(found: Sequence[Mapping[str, Any]]) -> None:
    """Means over tasks."""
    _head("division; vote, calibrate, choose, score", *_each("accuracy, {}"), *_each("width, {}"), "row passes")
    for recipe in dict.fromkeys(line["recipe"] for line in found):
        mine = [line for line in found if line["recipe"] == recipe]
        parts = [[line for line in mine if line["epsilon"] == epsilon] for epsilon in EPSILONS]
        accuracies = [np.mean([np.mean(each) for each in _by_task(part).values()]) for part in parts]
        widths = [np.mean([line["width"] for line in part]) for part in parts]
        _row(recipe, *map(_rate, accuracies), *map(_rate, widths), f"{max(line['passes'] for line in mine):,}")


def _gap_table(found: Sequence[Mapping[str, Any]]) -> None:
    """How far what is proposed is below the best of the grid, in points, with 95% intervals."""
    _head("task, rows", *_each("{}"))
    for task, rows in product(dict.fromkeys(line["task"] for line in found), SIZES):
        cells = []
        for epsilon in EPSILONS:
            about = {"task": task, "rows": rows, "epsilon": epsilon}.items()
            recipes: dict[str, list[float]] = defaultdict(list)
            for line in (each for each in found if about <= each.items()):
                recipes[line["recipe"]] += line["accuracy"]
            if not recipes:  # a file that is not finished
                cells.append("-")
                continue
            best = max(recipes, key=lambda each: np.mean(recipes[each]))
            gap = np.mean(recipes[best]) - np.mean(recipes[PROPOSED])
            error = np.sqrt(sum(np.var(recipes[each], ddof=1) / len(recipes[each]) for each in {best, PROPOSED}))
            cells.append("best" if best == PROPOSED else f"{100 * gap:.1f} ± {196 * error:.1f} ({best})")
        _row(f"{task}, {rows:,}", *cells)


def _choice_table(found: Sequence[Mapping[str, Any]]) -> None:
    """What is chosen by the recipe that is proposed: where "none" is best, worst, or neither, on the test rows."""
    _head('"none" is', "rows", "tasks", *_each("{}: none chosen, points below best, within 3"))
    for title, case in product(("best by more than 5 points", "worst by as much", "neither"), ("as it is", "planted")):
        for rows in SIZES:
            mine = [
                line
                for line in found
                if _standing(line) == title
                and line["case"].startswith(case)
                and line["recipe"] == PROPOSED
                and line["rows"] == rows
            ]
            if not mine:
                continue
            cells = []
            for epsilon in EPSILONS:
                part = [line for line in mine if line["epsilon"] == epsilon]
                none, below = (np.concatenate([line[each] for line in part]) for each in ("none", "below"))
                close = np.mean(below <= WITHIN + 1e-9)
                cells.append(f"{none.mean():.0%}, {100 * below.mean():.1f}, {close:.0%}")
            tasks = len({(line["task"], line["repeat"]) for line in mine})
            _row(f"{title}, {case}", f"{rows:,}", str(tasks), *cells)


def _standing(line: Mapping[str, Any]) -> str:
    if line["over_best"] > GAP:
        return "best by more than 5 points"
    return "worst by as much" if line["over_worst"] < -GAP else "neither"


def _by_task(found: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    tasks: dict[str, list[float]] = defaultdict(list)
    for line in found:
        tasks[line["task"]] += line["accuracy"]
    return tasks


def _each(text: str) -> list[str]:
    return [text.format(f"epsilon {epsilon:g}") for epsilon in EPSILONS]


def _rate(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def _head(*cells: str) -> None:
    _row(*cells)
    print("|" + "---|" * len(cells))


def _row(*cells: str) -> None:
    print("|", " | ".join(cells), "|")


def main() -> None:
    parser, one = run_and_table(__doc__, run, table)
    one.add_argument("folder")
    one.add_argument("--rounds", type=int, default=10)
    one.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
