"""No row is left out without a word: rows are counted by reason. Which take part is a function of each row alone."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import api
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.columns import (
    MOST_SHARE,
    ColumnMapping,
    Reason,
    breakdown,
    checked_dataset,
    inspect,
    label_set,
    looks_empty,
    to_dataset,
    understood,
)
from mechanisms.data.headers import guess_columns
from mechanisms.data.sources import read_table
from mechanisms.data.table import Table
from mechanisms.errors import DataError, UsageError

LABELS = ("spam", "ham")
MISSING = [
    "nan", "NaN", "NULL", "None", " n/a ", "#N/A", "-", "--", "...", "\u200b\ufeff", "N.A.", "\\N", "(null)", "[]",
    "#REF!", "(blank)",
]  # fmt: skip
SEVERAL = ["spam,ham", "ham; spam", "spam|ham", "['spam', 'ham']", "Spam/HAM"]
PLAIN = ColumnMapping("text", "label")
MERGED = ColumnMapping("text", "label", merge_labels=True)
ALIKE = ["Spam", "SPAM", " spam\u00a0", "sp\u200bam", "ｓｐａｍ", "\ufeffham", "h\u00adam"]
CELLS = st.tuples(
    st.sampled_from(["a text", "", "  ", "nan", "None", "N/A", "-", "\u200b", "nan is a word", "a nanny"]),
    st.sampled_from([*LABELS, *ALIKE, "", "other", "spam;ham", "[spam, ham]", "nan"]),
)


def table(rows, **more) -> Table:
    return Table(pd.DataFrame(rows, columns=["text", "label"], dtype=pd.StringDtype("python")), **more)


def left_out(rows, mapping: ColumnMapping = PLAIN, labels: tuple[str, ...] = LABELS):
    return breakdown(table(rows), mapping, labels).left_out(labels).counts


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("", "spam"), Reason.EMPTY),
        ((" \n", "spam"), Reason.EMPTY),
        *(((text, "spam"), Reason.LOOKS_EMPTY) for text in MISSING),
        (("a text", ""), Reason.UNLABELLED),
        (("a text", "nan"), Reason.UNLABELLED),
        *((("a text", label), Reason.ALIKE) for label in ALIKE if label.strip() not in LABELS),
        *((("a text", label), Reason.SEVERAL) for label in SEVERAL),
        (("a text", "other"), Reason.OUTSIDE),
        (("a text", "spam,other"), Reason.OUTSIDE),
    ],
)  # fmt: skip
def test_a_row_is_left_out_for_its_own_reason(row, reason):
    assert left_out([("a text", "spam"), row, ("another", "ham")]) == {reason: 1}


@pytest.mark.parametrize("text", ["none of these", "nanotech", "a-b", "n", "no", "0", "🙂", "?", "I am null and void"])
def test_a_text_that_says_something_is_used(text):
    assert not looks_empty(text)
    assert left_out([(text, "spam")]) == {}


def test_users_are_needed_where_they_are_named(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text,label,who\na text,spam,u\na text,spam,\n,spam,\n")
    mapping = ColumnMapping("text", "label", "who")
    found = breakdown(read_table(path), mapping, LABELS).left_out(LABELS)
    assert found.counts == {Reason.EMPTY: 1, Reason.NO_USER: 1}
    assert found.rows == 3


def test_lines_that_are_no_rows_are_counted_too(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "x", "label": "spam"}\nnothing\n[1]\n')
    found = breakdown(read_table(path), PLAIN, LABELS).left_out(LABELS)
    assert (found.rows, found.counts) == (3, {Reason.UNREAD: 2})


@given(st.lists(CELLS, min_size=1, max_size=12), st.booleans())
def test_what_is_counted_and_what_takes_part_are_all_rows(rows, merge):
    mapping = MERGED if merge else PLAIN
    found = breakdown(table(rows), mapping, LABELS).left_out(LABELS)
    dataset = to_dataset(table(rows), mapping, "d", LABELS)
    taking_part = sum(record.label in LABELS for record in dataset.records)
    assert found.rows == len(rows)
    assert found.total + taking_part == len(rows)
    assert found.many == (found.total > MOST_SHARE * len(rows))
    before = inspect(table(rows), PLAIN).rows
    assert before.left_out(LABELS).counts == left_out(rows)


@given(st.lists(CELLS, max_size=8), CELLS, st.integers(0, 8), st.booleans())
def test_a_row_more_changes_the_part_of_no_other_row(rows, row, place, merge):
    """Reading labels as one is a function of the cell and of the public label set, as trimming is."""
    mapping = MERGED if merge else PLAIN

    def of(rows):
        return [(each.text, each.label) for each in to_dataset(table(rows), mapping, "d", LABELS).records]

    place %= len(rows) + 1
    before, after = of(rows), of([*rows[:place], row, *rows[place:]])
    own = of([row])
    assert len(own) <= 1
    assert sorted(after) == sorted(before + own)


# Labels that look alike.


def test_labels_that_look_alike_are_read_as_one_where_that_is_said():
    rows = [("a text", label) for label in [*LABELS, *ALIKE]]
    assert left_out(rows)[Reason.ALIKE] == len([label for label in ALIKE if label.strip() not in LABELS])
    assert left_out(rows, MERGED) == {}
    assert {each.label for each in to_dataset(table(rows), MERGED, "d", LABELS).records} == set(LABELS)


def test_labels_are_told_apart_that_a_reader_tells_apart():
    rows = [("a text", label) for label in ("resume", "résumé", "spam", "spams", "s pam")]
    assert {each.label for each in to_dataset(table(rows), MERGED, "d", ("resume", "spam")).records} == {
        "resume", "résumé", "spam", "spams", "s pam",
    }  # fmt: skip


def test_a_set_with_labels_that_look_alike_cannot_be_merged():
    with pytest.raises(UsageError, match="look alike"):
        to_dataset(table([("a text", "SPAM")]), MERGED, "d", ("spam", "Spam"))


def test_merged_labels_have_the_names_of_those_they_are_read_as():
    mapping = ColumnMapping("text", "label", label_names=(("spam", "Unwanted"),), merge_labels=True)
    rows = [("a text", label) for label in ("spam", "SPAM", "Ham ")]
    labels = ("Unwanted", "ham")
    assert [each.label for each in to_dataset(table(rows), mapping, "d", labels).records] == [
        "Unwanted",
        "Unwanted",
        "ham",
    ]


def test_without_a_label_set_the_most_frequent_spelling_stands_for_all():
    rows = [("a text", label) for label in ("Spam", "spam", "spam", "SPAM", "ham")]
    assert label_set(table(rows), MERGED) == ["ham", "spam"]
    assert inspect(table(rows), MERGED).counts == {"spam": 4, "ham": 1}
    assert label_set(table(rows), PLAIN) == ["SPAM", "Spam", "ham", "spam"]


# What is told, and what is refused.


def told(rows, labels=LABELS, **more) -> list[str]:
    lines: list[str] = []
    checked_dataset(table(rows), PLAIN, "d", labels, lines.append, **more)
    return lines


def test_few_rows_are_told_and_many_are_asked_about():
    few = [("a text", "spam")] * 19 + [("", "ham")]
    assert told(few) == ["1 of 20 rows is left out: 1 with an empty text."]
    many = few[1:]
    with pytest.raises(DataError, match="1 of 19 rows is left out: 1 with an empty text.*--allow-left-out"):
        told(many)
    assert len(told(many, allow_left_out=True)) == 1
    assert told([("a text", "spam")]) == []


def test_rows_that_are_dropped_since_they_repeat_another_are_told():
    rows, lines = [("a text", "spam")] * 3 + [("another", "ham"), ("", "ham")], []
    mapping = ColumnMapping("text", "label", drop_duplicates=True)
    dataset = checked_dataset(table(rows), mapping, "d", LABELS, lines.append, allow_left_out=True)
    assert len(dataset.records) == 2
    assert lines[-1] == "Rows that repeat an earlier one, which are dropped as was asked: 2."


def test_the_option_that_merges_is_named_where_it_helps():
    with pytest.raises(DataError, match="--merge-labels"):
        told([("a text", "SPAM")])
    with pytest.raises(DataError) as error:
        told([("a text", "other")])
    assert "--merge-labels" not in str(error.value)


def test_a_label_without_rows_is_named_where_others_are_left_out():
    lines = told([("a text", "Billing, urgent"), ("a text", "spam")], ("Billing", "spam"), allow_left_out=True)
    assert any("No row has the label 'Billing'" in line and "JSON list" in line for line in lines)
    assert not any("No row" in line for line in told([("a text", "spam")], ("rare", "spam")))


def test_no_row_is_quoted():
    lines = told([("zanzibar", "quagga"), ("", "spam"), ("zanzibar", "spam, quagga")], allow_left_out=True)
    assert not any("zanzibar" in line or "quagga" in line for line in lines)


def test_python_is_warned_and_refused_as_the_command_line_is(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text,label\n" + "a text,spam\nanother,ham\n" * 10 + "one,Spam\ntwo,other\n")
    with pytest.raises(DataError, match="2 of 22 rows are left out"):
        api.load(path, LABELS)
    lines: list[str] = []
    data = api.load(path, LABELS, merge_labels=True, tell=lines.append)
    assert data.counted_sizes() == {"spam": 11, "ham": 10}
    assert lines == ["1 of 22 rows is left out: 1 with a label outside the set."]
    with pytest.warns(UserWarning, match="2 of 22 rows"):
        api.load(path, LABELS, allow_left_out=True)


# Names of classes in a Parquet file.


def classes(path: Path, values: list[int | None], names: list[str]) -> Table:
    features = {"text": {"_type": "Value"}, "label": {"names": names, "_type": "ClassLabel"}}
    content = pa.table({"text": [f"a text {i}" for i in range(len(values))], "label": pa.array(values, pa.int64())})
    described = content.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(described, path)
    return read_table(path)


def test_the_names_of_classes_count_as_far_as_they_are_declared_and_minus_one_is_no_label(tmp_path):
    read = classes(tmp_path / "data.parquet", [0, 1, 1, -1, None, 2], ["ham", "spam", "rest"])

    def sizes(*labels: str) -> dict[str, int]:
        return to_dataset(read, understood(read, PLAIN, labels), "d", labels).counted_sizes()

    assert sizes("spam", "ham") == {"spam": 2, "ham": 1}
    assert sizes("0", "1") == {"0": 1, "1": 2}
    assert sizes("-1", "1") == {"-1": 1, "1": 2}
    found = breakdown(read, understood(read, PLAIN, LABELS), LABELS).left_out(LABELS)
    assert found.counts == {Reason.UNLABELLED: 2, Reason.OUTSIDE: 1}
    lines: list[str] = []
    checked_dataset(read, PLAIN, "d", ("0", "1"), lines.append, allow_left_out=True)
    assert any("0 is 'ham', 1 is 'spam', 2 is 'rest'" in line for line in lines)
    assert breakdown(table([("a text", "-1")]), PLAIN, ("-1", "1")).left_out(("-1", "1")).counts == {}


@pytest.mark.parametrize(
    "metadata", [b"", b"[]", b"{", b'{"info": {"features": {"label": {"_type": "ClassLabel"}}}}', b"1"]
)
def test_metadata_that_says_something_else_names_no_classes(tmp_path, metadata):
    content = pa.table({"text": ["a"], "label": [1]}).replace_schema_metadata({b"huggingface": metadata})
    pq.write_table(content, tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet").class_names == {}


def test_the_same_file_is_never_said_to_differ(tmp_path):
    """Labels by their numbers, by the file's names and merged are the same rows; one text more is another file."""
    read = classes(tmp_path / "data.parquet", [0, 1, 1, 0], ["ham", "spam"])
    ledger = PrivacyLedger()
    numbers = to_dataset(read, PLAIN, "data", ("0", "1"))
    ledger.rows.mark(fingerprint(numbers), "seen")
    for mapping, labels in ((PLAIN, LABELS), (MERGED, LABELS), (PLAIN, ("1",))):
        named = to_dataset(read, understood(read, mapping, labels), "data", labels)
        assert ledger.rows.recognise(fingerprint(named)) == []
    other = classes(tmp_path / "data.parquet", [0, 1, 1, 0, 1], ["ham", "spam"])
    assert "differs" in ledger.rows.recognise(fingerprint(to_dataset(other, PLAIN, "data", ("0", "1"))))[0]


# What is guessed of columns.


def guess(**columns: list[str]) -> tuple[str, str]:
    return guess_columns(Table(pd.DataFrame(columns, dtype=pd.StringDtype("python"))))


UNIQUE = [f"value {i}" for i in range(30)]
TWO = ["a", "b"] * 15
LONG = [f"a rather long remark on number {i}" for i in range(30)]


def test_an_id_is_no_label_and_neither_is_a_nested_cell():
    numbers, nested = [str(i % 3) for i in range(30)], ['{"a": 1}'] * 30
    assert guess(id=numbers, data=nested, annotations=["[1]", "[2]"] * 15) == ("", "")
    assert guess(text=LONG, id=numbers, kind=TWO) == ("text", "kind")
    assert guess(text=LONG, user_id=numbers, label=UNIQUE) == ("text", "")
    assert guess(text=LONG, label=UNIQUE, other=TWO) == ("text", "other")
    assert guess(meta=nested, body=LONG, tags=TWO) == ("body", "tags")


@pytest.mark.parametrize("name", ["text", "message", "body", "content", "Customer Message", "reviewText", "comment"])
def test_a_column_that_is_called_a_text_comes_first(name):
    assert guess(**{"a longer note": LONG, name: UNIQUE, "label": TWO}) == (name, "label")
    assert guess(**{"a longer note": LONG, name: TWO, "label": TWO})[0] == "a longer note"  # single letters


def test_a_column_of_ids_is_said_to_be_one():
    rows = list(zip(LONG, UNIQUE, strict=True))
    assert any("looks like an id" in line for line in inspect(table(rows), PLAIN).problems)
    assert any("looks like an id" in line for line in told(rows, ("value 1",), allow_left_out=True))
    assert not any("looks like an id" in line for line in inspect(table(zip(LONG, TWO, strict=True)), PLAIN).problems)


def test_nested_cells_are_named_as_such(tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text("".join(json.dumps({"id": i, "data": {"text": "x"}, "labels": ["spam"]}) + "\n" for i in range(20)))
    read = read_table(path)
    with pytest.raises(DataError, match="2 of them hold nested values"):
        inspect(read, PLAIN)
    assert any("'data' holds nested values" in line for line in inspect(read, ColumnMapping("data", "labels")).problems)
    for text, label in (("", "labels"), ("data", "")):
        with pytest.raises(DataError, match="Name the (text|label) column"):
            inspect(read, ColumnMapping(text, label))
