"""A column without a name is left out: the same rows with one and without it are the same data set."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.sources import read_table
from mechanisms.data.table import Table
from mechanisms.records import Dataset

NAMES = ["text", "label", "who"]
CELLS = st.text(st.sampled_from("ab é日,;\t|\"'\n0.5"), max_size=8)
ROWS = st.lists(st.tuples(CELLS, st.sampled_from(["a", "b", ""]), st.sampled_from(["u", "v"])), min_size=1, max_size=6)


def left_out(columns: int) -> str:
    return f"Columns without a name, which are left out: {columns}."


def read(raw: bytes, suffix: str) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"data.{suffix}")
        path.write_bytes(raw)
        return read_table(path)


def as_workbook(rows) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def as_parquet(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.to_parquet(file, index=False)
    return file.getvalue()


WRITERS = {
    "csv": lambda frame: frame.to_csv(index=False).encode(),
    "tsv": lambda frame: frame.to_csv(index=False, sep="\t").encode(),
    "semicolons.csv": lambda frame: frame.to_csv(index=False, sep=";").encode(),
    "xlsx": lambda frame: as_workbook([frame.columns.tolist(), *frame.to_numpy().tolist()]),
    "parquet": as_parquet,
}


def datasets(table: Table) -> list[Dataset]:
    mappings = (ColumnMapping("text", "label"), ColumnMapping("text", "label", "who"))
    return [to_dataset(table, mapping, "data", ("a", "b")) for mapping in mappings]


def same(first: Table, second: Table) -> bool:
    pairs = zip(datasets(first), datasets(second), strict=True)
    return all(
        list(one.records) == list(other.records) and fingerprint(one).content == fingerprint(other).content
        for one, other in pairs
    )


@pytest.mark.slow
@pytest.mark.parametrize("suffix", WRITERS)
@settings(max_examples=25)
@given(rows=ROWS, place=st.integers(0, 3), index=st.sampled_from(["number", "", "a note"]))
def test_rows_with_and_without_a_nameless_column_are_the_same_data_set(suffix, rows, place, index):
    frame = pd.DataFrame(rows, columns=NAMES)
    beside = [str(i) if index == "number" else index for i in range(len(rows))]
    without, whole = read(WRITERS[suffix](frame), suffix), frame.copy()
    whole.insert(place, "", beside)
    table = read(WRITERS[suffix](whole), suffix)
    assert (table.columns, without.remarks) == (without.columns, ())
    trailing = suffix == "xlsx" and place == len(NAMES)  # where a sheet's header ends at its last name
    assert table.remarks == (() if trailing else (left_out(1),))
    assert same(table, without)


@settings(max_examples=30)
@given(ROWS)
def test_what_pandas_writes_is_read_with_its_index_and_without(rows):
    frame = pd.DataFrame(rows, columns=NAMES)
    table, without = (read(frame.to_csv(index=index).encode(), "csv") for index in (True, False))
    assert table.remarks == (left_out(1),)
    assert same(table, without)


def test_a_separator_at_the_end_of_a_line_ends_no_reading():
    for raw in (b"text,label,\nx,a,\ny,b,\n", b"text,label,\nx,a\ny,b\n"):
        table = read(raw, "csv")
        assert table.frame.to_dict("list") == {"text": ["x", "y"], "label": ["a", "b"]}
        assert table.remarks == (left_out(1),)


def test_a_sheet_may_begin_in_any_column_and_have_notes_beside_it():
    rows = [(None, "text", None, "label"), (None, "x", None, "a"), ("a note", None, "one more", None), (1, "y", 2, "b")]
    table = read(as_workbook(rows), "xlsx")
    assert table.frame.to_dict("list") == {"text": ["x", "y"], "label": ["a", "b"]}
    assert table.remarks == (left_out(2),)
