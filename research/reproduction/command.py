"""`reproduce`: a paper's table with any model, and the paper's figures for comparison."""

from __future__ import annotations

import argparse
import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from mechanisms.cli.options import add_json, progress, show
from mechanisms.errors import UsageError
from mechanisms.files import atomic_write
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.embedder import load_embedder
from mechanisms.inference.models.listed import EMBEDDED
from mechanisms.inference.models.loading import load_model
from research.reproduction.cells import Method, Preset
from research.reproduction.dry import told
from research.reproduction.presets import PRESETS
from research.reproduction.run import CellRefused, Result, reproduce
from research.reproduction.table import as_read, page, tidy
from research.reproduction.tasks import TASKS, training_rows
from research.reproduction.tiny import place, tiny


def add_commands(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("reproduce", help="a paper's table on public data sets, beside its figures")
    parser.add_argument("preset", choices=PRESETS, metavar="NAME", help=", ".join(PRESETS))
    parser.add_argument(
        "data", metavar="DATA", nargs="?", help="a folder with TASK/train.csv and TASK/test.csv; public"
    )
    parser.add_argument("--out", metavar="PLACE", help="cells, table and page; a cell in it is kept (default: NAME)")
    parser.add_argument("--model", default=EMBEDDED, help="writes, and reads")
    parser.add_argument("--reader", metavar="MODEL", help="reads in its place")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--dry-run", action="store_true", help="settings, epsilons and costs; of DATA it counts the labels"
    )
    kind.add_argument("--tiny", action="store_true", help="random weights and made-up rows: whether it runs")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, help="of the preset's data sets")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="of the preset's, or MECHANISM[+TRANSFORM]")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="E", help="0: public, inf: no privacy")
    parser.add_argument("--shots", nargs="+", type=int, metavar="N", help="demonstrations in a prompt")
    parser.add_argument("--runs", type=int, help="of each cell")
    parser.add_argument("--rows", type=int, help="test rows")
    parser.add_argument("--seed", type=int, help="public seed of test rows and prompts (default: 0)")
    add_json(parser)
    parser.set_defaults(run=_reproduce)


_OF_A_GRID = ("tasks", "methods", "epsilons", "shots", "runs", "rows", "seed", "reader")


def chosen(options: argparse.Namespace) -> Preset:
    """The preset with the values of the options.

    Raises:
        UsageError: a number is out of range, a method is unknown, or the preset lacks the data set or is another
            command.
    """
    preset = PRESETS[options.preset]
    given = [name for name in _OF_A_GRID if getattr(options, name) is not None]
    if preset.elsewhere and given:
        raise UsageError(f"'{preset.name}' is another command: leave out --{given[0]}, and see --dry-run.")
    if foreign := [task for task in options.tasks or () if task not in preset.settings]:
        raise UsageError(f"'{preset.name}' has not the data set {foreign[0]}: leave --tasks out.")
    said: dict[str, Any] = {
        "settings": {task: preset.settings[task] for task in options.tasks or preset.settings},
        "methods": {name: preset.methods.get(name) or Method.of(name) for name in options.methods or preset.methods},
        **{name: tuple(given) for name in ("epsilons", "shots") if (given := getattr(options, name))},
        **{name: given for name in ("runs", "rows", "seed") if (given := getattr(options, name)) is not None},
    }
    said["least_noise"] = tuple(name for name in preset.least_noise if name in said["methods"])
    return replace(preset, **said)


def _reproduce(options: argparse.Namespace) -> None:
    preset = chosen(options)
    if options.dry_run:
        print(told(preset, {task: _smallest(task, options.data) for task in preset.settings}))
    elif options.tiny:
        with place() as made:
            _run(tiny(preset), options, str(made.data), str(made.model), made.out / preset.name)
    elif options.data is None:
        raise UsageError("Give DATA, a folder with public data sets, or --dry-run, or --tiny.")
    else:
        _run(preset, options, options.data, options.model, Path(options.out or preset.name))


def _smallest(name: str, data: str | None) -> int:
    """The rows of the smallest label (all rows if labels are phrases); without files those of the whole set."""
    task = TASKS[name]
    if data is None:
        return task.smallest
    rows = training_rows(Path(data), name)
    return len(rows) if task.slots else min(Counter(each.label for each in rows).values())


def _run(preset: Preset, options: argparse.Namespace, data: str, model: str, out: Path) -> None:
    if not preset.elsewhere:
        _compute(preset, options, Path(data), load_model(model), out)
        return
    command = preset.elsewhere.command
    module, *arguments = (each.format(data=data, model=model, out=out) for each in command.split())
    progress(f"python -m {module} {' '.join(arguments)}")
    # A top-level import would be circular: the whole command line includes this command.
    import_module({"research": "research.__main__"}.get(module, module)).main(arguments)


def _compute(preset: Preset, options: argparse.Namespace, data: Path, model: LanguageModel, out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot write '{out}': choose another folder for --out.") from error
    reader = load_model(options.reader) if options.reader else model
    who = model.name if reader is model else f"{model.name}, read by {reader.name}"
    results: list[Result] = []
    refused = dict[str, str]()
    for found in reproduce(preset, data, out, model, functools.cache(load_embedder), progress, reader):
        if isinstance(found, CellRefused):
            refused[found.cell.words] = found.reason
            progress(f"    left out: {found.reason}")
        else:
            results.append(found)
            progress(f"{found.cell.words}: accuracy {as_read(found).value:.3f}, {found.seconds:.0f} s")
            _write(out, results, who, preset)
    written = {"table": str(out / "results.csv"), "page": str(out / "table.md")}
    show(options, {"cells": len(results), "refused": refused, **written})


def _write(out: Path, results: Sequence[Result], who: str, preset: Preset) -> None:
    atomic_write(out / "results.csv", tidy(results, who, preset))
    atomic_write(out / "table.md", page(results, who, preset))
