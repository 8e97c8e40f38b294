"""The table of research/docs/worth.md: means over runs of `research.benchmarks.worth`, half of their 95% interval.

python -m research.benchmarks.worth_table worth.jsonl
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from research.benchmarks.worth import TASKS
from research.commands import lines

COLUMNS = (
    ("zero-shot", "contextual"),
    ("zero-shot", "prior"),
    ("public-only", "contextual"),
    ("public-only", "prior"),
    ("real rows", "contextual"),
    ("real rows", "prior"),
    ("token by token", "contextual"),
    ("token by token", "prior"),
    ("voted", "contextual"),
    ("voted", "prior"),
    ("recipe", None),
)
BASELINES = ("zero-shot", "public-only", "voted")
"""What a choice is among, as far as every line has it; "voted" is the first set of winners."""


def table(files: Sequence[str]) -> None:
    """The table of research/docs/worth.md: means over runs, and half of their 95% interval."""
    print("| task, model, epsilon | runs |", " | ".join(" ".join(filter(None, each)) for each in COLUMNS), end=" ")
    print("| chosen | score |")
    print("|---|---|" + "---|" * (len(COLUMNS) + 2))
    for key, group in grouped(each for file in files for each in lines(file)):
        cells = [cell([_figure(line, *column) for line in group]) for column in COLUMNS]
        cells += [_chosen(group), f"{sum(map(_held, group))} of {len(group)}"]
        print(f"| {key} | {len(group)} |", " | ".join(cells), "|")


def regrets(files: Sequence[str]) -> None:
    """By how many points the exported set is below baselines that are read with a prior; means and half intervals."""
    print("\n| task, model, epsilon | runs | below the best of these | below", " | below ".join(BASELINES), "|")
    print("|---|---|---|" + "---|" * len(BASELINES))
    for key, group in grouped(each for file in files for each in lines(file)):
        below = [[100 * (line[name]["prior"] - line["recipe"]) for name in BASELINES] for line in group]
        columns = [[max(each) for each in below], *zip(*below, strict=True)]
        print(f"| {key} | {len(group)} |", " | ".join(_points(each) for each in columns), "|")


def _points(figures: Sequence[float]) -> str:
    half = f" ± {_half(figures):.1f}" if len(figures) > 1 else ""
    return f"{np.mean(figures):.1f}{half}"


def _chosen(group: Sequence[Mapping[str, Any]]) -> str:
    """How often each kind of set was chosen."""
    kinds = Counter(line["choice"]["chosen"].split(",")[0].rstrip(" 0123456789") for line in group)
    plain = sum(line["words"] == "Text" != TASKS[line["task"]].text for line in group)
    return ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) + (f" ({plain} plain)" if plain else "")


def _held(line: Mapping[str, Any]) -> bool:
    """Whether the private interval of the exported set holds its accuracy on the public rows."""
    arms = line["score"]["arms"]
    kind = {"none": "zero-shot", "public-only": "public-only"}.get(line["choice"]["chosen"], "demonstrations")
    low, high = arms[kind]["interval"]
    return bool(low <= line["recipe"] <= high)


def grouped(found: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    keys: dict[str, list[Mapping[str, Any]]] = {}
    for line in found:
        rows = f", {line['rows']} rows" if line["rows"] else ""
        sets = f", {line['sets']} sets" if "sets" in line else ""  # three, before they were told
        keys.setdefault(f"{line['task']}, {line['model']}, {line['target']:g}{rows}{sets}", []).append(line)
    order = {name: place for place, name in enumerate(TASKS)}
    yield from sorted(
        keys.items(), key=lambda item: (item[1][0]["model"], order[item[1][0]["task"]], item[1][0]["target"])
    )


def _figure(line: Mapping[str, Any], name: str, how: str | None) -> float | None:
    found = line.get(name)
    return found if how is None or found is None else found[how]


def cell(figures: Sequence[float | None]) -> str:
    known = [each for each in figures if each is not None]
    if not known:
        return "-"
    mean = f"{np.mean(known):.3f}".lstrip("0")
    return mean if len(set(known)) < 2 else f"{mean} ± {_half(known):.3f}".replace("± 0", "± ")


def _half(figures: Sequence[float]) -> float:
    """Half of the mean's 95% interval (Student)."""
    return float(student.ppf(0.975, len(figures) - 1) * np.std(figures, ddof=1) / np.sqrt(len(figures)))


if __name__ == "__main__":
    table(sys.argv[1:])
    regrets(sys.argv[1:])
