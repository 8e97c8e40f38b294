"""A set with fewer shots and in other orders: a grid of cells, its table in a file, and its plot."""

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

# The cells of a grid, each evaluated on all test rows with one prompt.
#
# All randomness here is public: the demonstrations are released already, so that a public seed chooses and orders them.

WHOLE = "all"
OWN_ORDER = 0


@dataclass(frozen=True)
class Grid:
    """The arguments of `cells_of`; public.

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
        arm: with a measured correction only if that was measured with exactly this prompt.
        shots: demonstrations per label, or "all".
        order: 0 for the set's own order, else the number of a public permutation.
    """

    arm: Arm
    shots: str
    order: int

    @property
    def key(self) -> tuple[str, str, int]:
        """The cell's key in a table."""
        return self.arm.name, self.shots, self.order


def most_shots(arms: Iterable[Arm]) -> int:
    """The most demonstrations per label that every arm with demonstrations has; 0 if there is no such arm."""
    return min((_fewest(arm) for arm in arms if arm.demonstrations), default=0)


def _fewest(arm: Arm) -> int:
    return min(Counter(each.label for each in arm.demonstrations).values())


def cells_of(arms: Sequence[Arm], shots: Sequence[int] = (), orders: int = 0, seed: int = 0) -> tuple[Cell, ...]:
    """The grid: zero-shot once, every other arm with each number of shots in its own order and in random ones.

    A cell takes the first demonstrations of each label in its order, so that fewer shots are a subset of more.

    Args:
        arms: in the order of evaluation.
        shots: demonstrations per label; numbers that an arm does not have for every label are left out; empty for all.
        orders: the number of random orders besides the set's own.
        seed: public.

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
            # A correction is measured with one prompt, and is not valid for a part of it or for another order.
            same = shown == tuple(arm.demonstrations)
            yield Cell(replace(arm, demonstrations=shown, prior=arm.prior if same else None), name, order)


def _ordered(demonstrations: Sequence[Demonstration], seed: int, order: int) -> list[Demonstration]:
    if order == OWN_ORDER:
        return list(demonstrations)
    return [demonstrations[i] for i in np.random.default_rng([seed, order]).permutation(len(demonstrations))]


def first_of_each(demonstrations: Sequence[Demonstration], most: int) -> tuple[Demonstration, ...]:
    """The first `most` demonstrations of each label, in order."""
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
    """The accuracy of a cell in every reading; yields the number of rows done.

    Args:
        known: test rows with one of the labels.
    """
    found = yield from LocalReader(model).answers(
        cell.arm.template or template, labels, cell.arm, [record.text for record in known]
    )
    truth = truth_of(labels, known)
    return {reading: Accuracy(int((each == truth).sum()), len(truth)) for reading, each in found.items()}


# The table of a grid: one line per cell and reading, in a file from which an interrupted evaluation continues.


@dataclass(frozen=True)
class Origin:
    """The inputs of a table's figures; a table holds figures of one origin only.

    Attributes:
        set: digest of the demo set's file, which is public.
        test: keyed digest of the test rows, which differs on another machine with another key.
        model: digest of the reading model's weights.
        public: digest of the public demonstrations, which another build of the model may write differently.
        seed: of the orders and of the public demonstrations; public.
        curator_only: whether the rows belong to a private data set, so that figures without noise are for the curator.
    """

    set: str
    test: str
    model: str
    public: str
    seed: str
    curator_only: str

    def differs_from(self, other: Origin) -> str | None:
        """The name of the first field with another value; None if there is none."""
        mine, its = asdict(self), asdict(other)
        return next((name for name in mine if mine[name] != its[name]), None)


@dataclass(frozen=True)
class Line:
    """The accuracy of one cell in one reading."""

    arm: str
    shots: str
    order: int
    reading: str
    accuracy: Accuracy

    def values(self) -> list[str]:
        """The line's cells in the file, in the order of `COLUMNS`."""
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
    """The lines so far; with a path, the file is complete after each cell.

    Raises:
        UsageError: the file is no such table, has another origin, or cannot be read or written.
    """

    def __init__(self, origin: Origin, path: Path | None = None) -> None:
        self._origin, self._path = origin, path
        self.lines: list[Line] = []
        if path is not None and path.exists():
            self.lines = list(_read(path, origin))

    def has(self, cell: Cell) -> bool:
        """Whether the table has a cell."""
        return any((line.arm, line.shots, line.order) == cell.key for line in self.lines)

    def add(self, cell: Cell, found: Mapping[str, Accuracy]) -> None:
        """Add a cell with all its readings."""
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
            raise UsageError(f"'{path}' has figures of another {of}: choose another path for --out.")
    yield from found


def _line(row: Mapping[str, str]) -> Line:
    accuracy = Accuracy(int(row["right"]), int(row["rows"]))
    possible = 0 <= accuracy.correct <= accuracy.total and accuracy.total >= 1
    if not possible or row["arm"] not in _ARMS or row["reading"] not in READINGS:
        raise ValueError("no line of this table")
    return Line(row["arm"], row["shots"], int(row["order"]), row["reading"], accuracy)


def _foreign(path: Path) -> UsageError:
    return UsageError(f"'{path}' was not written by evaluate: choose another path for --out.")


# The whole grid, cell by cell, each added to the table as soon as it is done.

_DIGITS = 16
"""Digits of a digest in the table, enough to tell files apart."""


@dataclass(frozen=True)
class GridBegun:
    """The number of cells, the number missing in the table, and the most shots that every arm has."""

    cells: int
    missing: int
    most_shots: int


@dataclass(frozen=True)
class CellProgress:
    """Rows done of the cell with that number among the `missing` ones."""

    cell: Cell
    number: int
    missing: int
    done: int
    rows: int


@dataclass(frozen=True)
class GridRead:
    """The lines of the requested cells, and the number of cells that were computed.

    Attributes:
        rows: test rows with one of the labels.
    """

    lines: list[Line]
    rows: int
    cells: int
    computed: int


def origin_of(
    text: str, test: Dataset, model: LanguageModel, public: Sequence[Demonstration], grid: Grid, curator_only: bool
) -> Origin:
    """The origin of a grid's figures; `text` is the demo set's file."""
    return Origin(
        set=_digest(text),
        test=fingerprint(test).content[:_DIGITS],  # keyed, since the rows may be private
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
    """Evaluate the cells that are missing in the table.

    Args:
        arms: the set, as the model reads it, and its baselines.
        known: test rows with one of the labels.
        results: the table, to which the cells are added.
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


# A grid as a self-contained page: accuracy by shots, one line per arm and reading.

_COLOURS = {ZERO_SHOT: "#7c8592", PUBLIC_ONLY: "#c9822b", PRIVATE: "#1a8f85"}
_DASHES = {RAW: "dot", CONTEXTUAL: "dash", PRIOR: "solid"}
_ALONE = "for the curator alone: figures without noise on rows of a private data set"
_AXIS = {"zeroline": False, "showgrid": True, "gridcolor": "#e6e9ed"}


def grid_figure(lines: Sequence[Line], curator_only: bool = False) -> go.Figure:
    """Mean accuracy over the orders by shots; bars reach from the lowest to the highest interval end of all orders."""
    shots = sorted({line.shots for line in lines}, key=lambda each: (not each.isdigit(), each.zfill(9)))
    figure = go.Figure(list(_traces(lines, shots)))
    figure.update_layout(
        template="none",
        font={"family": "system-ui, sans-serif", "size": 14},
        title={"text": _ALONE} if curator_only else None,
        xaxis=_AXIS | {"type": "category", "categoryarray": shots, "title": {"text": "demonstrations per label"}},
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
    """Write a figure as one page that includes the plotting library.

    Raises:
        UsageError: the path cannot be written.
    """
    atomic_write(path, figure.to_html(include_plotlyjs=True, full_html=True))
