"""Measurements with one line per run, which continue after an interruption, and tables of means over runs."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

Act = Callable[[argparse.Namespace], None]
Line = Mapping[str, Any]


def lines(path: str) -> list[dict[str, Any]]:
    """The lines measured so far; none if there is no file yet."""
    file = Path(path)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def done(path: str, key: Line) -> int:
    """The number of lines with these values."""
    return sum(all(line.get(name) == value for name, value in key.items()) for line in lines(path))


def keep(path: str, line: Line) -> None:
    """Add a line."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def run_and_table(
    about: str | None, run: Act, table: Act
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser, Any]:
    """The whole parser, that of `run`, and the commands, for further arguments; the parsed options have `act`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("--out", required=True)
    one.set_defaults(act=run)
    shown = commands.add_parser("table")
    shown.add_argument("file")
    shown.set_defaults(act=table)
    return parser, one, commands


def interval(figures: Sequence[float]) -> tuple[float, float]:
    """The mean over runs, and half of its 95% interval (Student); infinite for a single run."""
    if len(figures) < 2:
        return float(np.mean(figures)), math.inf
    half = student.ppf(0.975, len(figures) - 1) * np.std(figures, ddof=1) / math.sqrt(len(figures))
    return float(np.mean(figures)), float(half)


def cell(figures: Iterable[float | None]) -> str:
    """The mean of the existing figures with its half interval, without zeros before the point."""
    known = [each for each in figures if each is not None]
    if not known:
        return "-"
    mean, half = interval(known)
    spread = f" ± {half:.3f}" if len(set(known)) > 1 else ""
    return re.sub(r"\b0\.", ".", f"{mean:.3f}{spread}")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table."""
    shown = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, each))} |" for each in shown)
