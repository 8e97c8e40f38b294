"""The first line of a table: names of columns, or a row that would become names; what is doubtful is asked.

Whether a line looks like a row is read off private rows. It decides on nothing but a refusal, which its owner sees: a
file that is read without a question is read as its header says, and with an answer as the answer says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import pandas as pd

from mechanisms.data.columns import COLUMN_WORDS
from mechanisms.data.field_names import column_words
from mechanisms.data.label_names import folded
from mechanisms.data.reading import Reading, ReadingAsked
from mechanisms.data.table import MAX_COLUMNS, Table, column_names, numbered_names, table_of
from mechanisms.errors import DataError

BEGINNING = 20
"""The first lines, by which a title above the header is told."""
_LOOKED_AT, _FEWEST_ROWS = 100_000, 100
"""Cells below that a name may occur again in, and rows at least."""
_MOST_WORDS, _SEVERAL_WORDS, _TWO_WORDS = 4, 3, 2
_LONGEST, _LONGEST_WITHOUT_SPACES = 50, 12
_NUMBER = re.compile(r"[-+~<>$€£¥]?\s*\d[\d\s.,:/\\%+TZ-]*(e[-+]?\d+)?", re.IGNORECASE)
"""A number, a date or a time."""
_SENTENCE = re.compile(r".+([.!?…。！？]|, .+)")
_ROW = (
    "Give --no-header{separator} if it is a row (in Python header=False; columns are then called 1, 2, ...), or "
    "--header if it does name the columns."
)
_SEPARATOR = " with --separator '{separator}'"
_TITLE = (
    "Give --skip-lines {lines} to leave out what stands above the header (in Python skip={lines}), --no-header if it "
    "is a row, or --header if it does name the columns."
)


def headed(
    first: Sequence[str],
    rows: Iterable[Sequence[str]],
    reading: Reading,
    remarks: Iterable[str] = (),
    separator: str | None = None,
) -> Table:
    """The table of a first line and the rows below it, with one cell for each of its cells.

    Args:
        remarks: consumed after all rows.
        separator: what was read off the first line, and has to be said where that is a row.

    Raises:
        ReadingAsked: the first line looks like a row, and its owner has not said which it is.
        DataError: it cannot name the columns, or see `table_of`.
    """
    if reading.header is False:
        return table_of(numbered_names(len(first)), chain([first], rows), remarks)
    way = _ROW.format(separator=_SEPARATOR.format(separator=separator) if separator else "")
    proposed = replace(reading, separator=reading.separator or separator)
    try:
        names = column_names(first)
    except DataError as error:
        if reading.header or len(first) > MAX_COLUMNS:
            raise
        raise ReadingAsked(str(error), way, proposed) from error
    table = table_of(names, rows, remarks)
    if reading.header is None and (reason := _doubt(first, table, reading.labels)):
        raise ReadingAsked(f"The first line looks like a row, not like names of columns: {reason}.", way, proposed)
    return table


def check_no_title(lines: Sequence[tuple[int, Sequence[str]]], reading: Reading) -> None:
    """Ask about a title above the header, unless something was said of the header.

    Args:
        lines: the first ones of the file, each with its number and its cells, empty ones included.

    Raises:
        ReadingAsked: there seems to be one.
    """
    if reading.header is not None or reading.skip:
        return
    filled = [[place for place, cell in enumerate(cells) if cell.strip()] for _, cells in lines]
    above = next((number for number, places in enumerate(filled) if len(places) > 1), 0)
    below = filled[above:]
    title = [cells[0] for (_, cells), places in zip(lines[:above], filled, strict=False) if places == [0]]
    if not all(map(_is_a_name, title)) and 2 * sum(len(places) > 1 for places in below) > len(below):
        skip = lines[above][0] - 1
        raise ReadingAsked(
            "The first line looks like a title above the header: only one cell of it is filled.",
            _TITLE.format(lines=skip),
            replace(reading, skip=skip),
        )


def _doubt(first: Sequence[str], table: Table, labels: Sequence[str]) -> str | None:
    """Why the first line may be a row; None if nothing says so, or if most of its cells are usual names."""
    cells = [" ".join(cell.split()) for cell in first if cell.strip()]
    if 2 * sum(map(_is_a_name, cells)) > len(cells):
        return None
    if any(_NUMBER.fullmatch(cell) for cell in cells):
        return "a cell of it is a number or a date"
    unusual = {folded(cell) for cell in cells if not _is_a_name(cell)}
    if len(labels) > 1 and not unusual.isdisjoint(map(folded, labels)):
        return "a cell of it is one of the labels"
    below = table.frame.head(max(_FEWEST_ROWS, _LOOKED_AT // len(table.columns)))
    if any(_stands_in(below[name], name) for name in table.columns):
        return "a value of it occurs again below, in the same column"
    if any(_is_long(cell) for cell in cells):
        return "a cell of it is as long as a text"
    if not any(map(_is_a_name, cells)) and any(_is_phrase(cell, alone=len(table.columns) == 1) for cell in cells):
        return "a cell of it has several words, and none is a usual name of a column"
    return None


def _stands_in(cells: pd.Series, name: str) -> bool:
    return folded(name) in {folded(cell) for cell in cells.unique() if len(cell) <= 2 * len(name) + BEGINNING}


def _is_long(cell: str) -> bool:
    words = len(cell.split())
    return (
        words > _MOST_WORDS
        or len(cell) > _LONGEST
        or (words == 1 and not cell.isascii() and len(cell) > _LONGEST_WITHOUT_SPACES)
    )


def _is_phrase(cell: str, alone: bool) -> bool:
    return len(cell.split()) >= (_TWO_WORDS if alone else _SEVERAL_WORDS) or bool(_SENTENCE.fullmatch(cell))


def _is_a_name(cell: str) -> bool:
    """Whether a cell has no other words than columns are often called by."""
    return bool(words := column_words(cell)) and COLUMN_WORDS.issuperset(words)
