"""The folder of a grid: one JSON file a cell, whole at all times, so that a grid that was cut off goes on."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.files import atomic_write
from mechanisms.inference import LanguageModel
from mechanisms.records import Demonstration
from research.reproduction.cells import Cell, Setting

_FORMAT = "dpicl-cell/2"
"""1: prompts and texts of version 0.2.0."""
_WORDS = {"model": "model", "files": "data", "setting": "setting"}


@dataclass(frozen=True)
class Stamp:
    """What a cell depends on beside its name: cells of another stamp are refused.

    Attributes:
        model: name and digest of the weights.
        files: digests of the task's two files, which are public.
    """

    model: tuple[str, str]
    files: tuple[str, str]
    setting: Setting

    @classmethod
    def of(cls, model: LanguageModel, files: tuple[Path, Path], setting: Setting) -> Stamp:
        """The stamp of a task's cells.

        Raises:
            UsageError: a file cannot be read.
        """
        try:
            one, other = (hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
        except OSError as error:
            raise UsageError(f"Cannot read '{error.filename}': DATA needs TASK/train.csv and TASK/test.csv.") from error
        return cls((model.name, model.sha256), (one, other), setting)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a cell's file."""
        return {"model": list(self.model), "files": list(self.files), "setting": asdict(self.setting)}


@dataclass(frozen=True)
class Result:
    """What a cell gave.

    Attributes:
        found: the accuracy in each reading.
        claimed: epsilon of the run; None where it promises nothing, or reads no private row.
        seconds: to make and to read it.
        demonstrations: none where they hold rows of the file.
    """

    cell: Cell
    found: Mapping[str, Accuracy]
    claimed: float | None
    seconds: float
    demonstrations: Sequence[Demonstration] = ()

    def to_json(self) -> dict[str, Any]:
        """As it stands in a file; infinity is "inf"."""
        cell = asdict(self.cell) | {"epsilon": f"{self.cell.epsilon:g}"}
        shown = [{"text": each.text, "label": each.label} for each in self.demonstrations]
        return {
            "format": _FORMAT,
            "cell": cell,
            "claimed_epsilon": self.claimed,
            "seconds": round(self.seconds, 1),
            "readings": {name: {"right": each.correct, "rows": each.total} for name, each in self.found.items()},
            **({"demonstrations": shown} if self.cell.releasable else {}),
        }


class Folder:
    """Results on disk.

    Raises:
        UsageError: the folder cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._cells = path, path / "cells"
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"Cannot write '{path}': choose another folder for --out.") from error

    def find(self, cell: Cell, stamp: Stamp) -> Result | None:
        """The result of a cell; None where it has not been computed.

        Raises:
            UsageError: the file is no such result, or was computed with something else.
        """
        path = self._file(cell)
        if not path.exists():
            return None
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            found, its = _result(document), document["stamp"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"'{path}' is no cell of a grid: remove it, or take another folder for --out.") from error
        mine = stamp.to_json()
        if differs := next((name for name in mine if its.get(name) != mine[name]), None):
            raise UsageError(f"'{path}' has another {_WORDS[differs]}: choose another folder for --out.")
        if found.cell != cell:
            raise UsageError(f"'{path}' holds another cell: remove it.")
        return found

    def put(self, result: Result, stamp: Stamp) -> None:
        """Keep a result."""
        document = result.to_json() | {"stamp": stamp.to_json()}
        atomic_write(self._file(result.cell), json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def _file(self, cell: Cell) -> Path:
        return self._cells / f"{cell.name}.json"


def _result(document: dict[str, Any]) -> Result:
    if document["format"] != _FORMAT:
        raise ValueError("another format")
    cell = document["cell"]
    epsilon = math.inf if cell["epsilon"] == "inf" else float(cell["epsilon"])
    return Result(
        Cell(cell["task"], cell["method"], epsilon, cell["run"]),
        {name: Accuracy(each["right"], each["rows"]) for name, each in document["readings"].items()},
        document["claimed_epsilon"],
        document["seconds"],
        tuple(Demonstration(each["text"], each["label"]) for each in document.get("demonstrations", ())),
    )
