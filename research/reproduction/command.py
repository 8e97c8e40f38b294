"""`reproduce`: the papers' grid with any model, beside the figures that they report."""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.cli.options import add_json, progress, show
from mechanisms.errors import UsageError
from mechanisms.files import atomic_write
from mechanisms.inference import LanguageModel
from mechanisms.inference.models import EMBEDDED
from mechanisms.inference.models.catalogue import load_embedder, load_model
from research.reproduction.cells import METHODS, VOTE, Grid, Setting
from research.reproduction.run import CellRefused, Result, reproduce
from research.reproduction.table import as_read, page, tidy
from research.reproduction.tasks import TASKS

SMALL = Grid(
    tasks=("agnews", "trec"),
    methods=("gaussian", VOTE),
    epsilons=(0.0, 1.0, 8.0, math.inf),
    runs=1,
    setting=Setting(rows=100, tokens=15, subsets=50),
)
"""Meant for half an hour on two cores with the embedded model; its figures say little."""


def add_commands(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("reproduce", help="the papers' grid on public data sets, beside their figures")
    parser.add_argument("data", metavar="DATA", help="a folder with TASK/train.csv and TASK/test.csv; public data only")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="cells, table and page; a cell in it is kept")
    parser.add_argument("--model", default=EMBEDDED)
    parser.add_argument("--small", action="store_true", help="two data sets, two methods, one run, 100 test rows")
    parser.add_argument("--tasks", nargs="+", choices=TASKS)
    parser.add_argument("--mechanisms", nargs="+", metavar="NAME[+TRANSFORM]", help=f"default: {', '.join(METHODS)}")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="E", help="0: public, inf: no privacy")
    parser.add_argument("--runs", type=int, help="of each cell (default: 5)")
    parser.add_argument("--rows", type=int, help="test rows (default: all)")
    parser.add_argument("--seed", type=int, help="public seed of test rows and prompts (default: 0)")
    add_json(parser)
    parser.set_defaults(run=_reproduce)


def _grid(options: argparse.Namespace) -> Grid:
    """What the options say; what they leave open is the whole grid's, or the small one's.

    Raises:
        UsageError: a number is out of range, or a method unknown.
    """
    usual = SMALL if options.small else Grid()
    rows = usual.setting.rows if options.rows is None else options.rows
    seed = usual.setting.seed if options.seed is None else options.seed
    return Grid(
        tuple(options.tasks or usual.tasks),
        tuple(options.mechanisms or usual.methods),
        tuple(options.epsilons or usual.epsilons),
        usual.runs if options.runs is None else options.runs,
        replace(usual.setting, rows=rows, seed=seed),
    )


def _reproduce(options: argparse.Namespace) -> None:
    grid, out = _grid(options), Path(options.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot write '{out}': choose another folder for --out.") from error
    model = load_model(options.model)
    results: list[Result] = []
    refused = dict[str, str]()
    for found in reproduce(grid, Path(options.data), out, model, functools.cache(load_embedder), progress):
        if isinstance(found, CellRefused):
            refused[found.cell.words] = found.reason
            progress(f"    left out: {found.reason}")
        else:
            results.append(found)
            progress(f"{found.cell.words}: accuracy {as_read(found).value:.3f}, {found.seconds:.0f} s")
            _write(out, results, model, grid)
    written = {"table": str(out / "results.csv"), "page": str(out / "table.md")}
    show(options, {"cells": len(results), "refused": refused, **written})


def _write(out: Path, results: Sequence[Result], model: LanguageModel, grid: Grid) -> None:
    atomic_write(out / "results.csv", tidy(results, model.name, grid.setting))
    atomic_write(out / "table.md", page(results, model.name, grid.setting))
