"""Private files of every format, and how tests read them."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.data.sources import read_table
from mechanisms.data.table import Reading, Table
from mechanisms.errors import DataError


def read(raw: bytes | str, suffix: str = "csv", **said: Any) -> Table:
    """The table in a file with this content, read as its owner says."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"data.{suffix}")
        path.write_bytes(raw.encode() if isinstance(raw, str) else raw)
        return read_table(path, Reading(**said))


def refusal(raw: bytes, suffix: str = "csv") -> str | None:
    """The line that a file is refused with; None if it is read."""
    try:
        read(raw, suffix)
    except DataError as error:
        return str(error)
    return None


def table(rows: Iterable[Sequence[str]], **more: Any) -> Table:
    """A table of texts and labels."""
    return Table(pd.DataFrame(rows, columns=["text", "label"], dtype=pd.StringDtype("python")), **more)


def as_workbook(*sheets: Iterable[Sequence[Any]], names: Sequence[str] = ()) -> bytes:
    """A workbook with these rows; a sheet whose name begins with "hidden" is hidden."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for rows, name in zip(sheets, names or [f"sheet {i}" for i in range(len(sheets))], strict=True):
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        sheet.sheet_state = "hidden" if name.startswith("hidden") else "visible"
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def as_parquet(columns: Any, **options: Any) -> bytes:
    """A Parquet file with these columns."""
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()
