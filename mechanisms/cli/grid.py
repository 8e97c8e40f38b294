"""`evaluate` in cells: fewer shots and other orders, into a table that a run which was cut off goes on with."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mechanisms.accounting import fingerprint
from mechanisms.cli.output import check_apart, progress
from mechanisms.demos.demo_set import DemoSet
from mechanisms.evaluation.evaluate import Accuracy, arms_of, known_rows
from mechanisms.evaluation.grid import Line, Origin, Results, cells_of, grid_figure, most_shots, read_cell, write_plot
from mechanisms.files import check_writable
from mechanisms.inference import LanguageModel
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset
from mechanisms.runs.public_demonstrations import public_demonstrations

_DIGITS = 16
"""Of a digest, as the table shows it: enough to tell files apart."""


def add_grid_options(parser: argparse.ArgumentParser) -> None:
    """Shots, orders, the public seed, and where the table and the plot go."""
    group = parser.add_argument_group("cells", "the set with fewer shots and in other orders, a cell for each")
    group.add_argument(
        "--shots", type=int, nargs="+", metavar="S", help="demonstrations a label, as far as it has them"
    )
    group.add_argument("--orders", type=int, metavar="N", help="N random orders as well (default: its own order alone)")
    group.add_argument("--seed", type=int, help="public seed of the orders and of public-only (default: 0)")
    group.add_argument("--out", metavar="CSV", help="tidy table; a cell that stands in it is not computed again")
    group.add_argument("--plot", metavar="FILE.html", help="accuracy by shots, as one page")


def in_cells(options: argparse.Namespace) -> bool:
    """Whether any option of the grid is given."""
    return any(getattr(options, name) is not None for name in ("shots", "orders", "seed", "out", "plot"))


def check_grid(options: argparse.Namespace, read: Iterable[str] = ()) -> None:
    """Refuse numbers out of range, and places that cannot be written or are read, before a model is loaded.

    Raises:
        UsageError: see there.
    """
    cells_of((), *_numbers(options))
    for path in (options.out, options.plot):
        if path is not None:
            check_writable(path)
    check_apart(options.out, options.plot, but=read)


def _numbers(options: argparse.Namespace) -> tuple[list[int], int, int]:
    return options.shots or [], options.orders or 0, options.seed or 0


def read_in_cells(
    options: argparse.Namespace, text: str, demo_set: DemoSet, model: LanguageModel, test: Dataset, curator_only: bool
) -> dict[str, Any]:
    """Compute the cells that the table lacks, and give a summary.

    Args:
        options: what the command line says.
        text: the set's file.
        demo_set: the set, as the model reads it.
        model: what reads.
        test: the rows that are read.
        curator_only: some of them belong to a private data set.

    Raises:
        UsageError: the table is of another origin, or no test row has one of the labels.
    """
    known = known_rows(demo_set.labels, test.records)
    shots, orders, seed = _numbers(options)
    # Written from a public seed, so that a run that goes on reads the same ones; nothing private is drawn.
    public = public_demonstrations(demo_set, model, SeededRandomness(seed))
    arms = arms_of(demo_set, public)
    origin = Origin(
        set=_digest(text),
        test=fingerprint(test).content[:_DIGITS],  # keyed: its rows may be somebody's
        model=model.sha256[:_DIGITS],
        public=_digest(json.dumps([(each.text, each.label) for each in public])),
        seed=str(seed),
        curator_only="yes" if curator_only else "no",
    )
    results = Results(origin, Path(options.out) if options.out else None)
    cells = cells_of(arms, shots, orders, seed)
    for number in shots:
        if number > most_shots(arms):
            progress(f"--shots {number}: left out, the set has {most_shots(arms)} of some label")
    missing = [cell for cell in cells if not results.has(cell)]
    if kept := len(cells) - len(missing):
        progress(f"{kept} of {len(cells)} cells stand in '{options.out}' already")
    for number, cell in enumerate(missing, 1):
        name = f"cell {number} of {len(missing)}: {cell.arm.name}, shots {cell.shots}, order {cell.order}"
        results.add(cell, _read(read_cell(model, demo_set.template, demo_set.labels, cell, known), name, len(known)))
    wanted = {cell.key for cell in cells}
    lines = [line for line in results.lines if (line.arm, line.shots, line.order) in wanted]
    if options.plot:
        write_plot(Path(options.plot), grid_figure(lines, curator_only))
    return {"rows": len(known), "cells": len(cells), "computed": len(missing), "seed": seed, **_summary(lines)}


def _read(reading: Any, name: str, total: int) -> dict[str, Accuracy]:
    while True:
        try:
            progress(f"{name}, {next(reading)} of {total} rows")
        except StopIteration as ended:
            found: dict[str, Accuracy] = ended.value
            return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _summary(lines: Sequence[Line]) -> dict[str, Any]:
    """For each arm, number of shots and reading: the mean over the orders, and the worst and the best of them."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for line in lines:
        groups.setdefault((line.arm, line.shots, line.reading), []).append(line.accuracy.value)
    found: dict[str, Any] = {}
    for (arm, shots, reading), values in groups.items():
        spread = {"lowest": round(min(values), 4), "highest": round(max(values), 4)} if len(values) > 1 else {}
        mean = {"accuracy": round(sum(values) / len(values), 4), "orders": len(values)}
        found.setdefault(f"{arm}, shots {shots}", {})[reading] = mean | spread
    return found
