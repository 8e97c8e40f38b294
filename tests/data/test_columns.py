"""Columns: those without a name, what is guessed of them, the names of fields, and labels under other names."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping, inspect, to_dataset
from mechanisms.data.headers import field_name, guess_columns, guess_person, suggested_names
from mechanisms.data.label_names import checked_names, named, names_in_lines, names_of, proposed_names, read_names
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.data.table import Table
from mechanisms.errors import DataError, UsageError
from tests.data.files import as_parquet, as_workbook, read, table

# A column without a name is left out: the same rows with one and without it are the same data set.

NAMES = ["text", "label", "who"]
CELLS = st.text(st.sampled_from("ab é日,;\t|\"'\n0.5"), max_size=8)
ROWS = st.lists(st.tuples(CELLS, st.sampled_from(["a", "b", ""]), st.sampled_from(["u", "v"])), min_size=1, max_size=6)
LEFT_OUT = "Columns without a name, which are left out: {}."
WRITERS = {
    "csv": lambda frame: frame.to_csv(index=False).encode(),
    "tsv": lambda frame: frame.to_csv(index=False, sep="\t").encode(),
    "xlsx": lambda frame: as_workbook([frame.columns.tolist(), *frame.to_numpy().tolist()]),
    "parquet": lambda frame: as_parquet(dict(frame)),
}


def contents(read: Table) -> list[tuple[list[str], str]]:
    mappings = (ColumnMapping("text", "label"), ColumnMapping("text", "label", "who"))
    found = [to_dataset(read, mapping, "data", ("a", "b")) for mapping in mappings]
    return [(list(each.content()), fingerprint(each).content) for each in found]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", WRITERS)
@settings(max_examples=25)
@given(rows=ROWS, place=st.integers(0, 3), index=st.sampled_from(["number", "", "a note"]))
def test_rows_with_and_without_a_nameless_column_are_the_same_data_set(suffix, rows, place, index):
    frame = pd.DataFrame(rows, columns=NAMES)
    without, whole = read(WRITERS[suffix](frame), suffix), frame.copy()
    whole.insert(place, "", [str(i) if index == "number" else index for i in range(len(rows))])
    beside = read(WRITERS[suffix](whole), suffix)
    assert (beside.columns, without.remarks) == (without.columns, ())
    trailing = suffix == "xlsx" and place == len(NAMES)  # where a sheet's header ends at its last name
    assert beside.remarks == (() if trailing else (LEFT_OUT.format(1),))
    assert contents(beside) == contents(without)


def test_a_sheet_may_begin_in_any_column_and_have_notes_beside_it():
    rows = [(None, "text", None, "label"), (None, "x", None, "a"), ("a note", None, "one more", None), (1, "y", 2, "b")]
    found = read(as_workbook(rows), "xlsx")
    assert found.frame.to_dict("list") == {"text": ["x", "y"], "label": ["a", "b"]}
    assert found.remarks == (LEFT_OUT.format(2),)


# What is guessed of columns. That of people is proposed by its name, where people have several rows.

REPEATED = [f"P-{i % 40}" for i in range(100)]
UNIQUE = [f"value {i}" for i in range(30)]
TWO = ["a", "b"] * 15
LONG = [f"a rather long remark on number {i}" for i in range(30)]


def columns(**cells: list[str]) -> Table:
    return Table(pd.DataFrame(cells, dtype=pd.StringDtype("python")))


@pytest.mark.parametrize(
    "name", ["patient", "user_id", "userId", "CustomerID", "customer no", "reviewerName", "userid", "Sender e-mail"]
)
def test_a_column_named_for_people_is_proposed_where_they_repeat(name: str):
    assert guess_person(columns(text=["t"] * 100, **{name: REPEATED}), ("text",)) == name
    assert guess_person(columns(**{name: REPEATED}), (name,)) is None


@pytest.mark.parametrize("name", ["patient_age", "customer segment", "user type", "paid", "id", "employer", "number"])
def test_what_else_is_said_of_people_is_no_person(name: str):
    assert guess_person(columns(text=["t"] * 100, **{name: REPEATED}), ("text",)) is None


@pytest.mark.parametrize(
    "cells",
    [
        [f"P-{i}" for i in range(100)],  # nobody wrote twice
        ["agent", "customer"] * 50,  # roles
        ["", *REPEATED[1:70], *[""] * 30],  # rows without a person would be left out
    ],
)
def test_a_column_that_identifies_no_one_twice_is_not(cells: list[str]):
    assert guess_person(columns(text=["t"] * 100, patient=cells), ("text",)) is None


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_examples_are_large_and_clean_and_their_columns_are_guessed(example):
    found, mapping = read_table(example.path), example.mapping
    assert guess_columns(found) == (mapping.text, mapping.label)
    assert guess_person(found, (mapping.text, mapping.label)) == mapping.unit
    inspection = inspect(found, mapping)
    assert inspection.problems == ()
    assert min(inspection.counts.values()) >= 60


def test_a_column_that_is_called_a_label_is_proposed_before_one_with_fewer_values():
    stars, kinds = [str(i % 2) for i in range(30)], [f"kind {i % 5}" for i in range(30)]
    assert guess_columns(columns(text=LONG, stars=stars, label=kinds)) == ("text", "label")
    assert guess_columns(columns(text=LONG, stars=stars, Ticket_Category=kinds)) == ("text", "Ticket_Category")
    assert guess_columns(columns(text=LONG, stars=stars, other=kinds)) == ("text", "stars")
    assert guess_columns(columns(text=LONG, stars=stars, label=["same"] * 30)) == ("text", "stars")
    # In a test file the set's labels tell.
    assert guess_columns(columns(text=LONG, label=stars, x=kinds), ("kind 1", "kind 2")) == ("text", "x")
    assert guess_columns(columns(text=LONG, label=stars, x=kinds), ("elsewhere",)) == ("text", "label")


def test_an_id_is_no_label_and_neither_is_a_nested_cell():
    numbers, nested = [str(i % 3) for i in range(30)], ['{"a": 1}'] * 30
    assert guess_columns(columns(id=numbers, data=nested, annotations=["[1]", "[2]"] * 15)) == ("", "")
    assert guess_columns(columns(text=LONG, id=numbers, kind=TWO)) == ("text", "kind")
    assert guess_columns(columns(text=LONG, user_id=numbers, label=UNIQUE)) == ("text", "")
    assert guess_columns(columns(meta=nested, body=LONG, tags=TWO)) == ("body", "tags")


@pytest.mark.parametrize("name", ["text", "message", "body", "content", "Customer Message", "reviewText", "comment"])
def test_a_column_that_is_called_a_text_comes_first(name):
    assert guess_columns(columns(**{"a longer note": LONG, name: UNIQUE, "label": TWO})) == (name, "label")
    assert guess_columns(columns(**{"a longer note": LONG, name: TWO, "label": TWO}))[0] == "a longer note"  # letters


def test_a_column_of_ids_is_said_to_be_one():
    plain = ColumnMapping("text", "label")
    assert any("looks like an id" in line for line in inspect(table(zip(LONG, UNIQUE, strict=True)), plain).problems)
    assert not any("looks like an id" in line for line in inspect(table(zip(LONG, TWO, strict=True)), plain).problems)


def test_nested_cells_are_named_as_such():
    lines = (json.dumps({"id": i, "data": {"text": "x"}, "labels": ["spam"]}) for i in range(20))
    found = read("\n".join(lines), "jsonl")
    assert found.columns == ["id", "data.text", "labels.0"]
    with pytest.raises(DataError, match=r"'text' is nested, or a field of one: name 'data\.text' instead\."):
        inspect(found, ColumnMapping("text", "labels.0"))
    told = inspect(found, ColumnMapping("data", "labels")).problems
    assert any("'data' holds nested values" in line and "name 'data.text'" in line for line in told)
    for text, label in (("", "labels"), ("data", "")):
        with pytest.raises(DataError, match="Name the (text|label) column"):
            inspect(found, ColumnMapping(text, label))


# Names of a prompt's fields: suggested by columns that say something, never taken from them.

HOSTILE = "<img src=x onerror='window.hacked=1'> ${message} {{department}}"


@pytest.mark.parametrize(
    ("text", "label", "names"),
    [
        ("Customer_Message", "department", ("Message", "Department")),
        ("reviewBody", "topic_id", ("Review", "Topic")),
        ("ticket-question", "question type", ("Question", "Type")),
        ("NEWS", "kind", ("News item", "Kind")),
        ("SMSText", "Unnamed: 3", ("Message", "Label")),
        ("previewed", "class", ("Text", "Label")),
        ("\x00", "文", ("Text", "Label")),
    ],
)
def test_a_column_that_says_what_it_holds_is_heard(text, label, names):
    assert tuple(each[0] for each in suggested_names(text, label)) == names


@pytest.mark.parametrize("column", ["message", HOSTILE, "Patient Smith's note", "review\n\nLabel: bad", "s" * 10**6])
def test_no_suggestion_is_a_columns_own_text(column):
    neutral = suggested_names("", "")
    assert [sorted(each) for each in suggested_names(column, column)] == [sorted(each) for each in neutral]


@pytest.mark.parametrize("given", ["", " \n", None, ["a"], 3, "x" * 41])
def test_a_typed_name_is_one_line_or_refused(given):
    assert field_name("  Letter\n to  us ") == "Letter to us"
    with pytest.raises(UsageError, match="1 to 40 characters"):
        field_name(given)


PROGRAM_LABELS = ("card_arrival", "pin=lost", "other")
OTHER_NAMES = (("card_arrival", "Card arrival"), ("pin=lost", "PIN"))


def test_a_file_under_names_is_the_file_that_had_them_all_along():
    rows = [(f"t{i}", (*PROGRAM_LABELS, "unlisted")[i % 4]) for i in range(20)]
    mapping = ColumnMapping("text", "label", label_names=OTHER_NAMES)
    renamed = [(text, dict(OTHER_NAMES).get(label, label)) for text, label in rows]
    labels = named(PROGRAM_LABELS, OTHER_NAMES)
    assert labels == ("Card arrival", "PIN", "other")
    there = to_dataset(table(rows), mapping, "d", labels)
    expected = to_dataset(table(renamed), ColumnMapping("text", "label"), "d", labels)
    assert list(there.content()) == list(expected.content())
    assert there.counted_sizes() == expected.counted_sizes() == dict.fromkeys(labels, 5)
    assert set(inspect(table(rows), mapping).counts) == {*labels, "unlisted"}


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=5))
def test_names_are_one_to_one_or_refused(pairs):
    try:
        names = checked_names(pairs)
    except UsageError:
        return
    assert len({label for label, _ in names}) == len(names) == len({name for _, name in names})
    assert all(name == name.strip() and name for _, name in names)


def test_a_name_that_is_another_label_is_refused_and_two_may_change_places():
    with pytest.raises(UsageError, match="name is also another label"):
        named(("a", "b"), (("a", "b"),))
    assert named(("a", "b"), (("a", "b"), ("b", "a"))) == ("b", "a")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["card_payment_fee", "refund"], ["Card payment fee", "Refund"]),
        (["cardPaymentFee", "changePIN"], ["Card payment fee", "Change PIN"]),
        (["OfficeHolder", "Company"], ["Office Holder", "Company"]),
        (["MeanOfTransportation", "Artist"], ["Mean Of Transportation", "Artist"]),
        (["HAM", "SPAM_MAIL", "1"], ["HAM", "Spam mail", "1"]),
        (["SPORTS", "USA", "World"], ["Sports", "USA", "World"]),
        (["World", "Sports", "sci-fi"], None),
        (["Card payment fee", "Mobile YouTube app", "PIN"], None),
        (["iPhone", "eBay"], None),
        (["A", "_", "文", "0"], None),
        ([], None),
    ],
)
def test_labels_that_are_written_for_programs_are_proposed_names(labels, names):
    of = dict(proposed_names(labels))
    assert [of.get(each, each) for each in labels] == (names or labels)
    assert bool(of) == (names is not None)


@given(st.lists(st.text("aAbB_ =\n", min_size=1, max_size=5).map(str.strip).filter(bool), unique=True, max_size=8))
def test_proposed_names_tell_all_labels_apart_and_can_be_used(labels):
    names = proposed_names(labels)
    assert len(set(named(labels, names))) == len(labels)
    assert {label for label, _ in checked_names(names)} == {label for label, name in names if label != name}
    assert all(names_of([name], names) == ((label, name),) for label, name in names)


def test_names_that_keep_another_label_apart_are_needed_too():
    swapped = (("a", "b"), ("b", "a"), ("c", "d"))
    assert names_of(["b"], swapped) == (("a", "b"), ("b", "a"))
    assert names_of(["d"], swapped) == (("c", "d"),)
    assert names_of(["e"], swapped) == ()


def test_every_way_of_saying_names_says_the_same():
    assert read_names('{"card_arrival": "Card arrival", "pin=lost": "PIN"}') == OTHER_NAMES
    assert read_names("card_arrival=Card arrival, pin=lost=PIN") == OTHER_NAMES
    assert names_in_lines("card_arrival = Card arrival\n\npin=lost = PIN\nother = other\n") == OTHER_NAMES


@pytest.mark.parametrize("said", ["a", "a=", "a=X,b=X", "a=X,a=Y", f"a={'x' * 101}", "{"])
def test_what_names_nothing_gets_one_line(said):
    with pytest.raises(UsageError) as refused:
        read_names(said)
    assert "\n" not in str(refused.value)
