"""The table of a grid: tidy, one line a cell and reading, kept in a file from which a run that was cut off goes on."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT, Accuracy
from mechanisms.evaluation.grid import Cell
from mechanisms.evaluation.reader import READINGS
from mechanisms.kept_file import keep


@dataclass(frozen=True)
class Origin:
    """What figures are of: those of another origin do not belong in one table.

    Attributes:
        set: digest of the demo set's file, which is public.
        test: keyed digest of the test rows: another machine has another key, and does not know them again.
        model: digest of the weights that read.
        public: digest of the public demonstrations: another build of the model may write others from the same seed.
        seed: of the orders, and of the public demonstrations; public.
        curator_only: the rows are somebody's, and the figures have no noise.
    """

    set: str
    test: str
    model: str
    public: str
    seed: str
    curator_only: str

    def differs_from(self, other: Origin) -> str | None:
        """The first thing in which another origin differs."""
        mine, its = asdict(self), asdict(other)
        return next((name for name in mine if mine[name] != its[name]), None)


@dataclass(frozen=True)
class Line:
    """One cell in one reading."""

    arm: str
    shots: str
    order: int
    reading: str
    accuracy: Accuracy

    def values(self) -> list[str]:
        """As the file has them, in the order of `COLUMNS`."""
        low, high = self.accuracy.interval
        counts = (self.accuracy.total, self.accuracy.correct)
        rates = (f"{each:.4f}" for each in (self.accuracy.value, low, high))
        return [*map(str, (self.arm, self.shots, self.order, self.reading, *counts)), *rates]


_ARMS = (ZERO_SHOT, PUBLIC_ONLY, PRIVATE)
_OF_A_LINE = ("arm", "shots", "order", "reading", "rows", "right", "accuracy", "low", "high")
_WORDS = {
    "set": "demo set",
    "test": "test file (or machine)",
    "model": "model",
    "public": "public-only set",
    "seed": "seed",
}
COLUMNS = (*_OF_A_LINE, *(each.name for each in fields(Origin)))


class Results:
    """The lines so far; with a path they are in a file at all times, whole.

    Raises:
        UsageError: the file is no such table, or one of another origin, or cannot be read or written.
    """

    def __init__(self, origin: Origin, path: Path | None = None) -> None:
        self._origin, self._path = origin, path
        self.lines: list[Line] = []
        if path is not None and path.exists():
            self.lines = list(_read(path, origin))

    def has(self, cell: Cell) -> bool:
        """Whether a cell stands in the table."""
        return any((line.arm, line.shots, line.order) == cell.key for line in self.lines)

    def add(self, cell: Cell, found: Mapping[str, Accuracy]) -> None:
        """Put a cell in the table, all its readings at once."""
        self.lines += [Line(*cell.key, reading, accuracy) for reading, accuracy in found.items()]
        if self._path is not None:
            keep(self._path, self.text())

    def text(self) -> str:
        """The table as CSV."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([*line.values(), *astuple(self._origin)] for line in self.lines)
        return out.getvalue()


def _read(path: Path, origin: Origin) -> Iterator[Line]:
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")), restval=""))
        found = [_line(row) for row in rows if set(row) == set(COLUMNS)]
        origins = {Origin(*(row[each.name] for each in fields(Origin))) for row in rows if set(row) == set(COLUMNS)}
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        raise _foreign(path) from error
    if not found or len(found) != len(rows):
        raise _foreign(path)
    for other in origins:
        if differs := origin.differs_from(other):
            of = _WORDS.get(differs, "kind of test file")
            raise UsageError(f"'{path}' holds figures of another {of}: choose another place for --out.")
    yield from found


def _line(row: Mapping[str, str]) -> Line:
    accuracy = Accuracy(int(row["right"]), int(row["rows"]))
    possible = 0 <= accuracy.correct <= accuracy.total and accuracy.total >= 1
    if not possible or row["arm"] not in _ARMS or row["reading"] not in READINGS:
        raise ValueError("no line of this table")
    return Line(row["arm"], row["shots"], int(row["order"]), row["reading"], accuracy)


def _foreign(path: Path) -> UsageError:
    return UsageError(f"'{path}' is no table that evaluate wrote: choose another place for --out.")
