"""A grid, cell by cell: what stands in the folder is not computed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import StudioError
from mechanisms.evaluation.evaluate import Accuracy, truth_of
from mechanisms.evaluation.reader import Arm, LocalReader, finished
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.records import Record
from research.reproduction.cells import Cell, Grid, Setting
from research.reproduction.folder import Folder, Result, Stamp
from research.reproduction.guard import take_as_public
from research.reproduction.making import Maker
from research.reproduction.tasks import TASKS, rows_of
from research.texts import answers

SLOT_TOKENS = 12
"""Of the phrase that fills a slot."""
EXACT = "exact"
"""The one reading of slots: the answer is just the phrase."""


@dataclass(frozen=True)
class CellKept:
    """A cell stood in the folder."""

    result: Result


@dataclass(frozen=True)
class CellStarted:
    """A cell is about to be computed, the `number`-th of all `total`."""

    cell: Cell
    number: int
    total: int


@dataclass(frozen=True)
class CellDone:
    """A cell has been computed and stands in the folder."""

    result: Result


@dataclass(frozen=True)
class CellRefused:
    """A cell cannot be computed, and why; a later call tries again."""

    cell: Cell
    reason: str


class _Data:
    """The files of a task, read when a cell needs them."""

    def __init__(self, folder: Path, name: str, setting: Setting) -> None:
        self.files = (folder / name / "train.csv", folder / name / "test.csv")
        self._name, self._setting = name, setting

    @cached_property
    def train(self) -> Sequence[Record]:
        rows = rows_of(self.files[0], TASKS[self._name])
        take_as_public(self._name, rows, PrivacyLedger(), train=True)
        return rows

    @cached_property
    def test(self) -> Sequence[Record]:
        rows = rows_of(self.files[1], TASKS[self._name], any_label=TASKS[self._name].slots)
        take_as_public(self._name, rows, PrivacyLedger(), train=False)
        drawn = np.random.default_rng(self._setting.seed).permutation(len(rows))[: self._setting.rows]
        return [rows[int(place)] for place in drawn]


def reproduce(
    grid: Grid, data: Path, folder: Folder, model: LanguageModel, embedder: Callable[[], Embedder]
) -> Iterator[CellStarted | CellKept | CellDone | CellRefused]:
    """Compute the cells that the folder lacks.

    Args:
        grid: what is asked for.
        data: a folder for each task, with `train.csv`, which plays the private file, and `test.csv`.
        folder: where results are kept.
        model: writes and reads.
        embedder: loads the embedder of the recipe "vote".

    Raises:
        UsageError: a file is not the task's, is private, or the folder holds cells of another model, data or setting.
        DataError: a file cannot be read.
    """
    maker, cells = Maker(model, embedder, grid.setting), list(grid.cells())
    tasks = {name: _Data(data, name, grid.setting) for name in grid.tasks}
    stamps = {name: Stamp.of(model, each.files, grid.setting) for name, each in tasks.items()}
    kept = {cell: folder.find(cell, stamps[cell.task]) for cell in cells}  # refused before anything is computed
    for number, cell in enumerate(cells, 1):
        if (result := kept[cell]) is not None:
            yield CellKept(result)
            continue
        yield CellStarted(cell, number, len(cells))
        train, test = tasks[cell.task].train, tasks[cell.task].test
        try:
            result = _computed(cell, maker, model, train, test)
        except StudioError as error:
            yield CellRefused(cell, str(error))
            continue
        folder.put(result, stamps[cell.task])
        yield CellDone(result)


def _computed(
    cell: Cell, maker: Maker, model: LanguageModel, train: Sequence[Record], test: Sequence[Record]
) -> Result:
    started, task = time.monotonic(), TASKS[cell.task]
    made = maker.make(cell, train)
    texts = [each.text for each in test]
    if task.slots:
        said = answers(model, made.template, made.demonstrations, texts, SLOT_TOKENS, task.max_record_tokens)
        right = sum(one.strip(" .").casefold() == each.label for one, each in zip(said, test, strict=True))
        found = {EXACT: Accuracy(right, len(test))}
    else:
        truth, arm = truth_of(task.labels, test), Arm(cell.method, made.demonstrations, made.prior)
        reading = LocalReader(model, task.max_record_tokens).answers(made.template, task.labels, arm, texts)
        found = {name: Accuracy(int((each == truth).sum()), len(truth)) for name, each in finished(reading).items()}
    shown = made.demonstrations if cell.releasable else ()
    return Result(cell, found, made.epsilon, time.monotonic() - started, shown)
