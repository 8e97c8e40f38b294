"""The papers' figures, transcribed, each with its table."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class Published:
    """One figure of a paper.

    Attributes:
        source, table: the paper, and the table.
        model: the paper's model.
        task, method, epsilon, shots: the cell; epsilon is 0 without private rows, infinite without privacy.
        accuracy, deviation: in [0, 1]; the deviation is over runs, None if the paper states none.
        runs: the number of runs; None if the table does not state it.
    """

    source: str
    table: str
    model: str
    task: str
    method: str
    epsilon: float
    accuracy: float
    deviation: float | None
    runs: int | None
    shots: int


@cache
def published() -> tuple[Published, ...]:
    """All figures, in the order of the file."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        Published(
            series["source"],
            series["table"],
            series["model"],
            task,
            series["method"],
            math.inf if epsilon == "inf" else float(epsilon),
            round(mean / 100, 6),
            None if deviation is None else round(deviation / 100, 6),
            series["runs"],
            0 if series["method"] == "zero-shot" else series.get("shots", 4),
        )
        for series in document["series"]
        for task, figures in series["figures"].items()
        for epsilon, (mean, deviation) in figures.items()
    )
