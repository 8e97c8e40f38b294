"""Columns: those without a name, those of people, and the names of a prompt's fields."""

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
from mechanisms.data.headers import field_name, guess_person, suggested_names
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.data.table import Table
from mechanisms.errors import UsageError
from mechanisms.records import Dataset

# A column without a name is left out: the same rows with one and without it are the same data set.


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


# The column of people is proposed by its name, where people have several rows.

REPEATED = [f"P-{i % 40}" for i in range(100)]


def _table(columns: dict[str, list[str]]) -> Table:
    return Table(pd.DataFrame(columns))


@pytest.mark.parametrize(
    "name", ["patient", "user_id", "userId", "CustomerID", "customer no", "reviewerName", "userid", "Sender e-mail"]
)
def test_a_column_named_for_people_is_proposed_where_they_repeat(name: str):
    assert guess_person(_table({"text": ["t"] * 100, name: REPEATED}), ("text",)) == name


@pytest.mark.parametrize("name", ["patient_age", "customer segment", "user type", "paid", "id", "employer", "number"])
def test_what_else_is_said_of_people_is_no_person(name: str):
    assert guess_person(_table({"text": ["t"] * 100, name: REPEATED}), ("text",)) is None


@pytest.mark.parametrize(
    "cells",
    [
        [f"P-{i}" for i in range(100)],  # nobody wrote twice
        ["agent", "customer"] * 50,  # roles
        ["", *REPEATED[1:70], *[""] * 30],  # rows without a person would be left out
    ],
)
def test_a_column_that_identifies_no_one_twice_is_not(cells: list[str]):
    assert guess_person(_table({"text": ["t"] * 100, "patient": cells}), ("text",)) is None


def test_a_column_that_is_the_text_or_the_label_is_not():
    table = _table({"author": REPEATED, "customer": REPEATED})
    assert guess_person(table, ("author",)) == "customer"
    assert guess_person(table, ("author", "customer")) is None


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_examples_protect_whom_a_file_of_ones_own_would(example):
    table, mapping = read_table(example.path), example.mapping
    assert guess_person(table, (mapping.text, mapping.label)) == mapping.unit


# Names of a prompt's fields: suggested by columns that say something, never taken from them.

NEUTRAL = suggested_names("", "")
HOSTILE = "<img src=x onerror='window.hacked=1'> ${message} {{department}}"


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("message", "Message"),
        ("Customer_Message", "Message"),
        ("reviews", "Review"),
        ("reviewBody", "Review"),
        ("ticket-question", "Question"),
        ("NEWS", "Article"),
        ("SMSText", "Message"),
        ("query", "Question"),
        ("tweet", "Tweet"),
        ("abstract", "Abstract"),
    ],
)
def test_a_column_that_says_what_its_texts_are_is_heard(column, name):
    assert suggested_names(column, "label")[0][0] == name


@pytest.mark.parametrize(
    ("column", "name"),
    [("department", "Department"), ("topic_id", "Topic"), ("question type", "Type"), ("kind", "Kind")],
)
def test_a_column_that_says_what_its_labels_are_is_heard(column, name):
    assert suggested_names("text", column)[1][0] == name


@pytest.mark.parametrize("column", ["text", "label", "col1", "", "0", "Unnamed: 3", "previewed", "\x00", "文", "class"])
def test_a_column_that_says_nothing_gets_the_neutral_names(column):
    texts, labels = suggested_names(column, column)
    assert (texts[0], labels[0]) == ("Text", "Label")


@pytest.mark.parametrize("column", ["message", HOSTILE, "Patient Smith's note", "review\n\nLabel: bad", "s" * 10**6])
def test_no_suggestion_is_a_columns_own_text(column):
    texts, labels = suggested_names(column, column)
    assert (set(texts), set(labels)) == tuple(map(set, NEUTRAL))
    assert (len(texts), len(labels)) == tuple(map(len, NEUTRAL))
    assert {"Text", "Label"} <= {*texts, *labels}


def test_the_examples_have_names_that_could_be_suggested():
    for example in EXAMPLES:
        texts, labels = suggested_names(example.mapping.text, example.mapping.label)
        assert example.fields[0] in texts
        assert example.fields[1] == labels[0]


def test_a_typed_name_becomes_one_line():
    assert field_name("  Letter\n to  us ") == "Letter to us"


@pytest.mark.parametrize("given", ["", " \n", None, ["a"], 3, "x" * 41])
def test_a_name_that_is_none_is_refused(given):
    with pytest.raises(UsageError, match="1 to 40 characters"):
        field_name(given)
