"""Cells of a workbook that hold less than it shows: merged ones, formulas without values, numbers in a format."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.data.columns import ColumnMapping, breakdown, inspect
from mechanisms.data.table import ReadingQuestion, Table
from mechanisms.errors import DataError
from tests.data.files import read
from tests.data.test_formats import parts_of, zipped

MAPPING = ColumnMapping("text", "label")


def workbook(rows: list[tuple[Any, ...]], *merged: str, formats: dict[str, str] | None = None) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    for each in merged:
        sheet.merge_cells(each)
    for place, kind in (formats or {}).items():
        sheet[place].number_format = kind
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def labels(table: Table) -> list[str]:
    return list(table.frame["label"])


# Merged cells.

ROWS = [("label", "text"), *((("a", "b")[i // 4], f"text {i}") for i in range(8))]


def test_merged_cells_that_span_rows_are_named_and_filled_where_that_is_said():
    raw = workbook(ROWS, "A2:A5", "A6:A9")
    with pytest.raises(ReadingQuestion, match=r"span rows: A2:A5, A6:A9\..*--fill-merged.*--no-fill-merged") as raised:
        read(raw, "xlsx")
    assert raised.value.proposed.fill_merged is True
    filled, first = read(raw, "xlsx", fill_merged=True), read(raw, "xlsx", fill_merged=False)
    assert labels(filled) == ["a"] * 4 + ["b"] * 4
    assert labels(first) == ["a", "", "", "", "b", "", "", ""]
    assert list(filled.frame["text"]) == list(first.frame["text"]) == [text for _, text in ROWS[1:]]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4)), min_size=1, max_size=6), st.integers(0, 3))
def test_a_file_with_merged_labels_is_the_file_with_a_label_in_each_row(blocks, empty):
    """Whatever the blocks are; rows without a value of their own are none, also under a merged cell."""
    each = [label for label, rows in blocks for _ in range(rows)]
    rows: list[tuple[Any, ...]] = [("label", "text"), *((label, f"text {i}") for i, label in enumerate(each))]
    merged, at = [], 2
    for _, size in blocks:
        merged += [f"A{at}:A{at + size - 1}"] if size > 1 else []
        at += size
    if empty:
        rows += [("c", "last")] + [(None, None)] * empty
        merged.append(f"A{at}:A{at + empty}")
    whole = read(workbook(rows[: 1 + len(each) + bool(empty)]), "xlsx")
    assert read(workbook(rows, *merged), "xlsx", fill_merged=True).frame.equals(whole.frame)


def test_what_is_merged_elsewhere_is_no_question():
    above = workbook([("a title",), (), *ROWS], "A1:B1")
    assert len(read(above, "xlsx", skip=2).frame) == 8
    beside = workbook([(*row, None, "x") for row in ROWS], "D3:D5")  # under a name of no column
    assert len(read(workbook([(*ROWS[0],), *((*row, None, "x") for row in ROWS[1:])], "D3:D5"), "xlsx").frame) == 8
    with pytest.raises(ReadingQuestion, match="D3:D5"):
        read(beside, "xlsx")
    [remark] = read(workbook([*ROWS, ("c", "d")], "A10:B10"), "xlsx").remarks
    assert remark.endswith("only the first has the value: A10:B10.")


@pytest.mark.parametrize(
    ("below", "merged"),
    [
        ([("checked by", None), (None, None)], "A10:B11"),
        ([("checked by", "x"), (None, None), (None, None)], "A10:A12"),
        ([], "A10:A14"),
        ([], "A9:A12"),
    ],
    ids=["a footer", "a row with none below", "empty rows", "the last row and empty ones"],
)
def test_a_merge_without_a_row_that_it_could_mean_anything_for_is_no_question(below, merged):
    raw = workbook([*ROWS, *below], merged)
    table = read(raw, "xlsx")
    assert table.frame.head(8).equals(read(workbook(ROWS), "xlsx").frame)
    assert table.frame.equals(read(raw, "xlsx", fill_merged=True).frame)
    with pytest.raises(ReadingQuestion, match=r"span rows: A2:A3\.") as raised:
        read(workbook([*ROWS, *below], "A2:A3", merged), "xlsx")
    assert merged not in raised.value.sentence


@pytest.mark.parametrize(("fill", "skip"), [(None, 0), (True, 0), (False, 0), (None, 1)])
def test_a_merge_that_begins_in_the_header_or_above_gives_no_row_its_value_and_is_told(fill, skip):
    second = [(None, "a second line"), *ROWS[1:]]
    rows, merged = ([("a title", None)] if skip else []) + [ROWS[0], *second], f"A{1 + skip}:A{2 + skip}"
    table = read(workbook(rows, merged), "xlsx", fill_merged=fill, skip=skip)
    assert table.frame.equals(read(workbook([ROWS[0], *second]), "xlsx").frame)
    assert labels(table)[0] == ""
    [remark] = table.remarks
    assert f"in the rows that they span: {merged}." in remark
    empty = workbook([ROWS[0], (None, None), *ROWS[1:]], "A1:A2", "B1:B2")  # a second line without a cell
    assert (len(read(empty, "xlsx").frame), read(empty, "xlsx").remarks) == (len(ROWS) - 1, ())


def test_without_a_header_merged_cells_are_filled_too():
    raw = workbook(ROWS[1:], "A1:A4")
    assert list(read(raw, "xlsx", header=False, fill_merged=True).frame["1"]) == ["a"] * 4 + ["b"] * 4


# Formulas without values.


def formulas(count: int, others: int) -> bytes:
    computed = (f'=CONCATENATE("text","{i}")' for i in range(count))
    return workbook([("text", "label"), *((each, "a") for each in computed), *((f"x {i}", "b") for i in range(others))])


@pytest.mark.parametrize(("count", "told"), [(1, "1 cell holds a formula"), (12, "12 cells hold formulas"), (0, None)])
def test_formulas_without_values_are_counted_apart(count, told):
    table = read(formulas(count, 12), "xlsx")
    if told is None:
        assert table.remarks == ()
        return
    [remark] = table.remarks
    assert remark.startswith(told)
    assert remark.endswith("not stored: open and save the file in a spreadsheet program.")
    assert sum(breakdown(table, MAPPING).unusable.values()) == count


def test_a_stored_value_is_a_value_also_an_empty_text():
    parts = parts_of(formulas(4, 2))
    sheet = "xl/worksheets/sheet1.xml"
    cells = parts[sheet].decode()
    for stored in ("<v>1</v>", "<v>two</v>"):
        cells = cells.replace("<v></v>", stored, 1).replace("<v />", stored, 1).replace("<v/>", stored, 1)
    cells = cells.replace('<c r="A4">', '<c r="A4" t="str">').replace('<c r="A3">', '<c r="A3" t="str">')
    table = read(zipped({**parts, sheet: cells.encode()}), "xlsx")
    assert list(table.frame["text"])[:4] == ["1", "two", "", ""]
    assert [remark[:11] for remark in table.remarks] == ["1 cell hold"]


def test_a_sheet_of_formulas_alone_says_so():
    raw = workbook([("text", "label"), ('="x"', '="a"'), ('="y"', '="b"')])
    with pytest.raises(DataError, match="^4 cells hold formulas"):
        read(raw, "xlsx")


# Formats of numbers.


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (1, "000", "001"),
        (12345, "000", "12345"),
        (-1, "000", "-001"),
        (1, "General", "1"),
        (1, "@", "1"),
        (1, "0.00", "1.00"),
        (2.5, "0.00", "2.50"),
        (0.25, "0%", "25%"),
        (3, '"Class "0', "Class 3"),
        (30, "#,##0", "30"),
    ],
)
def test_a_label_is_the_number_as_the_sheet_shows_it(value, kind, shown):
    table = read(workbook([("text", "label"), ("x", value), ("y", "b")], formats={"B2": kind}), "xlsx")
    assert labels(table) == [shown, "b"]
    told = inspect(table, MAPPING).problems
    assert not any("form of its own" in line for line in told)
    assert any("as the sheet shows them" in line and ": 1." in line for line in told) == (shown != str(value))
    turned = inspect(table, ColumnMapping("label", "text")).problems
    assert not any("as the sheet shows them" in line for line in turned)


@pytest.mark.parametrize("kind", ["#,##0", "0.0E+00", "[Red]0", '0;"minus "0', "# ?/?"])
def test_a_form_that_is_not_known_is_told_where_it_is_the_label_s(kind):
    raw = workbook([("text", "label"), ("x", 2500), ("y", "b")], formats={"B2": kind})
    table = read(raw, "xlsx")
    assert labels(table) == ["2500", "b"]
    assert any("in a form of its own" in line and ": 1." in line for line in inspect(table, MAPPING).problems)
    turned = inspect(table, ColumnMapping("label", "text")).problems
    assert not any("form of its own" in line for line in turned)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**20), 10**20), st.just(0.4)),
    st.sampled_from(["0", "0.00", "0%", "000", f"0.{'0' * 30}", '"Class "0']),
)
def test_any_number_is_read_and_no_format_rounds_one(value, kind):
    """What a format does not show whole is read plainly, and counted."""
    plain = read(workbook([("text", "label"), ("x", value)]), "xlsx")
    table = read(workbook([("text", "label"), ("x", value)], formats={"B2": kind}), "xlsx")
    [told], [was] = labels(table), labels(plain)
    if table.shown_otherwise["label"]:
        assert told == was
    else:
        number = Decimal(told.removeprefix("-").removeprefix("Class ").rstrip("%")) / (100 if "%" in told else 1)
        assert number == abs(Decimal(was))


@pytest.mark.parametrize(("values", "kind"), [((0.4, 0.6), "0"), ((1e30, 1.5), "0.00"), ((1e300, 0.125), "0%")])
def test_numbers_that_differ_stay_labels_that_differ(values, kind):
    table = read(workbook([("label",), *((each,) for each in values)], formats={"A2": kind, "A3": kind}), "xlsx")
    assert len({*labels(table)}) == 2
