"""`reproduce`: the papers' grid with any model, beside the figures that they report."""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.cli.output import add_json, progress, show
from mechanisms.files import atomic_write
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.inference.models.listing import EMBEDDED
from research.reproduction.cells import METHODS, VOTE, Cell, Grid, Setting
from research.reproduction.folder import Folder, Result
from research.reproduction.run import CellDone, CellKept, CellRefused, CellStarted, reproduce
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
    grid, folder = _grid(options), Folder(Path(options.out))
    model = load_model(options.model)
    results: list[Result] = []
    computed, refused = 0, dict[str, str]()
    for event in reproduce(grid, Path(options.data), folder, model, functools.cache(load_embedder)):
        match event:
            case CellStarted(cell, number, total):
                progress(f"cell {number} of {total}: {_words(cell)}")
            case CellKept(result):
                results.append(result)
            case CellDone(result):
                results.append(result)
                computed += 1
                progress(f"    accuracy {as_read(result).value:.3f}, {result.seconds:.0f} s")
                _write(folder, results, model, grid)
            case CellRefused(cell, reason):
                refused[_words(cell)] = reason
                progress(f"    left out: {reason}")
    _write(folder, results, model, grid)
    written = {"table": str(folder.path / "results.csv"), "page": str(folder.path / "table.md")}
    show(options, {"cells": len(results), "computed": computed, "refused": refused, **written})


def _write(folder: Folder, results: Sequence[Result], model: LanguageModel, grid: Grid) -> None:
    atomic_write(folder.path / "results.csv", tidy(results, model.name, grid.setting))
    atomic_write(folder.path / "table.md", page(results, model.name, grid.setting))


def _words(cell: Cell) -> str:
    return f"{cell.task}, {cell.method}, epsilon {cell.epsilon:g}, run {cell.run}"
