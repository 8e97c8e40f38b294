"""Reading a private CSV: every bad file gets one clear line, none a traceback."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.errors import DataError
from mechanisms.records import Columns, Dataset
from mechanisms.studio.data.csv_rows import Rows

MAX_BYTES = 512 * 2**20


@dataclass(frozen=True, repr=False)
class Table:
    """A parsed file: string cells, and remarks on how it was read."""

    frame: pd.DataFrame
    remarks: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Column names, in order."""
        return list(self.frame.columns)


def read_table(path: Path) -> Table:
    """Parse a CSV file: UTF-8 (with or without BOM), UTF-16 or Windows-1252; comma, semicolon, tab or bar.

    Raises:
        DataError: binary, empty, without rows, or with rows that do not fit the header.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be opened: check its path and its permissions.") from error
    if size > MAX_BYTES:
        raise DataError(f"The file is larger than {MAX_BYTES // 2**20} MB: split it.")
    try:
        rows = Rows(_opener(path))
        return Table(_frame(rows), tuple(_remarks(rows)))
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: check its permissions.") from error


def _opener(path: Path) -> Callable[[], BinaryIO]:
    """Opens the file at its start, as often as needed: it is read line by line, and never held beside its cells."""
    if path.is_file():
        return lambda: path.open("rb")
    piped = path.read_bytes()
    return lambda: io.BytesIO(piped)


def _frame(rows: Rows) -> pd.DataFrame:
    names = [" ".join(name.split()) for name in rows.header]
    if not all(names) or len(set(names)) != len(names):
        raise DataError("The first line must name every column, each name once.")
    columns: list[list[str]] = [[] for _ in names]
    for row in rows:  # no row outlives its turn: a million lists would keep the garbage collector busy
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
    if not columns[0]:
        raise DataError("The file has a header line but no rows.")
    return pd.DataFrame(dict(zip(names, columns, strict=True)), dtype=str)


def _remarks(rows: Rows) -> Iterator[str]:
    if rows.utf16:
        yield "Read as UTF-16."
    if rows.windows_1252:
        yield "Not UTF-8: read as Windows-1252. Check accented letters below."
    if rows.as_they_stand:
        yield f"Rows whose quotes do not pair up, each read as it stands, as one line: {rows.as_they_stand}."


def guess_columns(table: Table) -> tuple[str, str]:
    """The columns that look most like text (longest cells) and label (fewest distinct values)."""
    head = table.frame.head(1000)
    text = max(table.columns, key=lambda name: head[name].str.len().mean())
    others = [name for name in table.columns if name != text] or [text]
    return text, min(others, key=lambda name: head[name].nunique() if head[name].nunique() > 1 else 10**6)


@dataclass(frozen=True, repr=False)
class Mapping:
    """Which column is what, and what to do with duplicates; `output` is text that belongs to the text."""

    text: str
    label: str
    unit: str | None = None
    drop_duplicates: bool = False
    output: str | None = None

    @property
    def columns(self) -> list[str]:
        """All columns that are something."""
        return [name for name in (self.text, self.label, self.unit, self.output) if name]


@dataclass(frozen=True, repr=False)
class Inspection:
    """What the curator should know about a mapped file before going on; private.

    Attributes:
        counts: units of each label (rows, or users where there is a user column), most frequent first: what becomes
            public where sizes are declared.
        problems: one line each; `fatal` says that one of them must be mended first.
        duplicates: rows whose text and label occurred before.
    """

    counts: dict[str, int]
    problems: tuple[str, ...]
    fatal: bool
    duplicates: int


def no_column(name: str, table: Table) -> str:
    """The line for a column that is not there; it quotes none: without a header the first line is somebody's row."""
    return f"There is no column '{name}' among the file's {len(table.columns)}: its first line must name it just so."


def _mapped(table: Table, mapping: Mapping) -> pd.DataFrame:
    names = mapping.columns
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(no_column(missing[0], table))
    if len(set(names)) != len(names):
        raise DataError("Choose different columns for text, label, output and user id.")
    frame = pd.DataFrame({"text": table.frame[mapping.text], "label": table.frame[mapping.label].str.strip()})
    # With a user column a row repeats another only if it is the same user's: otherwise removing one user would bring
    # back rows of others.
    frame["unit"] = table.frame[mapping.unit].str.strip() if mapping.unit else None
    if mapping.output:
        frame["output"] = table.frame[mapping.output]
    return frame


def _filled(cells: pd.Series) -> NDArray[np.bool_]:
    return np.array([bool(cell) and not cell.isspace() for cell in cells], dtype=np.bool_)


def _usable(frame: pd.DataFrame, mapping: Mapping) -> pd.DataFrame:
    keep = _filled(frame["text"]) & (frame["label"] != "")
    if mapping.output:
        keep &= _filled(frame["output"])
    if mapping.unit:
        keep &= frame["unit"] != ""
    frame = frame[keep]
    return frame.drop_duplicates() if mapping.drop_duplicates else frame


def inspect(table: Table, mapping: Mapping, least: int = 2) -> Inspection:
    """Label counts and problems of a mapped file.

    Args:
        least: labels that it needs.

    Raises:
        DataError: a column is missing or chosen twice.
    """
    frame = _mapped(table, mapping)
    filled = _usable(frame, replace(mapping, drop_duplicates=False))
    repeated = filled.duplicated()
    usable = filled[~repeated] if mapping.drop_duplicates else filled
    units = usable.drop_duplicates(["label", "unit"]) if mapping.unit else usable
    counts = {str(label): int(count) for label, count in units["label"].value_counts().items()}
    duplicates = int(repeated.sum())
    problems = []
    empty = len(frame) - len(filled)
    if empty:
        problems.append(f"{empty} rows with an empty cell are left out.")
    if duplicates and not mapping.drop_duplicates:
        problems.append(
            f"{duplicates} rows repeat an earlier row exactly. A person who appears twice is protected less "
            "by a guarantee for single records: drop the repetitions, or name a user column."
        )
    if len(counts) > 50:
        problems.append(f"{len(counts)} different labels: is '{mapping.label}' the label column?")
    fatal = len(counts) < least
    if not counts:
        problems.append("No row has both a text and a label.")
    elif fatal:
        problems.append("There is only one label: demonstrations need at least two.")
    return Inspection(counts, tuple(problems), fatal, duplicates)


def to_records(table: Table, mapping: Mapping) -> Columns:
    """The usable rows of a mapped file.

    Raises:
        DataError: a column is missing or chosen twice.
    """
    return _columns(_usable(_mapped(table, mapping), mapping))


def _columns(usable: pd.DataFrame) -> Columns:
    names = [name for name in ("text", "label", "unit", "output") if name in usable]
    return Columns(*(usable[name].to_numpy(dtype=object) for name in names))


def to_dataset(table: Table, mapping: Mapping, name: str, labels: tuple[str, ...]) -> Dataset:
    """The private data set of a mapped file under a confirmed public label set.

    A label without rows is no error: one record must not decide whether there is a run.

    Raises:
        DataError: a column is missing.
    """
    usable = _usable(_mapped(table, mapping), mapping)
    others = [each for each in table.columns if each not in mapping.columns]
    witnesses = tuple(table.frame.loc[usable.index, each].to_numpy(dtype=object) for each in others)
    return Dataset(name, labels, _columns(usable), mapping.unit, witnesses)
