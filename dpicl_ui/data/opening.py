"""What is proposed for a file that has just arrived: what its rows are, and what its data set is called."""

from __future__ import annotations

from pathlib import Path

from dpicl_ui.data.rows import Rows
from mechanisms.data.json_lines import Lines
from mechanisms.data.table import Table
from mechanisms.errors import DataError

LONGEST_NAME = 100
"""No name of the hub is longer: a data set is called the same here and on the command line."""
_LABELLED = {"text", "label"}
_LONGEST_COLUMN = 4
"""Words of a column's name, where it is the only one."""
_NO_HEADER = (
    "The first line of this file reads like a text, and not like the name of a column: put a line above it that names "
    "the column, such as text."
)
_SAY_NOTHING = {
    "all", "book", "copy", "csv", "data", "dataset", "default", "dev", "download", "eval", "excel", "export", "file",
    "final", "full", "input", "json", "jsonl", "labeled", "labelled", "list", "master", "new", "output", "parquet",
    "part", "private", "public", "records", "results", "rows", "sample", "sheet", "split", "table", "temp", "test",
    "testing", "text", "texts", "tmp", "train", "training", "untitled", "val", "valid", "validation", "version",
}  # fmt: skip
"""Words of file names that many data sets share."""


def rows_of(table: Table) -> Rows:
    """Records where the file is JSON Lines, but for objects with a "text" and a "label"; texts alone of one column.

    Raises:
        DataError: the only column is named by what reads like a text: without a header that is somebody's row.
    """
    if isinstance(table, Lines):
        return Rows.TEXTS if _LABELLED.issubset(table.columns) else Rows.RECORDS
    if len(table.columns) > 1:
        return Rows.TEXTS
    if len(table.columns[0].split()) > _LONGEST_COLUMN:
        raise DataError(_NO_HEADER)
    return Rows.ALONE


def proposed_name(file: str) -> str:
    """A file's name without its ending; empty where it says nothing.

    The ledger keeps what was spent by name: under "train" one data set would pay for another.
    """
    stem = Path(file).stem
    words = "".join(each if each.isalpha() else " " for each in stem.lower()).split()
    return stem[:LONGEST_NAME] if any(len(word) > 1 and word not in _SAY_NOTHING for word in words) else ""
