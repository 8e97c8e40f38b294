"""The tables and the figure of research/docs/ginc.md: means over runs, and half of their 95% interval.

python -m research.ginc.table docs/results/ginc.jsonl --figure docs/results/ginc.svg
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from research.lines import interval, lines

COLUMNS = {
    "one": "own concept after one",
    "all": "own concept after all four",
    "likeliest": "own concept likeliest",
    "impossible": "impossible under own",
    "distinct": "different texts of four",
    "accuracy": "accuracy of the next token",
}
Key = tuple[str, str, float]
"""A plan, a method, an epsilon."""


def grouped(found: Sequence[Mapping[str, Any]], name: str) -> dict[Key, list[float]]:
    """A figure of each run, the mean over its concepts; runs that lack a concept are omitted."""
    cells: dict[Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in found:
        cells[line["plan"], line["method"], line["epsilon"]][line["run"]].append(line[name])
    most = max((len(figures) for runs in cells.values() for figures in runs.values()), default=0)
    whole = {key: [float(np.mean(each)) for each in runs.values() if len(each) == most] for key, runs in cells.items()}
    return {key: figures for key, figures in whole.items() if figures}


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """One row for each plan, method and epsilon, in Markdown."""
    figures = {name: grouped(found, name) for name in COLUMNS}
    rows = [f"| plan | method | epsilon | runs | {' | '.join(COLUMNS.values())} |", "|---" * (4 + len(COLUMNS)) + "|"]
    for key in sorted(figures["one"], key=lambda each: (each[2], each[0])):
        plan, method, epsilon = key
        runs, told = len(figures["one"][key]), [_cell(*interval(figures[name][key])) for name in COLUMNS]
        rows.append(f"| {plan or '-'} | {method} | {_named(epsilon)} | {runs} | {' | '.join(told)} |")
    return "\n".join(rows)


def _named(epsilon: float) -> str:
    return "infinite" if math.isinf(epsilon) else f"{epsilon:g}"


def _cell(mean: float, half: float) -> str:
    return f"{mean:.3f}" if math.isinf(half) else f"{mean:.3f} ± {half:.3f}"


def differences(found: Sequence[Mapping[str, Any]], name: str) -> str:
    """The difference of each method from plain in the same plan, epsilon and run, in Markdown."""
    figures = grouped(found, name)
    rows = [f"| plan | method | epsilon | {COLUMNS[name]}, minus plain's |", "|---|---|---|---|"]
    for plan, method, epsilon in sorted(figures, key=lambda each: (each[2], each[0])):
        plain = figures.get((plan, "plain", epsilon))
        mine = figures[plan, method, epsilon]
        if plan and plain and method != "plain" and len(plain) == len(mine):
            mean, half = interval(np.subtract(mine, plain).tolist())
            rows.append(f"| {plan} | {method} | {_named(epsilon)} | {'+' * (mean >= 0)}{_cell(mean, half)} |")
    return "\n".join(rows)


def figure(found: Sequence[Mapping[str, Any]]) -> str:
    """The posterior of the own concept after one demonstration, one mark for each row of the table, as SVG."""
    figures = grouped(found, "one")
    keys = sorted(figures, key=lambda each: (each[2], each[0]))
    left, width, step = 260, 420, 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 40} {step * len(keys) + 60}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="16">Probability of the own concept after one demonstration (0.2: none)</text>',
    ]
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        x = left + width * tick
        parts.append(f'<path d="M{x:.0f} 26V{step * len(keys) + 34}" stroke="{"#888" if tick == 0.2 else "#ddd"}"/>')
        parts.append(f'<text x="{x:.0f}" y="{step * len(keys) + 50}" text-anchor="middle">{tick:g}</text>')
    for place, key in enumerate(keys):
        parts += _mark(key, figures[key], 42 + step * place, left, width)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _mark(key: Key, figures: Sequence[float], y: float, left: int, width: int) -> list[str]:
    plan, method, epsilon = key
    mean, half = interval(figures)
    colour = "#c2571a" if method.startswith("pta") else "#1f5fa8" if plan else "#555"
    named = f"{method}{f', {plan}' if plan else ''}, {'no privacy' if math.isinf(epsilon) else f'epsilon {epsilon:g}'}"
    low, high = (left + width * min(1.0, max(0.0, mean + sign * half)) for sign in (-1, 1))
    line = f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{colour}" stroke-width="2"/>' if math.isfinite(half) else ""
    return [
        f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{named}</text>',
        f'{line}<circle cx="{left + width * mean:.1f}" cy="{y}" r="4" fill="{colour}"/>',
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs")
    parser.add_argument("--figure")
    options = parser.parse_args()
    found = lines(options.runs)
    print(table(found), differences(found, "one"), differences(found, "accuracy"), sep="\n\n")
    if options.figure:
        Path(options.figure).write_text(figure(found), encoding="utf-8")


if __name__ == "__main__":
    main()
