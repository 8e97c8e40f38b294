"""No row is left out without a word: rows are counted by reason. Which take part is a function of each row alone."""

from __future__ import annotations

import io
import json

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
    guess_mapping,
    inspect,
    label_set,
    looks_empty,
    to_dataset,
    understood,
)
from mechanisms.data.label_names import alike
from mechanisms.data.sources import read_table
from mechanisms.data.table import Table
from mechanisms.errors import DataError, UsageError
from tests.data.files import read, table

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


def test_users_are_needed_where_they_are_named():
    users = read("text,label,who\na text,spam,u\na text,spam,\n,spam,\n")
    found = breakdown(users, ColumnMapping("text", "label", "who"), LABELS).left_out(LABELS)
    assert found.counts == {Reason.EMPTY: 1, Reason.NO_USER: 1}
    assert found.sentence.startswith("2 of 3 rows")


def test_lines_that_are_no_rows_are_counted_too():
    lines = read('{"text": "x", "label": "spam"}\nnothing\n[1]\n', "jsonl")
    found = breakdown(lines, PLAIN, LABELS).left_out(LABELS)
    assert found.counts == {Reason.UNREAD: 2}


@given(st.lists(CELLS, min_size=1, max_size=12), st.booleans())
def test_what_is_counted_and_what_takes_part_are_all_rows(rows, merge):
    mapping = MERGED if merge else PLAIN
    found = breakdown(table(rows), mapping, LABELS).left_out(LABELS)
    dataset = to_dataset(table(rows), mapping, "d", LABELS)
    taking_part = sum(record.label in LABELS for record in dataset.records)
    total = sum(found.counts.values())
    assert total + taking_part == len(rows)
    assert found.many == (total > MOST_SHARE * len(rows))
    assert found.sentence.startswith(f"{total} of {len(rows)} rows " if total else "")
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


def test_whole_numbers_with_and_without_a_decimal_point_are_proposed_as_one_label():
    rows = [(f"a text {i}", ["1", "0", "1.0", "-2.00", "1.5"][i % 5]) for i in range(10)]
    labels = ("0", "1", "-2")
    assert left_out(rows, labels=labels) == {Reason.ALIKE: 4, Reason.OUTSIDE: 2}
    assert left_out(rows, MERGED, labels) == {Reason.OUTSIDE: 2}
    assert alike(["1", "1.0", "01", "1.00", "2.0", "10", "1.0.0", "v1.0", "v1"]) == [("1", "1.0", "1.00")]
    assert sorted(inspect(table(rows), MERGED).counts.values()) == [2, 2, 2, 4]


def test_labels_are_told_apart_that_a_reader_tells_apart():
    labels = {"resume", "résumé", "spam", "spams", "s pam"}
    rows = table([("a text", label) for label in sorted(labels)])
    assert {each.label for each in to_dataset(rows, MERGED, "d", ("resume", "spam")).records} == labels
    with pytest.raises(UsageError, match="look alike"):
        to_dataset(table([("a text", "SPAM")]), MERGED, "d", ("spam", "Spam"))


def test_without_a_label_set_the_most_frequent_spelling_stands_for_all():
    rows = [("a text", label) for label in ("Spam", "spam", "spam", "SPAM", "ham")]
    assert label_set(table(rows), MERGED) == ["ham", "spam"]
    assert inspect(table(rows), MERGED).counts == {"spam": 4, "ham": 1}
    assert label_set(table(rows), PLAIN) == ["SPAM", "Spam", "ham", "spam"]


# What is told, and what is refused.


MANY = {"allow_left_out": True}


def told(rows, labels=LABELS, **more) -> list[str]:
    lines: list[str] = []
    checked_dataset(table(rows), PLAIN, "d", labels, lines.append, **more)
    return lines


def test_few_rows_are_told_and_many_are_asked_about():
    few = [(f"a text {i}", "spam") for i in range(19)] + [("", "ham")]
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
    assert lines[-1] == "Rows that repeat an earlier one, dropped as requested: 2."


def test_texts_under_several_labels_and_repeated_rows_are_counted_and_told():
    rows = [("one", "spam"), ("one", "ham"), ("two", "spam"), ("two", "spam"), ("two", "other"), ("three", "ham")]
    lines = told(rows, **MANY)
    assert any(line.startswith("1 text has more than one label.") for line in lines)
    assert any(line.startswith("1 row repeats an earlier row exactly.") for line in lines)
    assert not any("more than one label" in line for line in told([*rows[:1], *rows[2:]], **MANY))
    assert not any("one'" in line or "'two'" in line for line in lines)


def test_what_is_told_says_what_helps_and_quotes_no_row():
    with pytest.raises(DataError, match="--merge-labels"):
        told([("a text", "SPAM")])
    with pytest.raises(DataError, match=r"outside the set\. --allow-left-out"):
        told([("a text", "other")])
    lines = told([("zanzibar", "Billing, urgent"), ("", "spam"), ("quagga", "spam")], ("Billing", "spam"), **MANY)
    assert any("No row has the label 'Billing'" in line and "JSON list" in line for line in lines)
    assert not any(word in line for line in lines for word in ("zanzibar", "quagga", "urgent"))
    assert not any("No row" in line for line in told([("a text", "spam")], ("rare", "spam")))
    ids = [(f"a remark on number {i}", f"value {i}") for i in range(30)]
    assert any("looks like an id" in line for line in told(ids, ("value 1",), **MANY))


def test_python_is_warned_and_refused_as_the_command_line_is(tmp_path):
    path = tmp_path / "data.csv"
    rows = "".join(f"a text {i},spam\nanother {i},ham\n" for i in range(10))
    path.write_text(f"text,label\n{rows}one,Spam\ntwo,other\n")
    with pytest.raises(DataError, match="2 of 22 rows are left out"):
        api.load(path, LABELS)
    lines: list[str] = []
    data = api.load(path, LABELS, merge_labels=True, tell=lines.append)
    assert data.counted_sizes() == {"spam": 11, "ham": 10}
    assert lines == ["1 of 22 rows is left out: 1 with a label outside the set."]
    with pytest.warns(UserWarning, match="2 of 22 rows"):
        api.load(path, LABELS, allow_left_out=True)


# Columns that nobody named.


def test_columns_that_nobody_named_are_those_that_the_app_proposes_and_are_said(tmp_path):
    path, lines = tmp_path / "data.csv", list[str]()
    rows = [(f"a letter about thing {i}", LABELS[i % 2], f"P-{i % 30}") for i in range(60)]
    path.write_text("message,queue,customer\n" + "".join(",".join(row) + "\n" for row in rows))
    data = api.load(path, LABELS, tell=lines.append)
    mapping = guess_mapping(read_table(path))
    assert [(each.text, each.label) for each in data.records] == [row[:2] for row in rows]
    assert f"'{mapping.text}' is taken as the text column and '{mapping.label}' is taken as the label" in lines[0]
    assert (data.user_column, mapping.unit) == (None, "customer")  # a unit is its owner's word
    assert "'customer'" in lines[1]
    lines.clear()
    named = api.load(path, LABELS, text="message", label="queue", user="customer", tell=lines.append)
    assert (named.user_column, lines) == ("customer", [])
    with pytest.warns(UserWarning, match="'queue' is taken as the label column"):
        api.load(path, LABELS, text="message", user="customer")


def test_a_column_that_has_a_role_is_guessed_for_no_other(tmp_path):
    path = tmp_path / "notes.csv"
    rows = [f"a rather long kind of label {'ab'[i % 2]},short {i},person {i % 9} of this town" for i in range(30)]
    path.write_text("\n".join(["kind,said,who", *rows]), encoding="utf-8")
    labels = ["a rather long kind of label a", "a rather long kind of label b"]
    data = api.load(path, labels, label="kind", user="who", tell=[].append)
    assert data.records[0].text == "short 0"


def test_columns_of_the_usual_names_are_taken_in_silence_whatever_else_there_is(tmp_path):
    path, lines = tmp_path / "data.csv", list[str]()
    rows = "".join(f"t{i},{LABELS[i % 2]},a much longer text of another kind {i},{LABELS[0]}\n" for i in range(20))
    path.write_text(f"text,label,full text,queue\n{rows}")
    data = api.load(path, LABELS, tell=lines.append)
    assert [each.text for each in data.records] == [f"t{i}" for i in range(20)]
    assert (data.counted_sizes(), lines) == (dict.fromkeys(LABELS, 10), [])


# Names of classes in a Parquet file.


def classes(values: list[int | None], names: list[str]) -> Table:
    features = {"text": {"_type": "Value"}, "label": {"names": names, "_type": "ClassLabel"}}
    content = pa.table({"text": [f"a text {i}" for i in range(len(values))], "label": pa.array(values, pa.int64())})
    return described(content, json.dumps({"info": {"features": features}}).encode())


def described(content: pa.Table, metadata: bytes) -> Table:
    file = io.BytesIO()
    pq.write_table(content.replace_schema_metadata({b"huggingface": metadata}), file)
    return read(file.getvalue(), "parquet")


def test_the_names_of_classes_count_as_far_as_they_are_declared_and_minus_one_is_no_label():
    found = classes([0, 1, 1, -1, None, 2], ["ham", "spam", "rest"])

    def sizes(*labels: str) -> dict[str, int]:
        return to_dataset(found, understood(found, PLAIN, labels), "d", labels).counted_sizes()

    assert sizes("spam", "ham") == {"spam": 2, "ham": 1}
    assert sizes("0", "1") == {"0": 1, "1": 2}
    assert sizes("-1", "1") == {"-1": 1, "1": 2}
    assert breakdown(found, understood(found, PLAIN, LABELS), LABELS).left_out(LABELS).counts == {
        Reason.UNLABELLED: 2,
        Reason.OUTSIDE: 1,
    }
    lines: list[str] = []
    checked_dataset(found, PLAIN, "d", ("0", "1"), lines.append, allow_left_out=True)
    assert any("0 is 'ham', 1 is 'spam', 2 is 'rest'" in line for line in lines)
    assert breakdown(table([("a text", "-1")]), PLAIN, ("-1", "1")).left_out(("-1", "1")).counts == {}


@pytest.mark.parametrize(
    "metadata", [b"", b"[]", b"{", b'{"info": {"features": {"label": {"_type": "ClassLabel"}}}}', b"1"]
)
def test_metadata_that_says_something_else_names_no_classes(metadata):
    assert described(pa.table({"text": ["a"], "label": [1]}), metadata).class_names == {}


def test_the_same_file_is_never_said_to_differ():
    """Labels by their numbers, by the file's names and merged are the same rows; one text more is another file."""
    found = classes([0, 1, 1, 0], ["ham", "spam"])
    ledger = PrivacyLedger()
    numbers = to_dataset(found, PLAIN, "data", ("0", "1"))
    ledger.rows.mark(fingerprint(numbers), "seen")
    for mapping, labels in ((PLAIN, LABELS), (MERGED, LABELS), (PLAIN, ("1",))):
        named = to_dataset(found, understood(found, mapping, labels), "data", labels)
        assert ledger.rows.recognise(fingerprint(named)) == []
    other = classes([0, 1, 1, 0, 1], ["ham", "spam"])
    assert "differ from" in ledger.rows.recognise(fingerprint(to_dataset(other, PLAIN, "data", ("0", "1"))))[0]
