"""Runs a preset cell by cell; each cell is a line of `cells.jsonl` and is computed only once.

Its runs are charged to no ledger, so rows of private data sets must not take part.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.data.disclosures import SCORED
from mechanisms.errors import StudioError, UsageError
from mechanisms.evaluation.classifier import result_of
from mechanisms.evaluation.evaluate import Accuracy, truth_of
from mechanisms.evaluation.reader import Arm, LocalReader
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.records import Demonstration, Record
from research.lines import keep, lines
from research.reproduction.cells import Cell, Preset
from research.reproduction.making import Maker
from research.reproduction.tasks import TASKS, rows_of, take_as_public, training_rows
from research.texts import answers

SLOT_TOKENS = 12
"""The most tokens of a phrase that fills a slot."""
EXACT = "exact"
"""The one reading of slots: the answer is just the phrase."""


@dataclass(frozen=True)
class Result:
    """The result of a cell.

    Attributes:
        found: the accuracy in each reading.
        claimed: the run's epsilon; None without a guarantee or without private rows.
        noise: the calibrated parameter; None if there is none.
        seconds: the time to make and to evaluate it.
        demonstrations: none if they contain rows of the file.
    """

    cell: Cell
    found: Mapping[str, Accuracy]
    claimed: float | None
    seconds: float
    demonstrations: Sequence[Demonstration] = ()
    noise: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "cell": asdict(self.cell) | {"epsilon": f"{self.cell.epsilon:g}"},
            "claimed_epsilon": self.claimed,
            "noise": self.noise,
            "seconds": round(self.seconds, 1),
            "readings": {name: {"right": each.correct, "rows": each.total} for name, each in self.found.items()},
            "demonstrations": [asdict(each) for each in self.demonstrations],
        }

    @classmethod
    def of_json(cls, line: Mapping[str, Any]) -> Result:
        cell = line["cell"] | {"epsilon": float(line["cell"]["epsilon"])}
        found = {name: Accuracy(each["right"], each["rows"]) for name, each in line["readings"].items()}
        shown = tuple(Demonstration(**each) for each in line["demonstrations"])
        return cls(Cell(**cell), found, line["claimed_epsilon"], line["seconds"], shown, line["noise"])


@dataclass(frozen=True)
class CellRefused:
    """The reason why a cell cannot be computed; a later call tries again."""

    cell: Cell
    reason: str


class _Data:
    """The files of a task, read on demand."""

    def __init__(self, folder: Path, name: str, preset: Preset) -> None:
        self._train, self._test = folder / name / "train.csv", folder / name / "test.csv"
        self._folder, self._name, self._preset = folder, name, preset

    def stamp(self, *models: LanguageModel) -> str:
        """A digest of everything that the task's cells depend on besides their names.

        Raises:
            UsageError: a file cannot be read.
        """
        try:
            files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (self._train, self._test)]
        except OSError as error:
            raise UsageError(f"Cannot read '{error.filename}': DATA needs TASK/train.csv and TASK/test.csv.") from error
        preset = self._preset
        chosen = [preset.name, preset.rows, preset.seed, asdict(preset.settings[self._name])]
        told = [*((each.name, each.sha256) for each in models), *files, *chosen]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @cached_property
    def train(self) -> Sequence[Record]:
        return training_rows(self._folder, self._name)

    @cached_property
    def test(self) -> Sequence[Record]:
        rows = rows_of(self._test, TASKS[self._name], any_label=TASKS[self._name].slots)
        take_as_public(self._name, rows, SCORED)
        drawn = np.random.default_rng(self._preset.seed).permutation(len(rows))[: self._preset.tests(self._name)]
        return [rows[int(place)] for place in drawn]


def reproduce(
    preset: Preset,
    data: Path,
    out: Path,
    model: LanguageModel,
    embedder: Callable[[], Embedder],
    tell: Callable[[str], object] = lambda line: None,
    reader: LanguageModel | None = None,
) -> Iterator[Result | CellRefused]:
    """The preset's cells; those that `out` lacks are computed.

    Args:
        data: a folder for each task, with `train.csv`, which stands in for the private file, and `test.csv`.
        out: the folder of `cells.jsonl`.
        model: the model that writes.
        embedder: loads the embedder of the recipe "vote".
        tell: receives a line before a cell is computed.
        reader: the model that classifies; by default the model that writes.

    Raises:
        UsageError: a file is not the task's or is private, or `out` has cells of another preset, model, data or
            setting.
        DataError: a file cannot be read.
    """
    maker, cells, file = Maker(model, embedder, preset), list(preset.cells()), out / "cells.jsonl"
    reader = reader or model
    tasks = {name: _Data(data, name, preset) for name in preset.settings}
    stamps = {name: each.stamp(model, reader) for name, each in tasks.items()}
    kept: dict[Cell, Result] = {}
    for line in lines(str(file)):
        if line["stamp"] != stamps.get(line["cell"]["task"], line["stamp"]):
            raise UsageError(f"'{file}' has another preset, model, data or setting: choose another folder for --out.")
        result = Result.of_json(line)
        kept[result.cell] = result
    for number, cell in enumerate(cells, 1):
        if cell in kept:
            yield kept[cell]
            continue
        tell(f"cell {number} of {len(cells)}: {cell.words}")
        train, test = tasks[cell.task].train, tasks[cell.task].test
        try:
            result = _computed(cell, maker, reader, train, test)
        except StudioError as error:
            yield CellRefused(cell, str(error))
            continue
        keep(str(file), result.to_json() | {"stamp": stamps[cell.task]})
        yield result


def _computed(
    cell: Cell, maker: Maker, reader: LanguageModel, train: Sequence[Record], test: Sequence[Record]
) -> Result:
    started, task = time.monotonic(), TASKS[cell.task]
    made = maker.make(cell, train)
    texts = [each.text for each in test]
    if task.slots:
        said = answers(reader, made.template, made.demonstrations, texts, SLOT_TOKENS, task.max_record_tokens)
        right = sum(one.strip(" .").casefold() == each.label for one, each in zip(said, test, strict=True))
        found = {EXACT: Accuracy(right, len(test))}
    else:
        truth, arm = truth_of(task.labels, test), Arm(cell.method, made.demonstrations, made.prior)
        reading = LocalReader(reader, task.max_record_tokens).answers(made.template, task.labels, arm, texts)
        found = {name: Accuracy(int((each == truth).sum()), len(truth)) for name, each in result_of(reading).items()}
    shown = made.demonstrations if math.isfinite(cell.epsilon) else ()  # others hold rows of the file
    return Result(cell, found, made.epsilon, time.monotonic() - started, shown, made.noise)
