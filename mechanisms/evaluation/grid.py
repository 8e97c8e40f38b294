"""A set with fewer shots and in other orders: the grid's cells, its table in a file, and its page."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from mechanisms import confidence
from mechanisms.accounting import fingerprint
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT, Accuracy, truth_of
from mechanisms.evaluation.reader import CONTEXTUAL, PRIOR, RAW, READINGS, Arm, LocalReader, reported
from mechanisms.files import atomic_write
from mechanisms.inference import LanguageModel
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record

# A set with fewer shots and in other orders: the cells of a grid, each read on all test rows under one prompt.
#
# Everything random here is public. Demonstrations are released before, so that which of them are read, and in which
# order, follows from a public seed and protects nothing.

WHOLE = "all"
OWN_ORDER = 0


@dataclass(frozen=True)
class Grid:
    """What is asked for, see `cells_of`; public.

    Raises:
        UsageError: a number is out of range.
    """

    shots: tuple[int, ...] = ()
    orders: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        cells_of((), self.shots, self.orders, self.seed)


@dataclass(frozen=True)
class Cell:
    """One prompt.

    Attributes:
        arm: what is read; it has a measured correction only where that was measured under this very prompt.
        shots: demonstrations a label, or "all".
        order: 0 is the set's own order, another number the public permutation of that number.
    """

    arm: Arm
    shots: str
    order: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What a cell is known by in a table."""
        return self.arm.name, self.shots, self.order


def most_shots(arms: Iterable[Arm]) -> int:
    """The most demonstrations a label that every arm with demonstrations has; 0 where there is none."""
    return min((_fewest(arm) for arm in arms if arm.demonstrations), default=0)


def _fewest(arm: Arm) -> int:
    return min(Counter(each.label for each in arm.demonstrations).values())


def cells_of(arms: Sequence[Arm], shots: Sequence[int] = (), orders: int = 0, seed: int = 0) -> tuple[Cell, ...]:
    """The grid: zero-shot once, every other arm with each number of shots in its own order and in random ones.

    Of one order the first demonstrations of each label are read, so that fewer shots are a part of more.

    Args:
        arms: in the order in which they are read.
        shots: demonstrations a label; what an arm does not have of every label is left out; none: all there are.
        orders: random orders, beside the own one.
        seed: public: nothing private is drawn.

    Raises:
        UsageError: a number is out of range.
    """
    if any(each < 1 for each in shots) or orders < 0 or seed < 0:
        raise UsageError("--shots must be at least 1, --orders and --seed at least 0.")
    return tuple(cell for arm in arms for cell in _cells(arm, shots, orders, seed))


def _cells(arm: Arm, shots: Sequence[int], orders: int, seed: int) -> Iterable[Cell]:
    if not arm.demonstrations:
        yield Cell(arm, "0", OWN_ORDER)
        return
    parts = {str(each): each for each in dict.fromkeys(shots) if each <= _fewest(arm)}
    for name, most in parts.items() if shots else [(WHOLE, len(arm.demonstrations))]:
        for order in range(orders + 1):
            shown = first_of_each(_ordered(arm.demonstrations, seed, order), most)
            # A correction is measured under one prompt: it says nothing of a part of it, nor of another order.
            same = shown == tuple(arm.demonstrations)
            yield Cell(replace(arm, demonstrations=shown, prior=arm.prior if same else None), name, order)


def _ordered(demonstrations: Sequence[Demonstration], seed: int, order: int) -> list[Demonstration]:
    if order == OWN_ORDER:
        return list(demonstrations)
    return [demonstrations[i] for i in np.random.default_rng([seed, order]).permutation(len(demonstrations))]


def first_of_each(demonstrations: Sequence[Demonstration], most: int) -> tuple[Demonstration, ...]:
    """The first so many of each label, in their order."""
    seen: Counter[str] = Counter()
    kept = []
    for each in demonstrations:
        seen[each.label] += 1
        if seen[each.label] <= most:
            kept.append(each)
    return tuple(kept)


def read_cell(
    model: LanguageModel, template: PromptTemplate, labels: Sequence[str], cell: Cell, known: Sequence[Record]
) -> Generator[int, None, dict[str, Accuracy]]:
    """The accuracy of a cell in every reading; tells how many rows are done.

    Args:
        known: test rows that have one of the labels.
    """
    found = yield from LocalReader(model).answers(
        cell.arm.template or template, labels, cell.arm, [record.text for record in known]
    )
    truth = truth_of(labels, known)
    return {reading: Accuracy(int((each == truth).sum()), len(truth)) for reading, each in found.items()}


# The table of a grid: tidy, one line a cell and reading, kept in a file from which a run that was cut off goes on.


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
            atomic_write(self._path, self.text())

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


# The whole grid, cell by cell, each in the table as soon as it is read.

_DIGITS = 16
"""Of a digest, as the table shows it: enough to tell files apart."""


@dataclass(frozen=True)
class GridBegun:
    """How many cells there are, how many of them the table lacks, and the most shots that every arm has."""

    cells: int
    missing: int
    most_shots: int


@dataclass(frozen=True)
class CellProgress:
    """Rows done of a cell, the one of that number among the cells that the table lacked."""

    cell: Cell
    number: int
    missing: int
    done: int
    rows: int


@dataclass(frozen=True)
class GridRead:
    """The lines of the cells that were asked for, and how many cells were computed now.

    Attributes:
        rows: test rows that have one of the labels.
    """

    lines: list[Line]
    rows: int
    cells: int
    computed: int


def origin_of(
    text: str, test: Dataset, model: LanguageModel, public: Sequence[Demonstration], grid: Grid, curator_only: bool
) -> Origin:
    """What a grid's figures are of.

    Args:
        text: the demo set's file.
    """
    return Origin(
        set=_digest(text),
        test=fingerprint(test).content[:_DIGITS],  # keyed: its rows may be somebody's
        model=model.sha256[:_DIGITS],
        public=_digest(json.dumps([(each.text, each.label) for each in public])),
        seed=str(grid.seed),
        curator_only="yes" if curator_only else "no",
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def read_grid(
    model: LanguageModel, demo_set: DemoSet, arms: Sequence[Arm], known: Sequence[Record], grid: Grid, results: Results
) -> Iterator[GridBegun | CellProgress | GridRead]:
    """Read the cells that the table lacks.

    Args:
        arms: the set, as the model reads it, beside its baselines.
        known: test rows that have one of the labels.
        results: the table; gets the cells.
    """
    cells = cells_of(arms, grid.shots, grid.orders, grid.seed)
    missing = [cell for cell in cells if not results.has(cell)]
    yield GridBegun(len(cells), len(missing), most_shots(arms))
    for number, cell in enumerate(missing, 1):
        reading = read_cell(model, demo_set.template, demo_set.labels, cell, known)
        told = partial(CellProgress, cell, number, len(missing), rows=len(known))
        results.add(cell, (yield from reported(reading, told)))
    wanted = {cell.key for cell in cells}
    lines = [line for line in results.lines if (line.arm, line.shots, line.order) in wanted]
    yield GridRead(lines, len(known), len(cells), len(missing))


# A grid as a page that loads nothing from elsewhere: accuracy by shots, one line an arm and reading.

_COLOURS = {ZERO_SHOT: "#7c8592", PUBLIC_ONLY: "#c9822b", PRIVATE: "#1a8f85"}
_DASHES = {RAW: "dot", CONTEXTUAL: "dash", PRIOR: "solid"}
_ALONE = "for the curator alone: figures without noise on rows of a private data set"
_AXIS = {"zeroline": False, "showgrid": True, "gridcolor": "#e6e9ed"}


def grid_figure(lines: Sequence[Line], curator_only: bool = False) -> go.Figure:
    """Means over the orders by demonstrations a label; bars reach from the worst order's interval to the best one's."""
    shots = sorted({line.shots for line in lines}, key=lambda each: (not each.isdigit(), each.zfill(9)))
    figure = go.Figure(list(_traces(lines, shots)))
    figure.update_layout(
        template="none",
        font={"family": "system-ui, sans-serif", "size": 14},
        title={"text": _ALONE} if curator_only else None,
        xaxis=_AXIS | {"type": "category", "categoryarray": shots, "title": {"text": "demonstrations a label"}},
        yaxis=_AXIS | {"title": {"text": f"accuracy, with {confidence.percent()} intervals"}, "range": [0, 1]},
    )
    return figure


def _traces(lines: Sequence[Line], shots: Sequence[str]) -> Iterator[go.Scatter]:
    for arm, reading in dict.fromkeys((line.arm, line.reading) for line in lines):
        own = [line for line in lines if (line.arm, line.reading) == (arm, reading)]
        groups = {each: [line.accuracy for line in own if line.shots == each] for each in shots}
        means = {each: sum(found.value for found in group) / len(group) for each, group in groups.items() if group}
        lows = {each: min(found.interval[0] for found in groups[each]) for each in means}
        highs = {each: max(found.interval[1] for found in groups[each]) for each in means}
        yield go.Scatter(
            x=list(means),
            y=list(means.values()),
            name=f"{arm}, {reading}",
            mode="lines+markers",
            line={"color": _COLOURS.get(arm, "#444"), "dash": _DASHES.get(reading, "solid")},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [highs[each] - means[each] for each in means],
                "arrayminus": [means[each] - lows[each] for each in means],
                "thickness": 1,
            },
        )


def write_plot(path: Path, figure: go.Figure) -> None:
    """Write a figure as one page, with the library that draws it inside.

    Raises:
        UsageError: the place cannot be written.
    """
    atomic_write(path, figure.to_html(include_plotlyjs=True, full_html=True))
