"""A preset end to end without a GPU, data or a model: with random weights, made-up rows and small sizes.

Its figures are meaningless; that it finishes shows that all parts work.
"""

from __future__ import annotations

import csv
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mechanisms.errors import UsageError
from research.gpu import SHAPES
from research.reproduction.cells import VOTE, Preset
from research.reproduction.tasks import TASKS

SHAPE = replace(SHAPES[-1], vocabulary=200)
ROWS, TOKENS, SUBSETS, SHOTS, TESTS = 40, 1, 100, 1, 2
"""Rows of a file, about; tokens of a demonstration; rows of a step at most, so that all rows join; shots of a prompt;
test rows."""
_FEWER = {
    "research attack": "--runs 1 --rows 2 --epsilons 8",
    "research films": "--records 1 --tokens 2 --subsets 4",
    "research.benchmarks.answers": "--questions 2",
    "research.reproduction.radius": "--tasks agnews mit_d --runs 1 --tokens 2",
}
"""Further options of other commands."""


class Place(NamedTuple):
    """Folders of made-up data, of a model, and for the output."""

    data: Path
    model: Path
    out: Path


@contextmanager
def place() -> Iterator[Place]:
    """All three folders, until the end of the `with` block."""
    with tempfile.TemporaryDirectory() as folder:
        found = Place(*(Path(folder) / each for each in Place._fields))
        SHAPE.saved(found.model)
        made_up(found.data)
        found.out.mkdir()
        yield found


def tiny(preset: Preset) -> Preset:
    """The preset with one run, at its least private epsilon and where it has them at 0 and infinity; of its data sets
    the first with labels and the first with phrases. `vote` is left out: random weights write no drafts.

    Raises:
        UsageError: the preset has no such form.
    """
    if preset.elsewhere:
        known = [options for command, options in _FEWER.items() if preset.elsewhere.command.startswith(command)]
        if not known:
            raise UsageError(f"'{preset.name}' has no tiny form: it reads with a model that is trained first.")
        command = f"{preset.elsewhere.command} {known[0]}"
        return replace(preset, elsewhere=replace(preset.elsewhere, command=command))
    first = {TASKS[task].slots: task for task in reversed([*preset.settings])}
    settings = {
        task: replace(each, tokens=TOKENS, subsets=SUBSETS)
        for task, each in preset.settings.items()
        if task in first.values()
    }
    private = [max(e for e in preset.epsilons if math.isfinite(e))]
    epsilons = tuple(e for e in preset.epsilons if e in (0, *private, math.inf))
    methods = {name: each for name, each in preset.methods.items() if name != VOTE}
    return replace(preset, settings=settings, methods=methods, epsilons=epsilons, shots=(SHOTS,), runs=1, rows=TESTS)


def made_up(folder: Path) -> None:
    """Write the files of all data sets, of words that the model knows."""
    for name, task in TASKS.items():
        for file, first in (("train", 3), ("test", 100)):
            each = ROWS // len(task.labels)
            rows = ((_words(first + each * i + j), label) for i, label in enumerate(task.labels) for j in range(each))
            _write(folder / name / f"{file}.csv", ("text", "label"), rows)
    questions = (("squad", "train", 40, 3), ("squad", "test", 10, 100))
    for name, file, count, first in questions:
        asked = ((_words(first + i), _words(first + i), f"w{3 + i}") for i in range(count))
        _write(folder / name / f"{file}.csv", ("context", "question", "answer"), asked)
    mails = ((f"{_words(3 + i)} w{3 + i}@w{4 + i}.com", f"w{3 + i}") for i in range(ROWS))
    _write(folder / "enron_aeslc" / "train.csv", ("text", "label"), mails)
    films = (json.dumps({"title": f"w{3 + i}", "year": 1990 + i, "genres": ["w3"]}) for i in range(ROWS))
    (folder / "wikimovies").mkdir()
    (folder / "wikimovies" / "movies.jsonl").write_text("\n".join(films), encoding="utf-8")


def _words(number: int) -> str:
    """A different text for each number."""
    return " ".join(f"w{3 + (number * step + step) % (SHAPE.vocabulary - 3)}" for step in (1, 7, 11, 17))


def _write(path: Path, columns: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
