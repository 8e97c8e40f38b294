"""Reading a private file of labelled rows, in any format that people have: what it is shows in its first bytes."""

from __future__ import annotations

from pathlib import Path

from mechanisms.data.csv_file import read_csv
from mechanisms.data.excel_file import read_excel
from mechanisms.data.json_lines import read_json_lines
from mechanisms.data.parquet_file import read_parquet
from mechanisms.data.table import Table, checked_size
from mechanisms.errors import DataError

FORMATS = "CSV, TSV, Excel (.xlsx), Parquet or JSON Lines"
_ZIP, _PARQUET, _OLD_OFFICE = b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0"
_JSON_LINES = (".jsonl", ".ndjson", ".json")


def read_table(path: Path) -> Table:
    """A file as text cells under named columns; `Lines` where it is JSON Lines.

    Text has no mark of its own: it is JSON Lines where the file's name says so, and else CSV.

    Raises:
        DataError: it cannot be read as what it is, has no rows, or is too large.
    """
    checked_size(path)
    start = _start(path)
    if start.startswith(_ZIP):
        return read_excel(path)
    if start.startswith(_PARQUET):
        return read_parquet(path)
    if start.startswith(_OLD_OFFICE):
        raise DataError(
            "This is an old or a protected Excel file: save it as .xlsx without a password, or as CSV (UTF-8)."
        )
    return read_json_lines(path) if path.suffix.lower() in _JSON_LINES else read_csv(path)


def _start(path: Path) -> bytes:
    """The first bytes of a file; none of a pipe, which can be read only once."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: check its permissions.") from error
