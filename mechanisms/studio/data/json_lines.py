"""Reading a private file of JSON Lines: an object a line, whose names are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mechanisms.errors import DataError
from mechanisms.studio.data.record_schema import dumps
from mechanisms.studio.data.table import MAX_CELLS, UNPACKED, Table, cell_text, column_names, table_of

_MOST_NAMES = 100
"""So many names become columns, at most: where names are themselves values they have no end."""


@dataclass(frozen=True, repr=False)
class Lines(Table):
    """A table of JSON Lines: its cells are texts, and `objects` its rows as they stand.

    Attributes:
        names: the objects' own names for the columns, which are these names in one line.
    """

    objects: tuple[Mapping[str, Any], ...] = ()
    names: tuple[str, ...] = ()


def read_json_lines(path: Path) -> Lines:
    """The lines that are objects; each value is text by `cell_text`, and what an object does not name is empty.

    Raises:
        DataError: not UTF-8, or without an object that has a name in it.
    """
    rows: list[Mapping[str, Any]] = []
    left_out = 0
    for line in _lines(path):
        try:
            row = json.loads(line)
            dumps(row).encode()  # lone surrogates are no text
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            left_out += 1
        if len(rows) > MAX_CELLS:
            raise DataError(UNPACKED)
    names = tuple(islice(dict.fromkeys(name for row in rows for name in row), _MOST_NAMES))
    if not names:
        raise DataError("The file has no line that is a JSON object with a name in it.")
    remarks = (f"Lines that are no JSON object, and are left out: {left_out}.",) if left_out else ()
    columns = columns_of(rows, names)
    table = table_of(column_names(columns), zip(*columns.values(), strict=True))
    return Lines(table.frame, remarks, tuple(rows), names)


def columns_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, list[str]]:
    """The cells under each name, by the name in one line."""
    return {" ".join(name.split()): [cell_text(row.get(name)) for row in rows] for name in names}


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from (line for line in file if not line.isspace())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The file '{path.name}' cannot be read as UTF-8: check its path and its encoding.") from error
