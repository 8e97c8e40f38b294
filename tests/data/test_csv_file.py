"""Every file either works or gets one clear line."""

from __future__ import annotations

import itertools
import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping, Reason, inspect, to_dataset
from mechanisms.data.headers import guess_columns
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.data.table import Reading
from mechanisms.errors import DataError
from mechanisms.files import keyed_digest
from mechanisms.records import Dataset, Record

ROWS = [("déjà vu", "a"), ('he said "no", twice', "b"), ("two\nlines", "a"), ("a;b|c", "b")]


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def content(delimiter: str = ",") -> str:
    return "".join(f"{quoted(t)}{delimiter}{label}\r\n" for t, label in [("text", "label"), *ROWS])


def written(tmp_path, raw: bytes):
    path = tmp_path / "data.csv"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_delimiters_quotes_and_multi_line_cells(tmp_path, delimiter, encoding):
    said = Reading(encoding="windows-1252" if encoding == "cp1252" else None)
    table = read_table(written(tmp_path, content(delimiter).encode(encoding)), said)
    assert table.columns == ["text", "label"]
    assert [tuple(row) for row in table.frame.to_numpy()] == [(t, label) for t, label in ROWS]
    assert bool(table.remarks) == (encoding == "utf-16")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "empty"),
        (b"  \n\n", "empty"),
        (b"text,label\n", "no rows"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "not a text file"),
        (random.Random(1).randbytes(5000), "not a text file"),
        (b"sep=;\n\n", "empty"),
        (b"sep= \na;b\n1;2\n", "no known separator"),
        (b"sep=\x01\na;b\n1;2\n", "no known separator"),
        (b"text,text\na,b\n", "name the columns"),
        (b"text,text,\na,b,c\n", "name the columns"),
        (b",\na,b\n", "name the columns"),
        (b"text,label\na,b,c\nd,e\n", "does not fit"),
        (b"text,label\r\na,b\nc,d\re,f\n", "Line 3 does not fit the header: it has a carriage return"),
        (b'text,label\n"open,b,c\nc,d\n', "Line 2 does not fit"),
        (b"\xff\xfeabc", "not a text file"),
        (b'"' + b"x" * 200_000, "header line has an unpaired quote"),
    ],
)
def test_bad_files_get_one_line(tmp_path, raw, message):
    with pytest.raises(DataError, match=message) as caught:
        read_table(written(tmp_path, raw))
    assert "\n" not in str(caught.value)


def test_a_file_that_calls_itself_tsv_has_tabs_whatever_its_header_says(tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("text, as it came in\tlabel\na, b\tx\n")
    assert read_table(path, Reading(header=True)).columns == ["text, as it came in", "label"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", ":", "^"])
@pytest.mark.parametrize("first", ["sep={}", '"sep={}"', "SEP={}", "sep={0}{0}"])
def test_a_first_line_for_excel_says_the_separator(tmp_path, separator, first):
    lines = [first.format(separator), f'text{separator}"a, b; c"', f'"é, e; d"{separator}x']
    for suffix, end, encoding in itertools.product(
        ("csv", "tsv"), ("\n", "\r\n", "\r"), ("utf-8", "utf-8-sig", "utf-16")
    ):
        path = tmp_path / f"data.{suffix}"
        path.write_bytes(end.join(lines).encode(encoding))
        assert read_table(path).frame.to_dict("records") == [{"text": "é, e; d", "a, b; c": "x"}]


@pytest.mark.parametrize("ends", [",", ",,,", ', "" ,""', ",  ,"])
@pytest.mark.parametrize("row", ["x,a", '"x, y",a', '"two\nlines",a', '5" wide,a'])
def test_empty_cells_beyond_the_last_column_are_no_cells(tmp_path, ends, row):
    table = read_table(written(tmp_path, f"text,label\n{row}{ends}\nz,b\n".encode()))
    plain = read_table(written(tmp_path, f"text,label\n{row}\nz,b\n".encode()))
    if row.startswith("5") and '"' in ends:  # a stray quote: the line is taken literally
        return
    assert table.frame.equals(plain.frame)
    with pytest.raises(DataError, match="does not fit"):
        read_table(written(tmp_path, f"text,label\n{row}{ends},z\nz,b\n".encode()))


@pytest.mark.parametrize("delimiter", [",", ";", "|"])
@pytest.mark.parametrize("around", ["{} ", "{}  ", " {}", " {}  "])
def test_a_quoted_cell_may_have_spaces_around_it(tmp_path, delimiter, around):
    gap = around.format(delimiter)
    lines = [["text", "label"], *([quoted(text), quoted(label)] for text, label in ROWS if "\n" not in text)]
    raw = "".join(gap.join(line) + "\n" for line in lines)
    table = read_table(written(tmp_path, raw.encode()), Reading(header=True))
    assert [tuple(row) for row in table.frame.to_numpy()] == [row for row in ROWS if "\n" not in row[0]]


def test_a_quote_behind_a_space_takes_no_other_line(tmp_path):
    raw = b'text,label\nhe said, "no\nand, "yes" she said\n x, "a ""b"" c" \n'
    rows = read_table(written(tmp_path, raw)).frame.to_numpy().tolist()
    assert rows == [["he said", ' "no'], ["and", ' "yes" she said'], [" x", 'a "b" c']]


def test_a_header_that_only_looks_like_excel_s_line_is_a_header(tmp_path):
    assert read_table(written(tmp_path, b"sep=;,label\na,b\n")).columns == ["sep=;", "label"]


def test_a_header_of_several_lines_works(tmp_path):
    table = read_table(written(tmp_path, b'"the\ntext","the label"\nx,a\ny,b\n'))
    assert table.columns == ["the text", "the label"]
    assert len(table.frame) == 2


def test_a_missing_file_gets_one_line(tmp_path):
    with pytest.raises(DataError, match="cannot be opened"):
        read_table(tmp_path / "nowhere.csv")


def test_a_pipe_can_be_read(tmp_path):
    path = tmp_path / "data.csv"
    os.mkfifo(path)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(path.write_bytes, content().encode())
        assert len(read_table(path).frame) == len(ROWS)
        writing.result()


def test_what_stands_behind_the_first_block_counts(tmp_path):
    padding = "x" * 3_000_000
    raw = f"{chr(10) * 2_000_000}text;label\n{padding};a\né;b\n".encode("cp1252")
    table = read_table(written(tmp_path, raw), Reading(encoding="windows-1252"))
    assert table.columns == ["text", "label"]
    assert list(table.frame["text"]) == [padding, "é"]
    with pytest.raises(DataError, match="not a text file"):
        read_table(written(tmp_path, f"text,label\n{padding},a\n\x00,b\n".encode()))


def test_problems_are_collected_and_shown(tmp_path):
    raw = b"text,label,who\nx,a,1\nx,a,2\n,b,3\ny,,4\nz,b,\n"
    table = read_table(written(tmp_path, raw))
    found = inspect(table, ColumnMapping("text", "label"))
    assert found.counts == {"a": 2, "b": 1}
    assert found.duplicates == 1
    assert found.rows.left_out(()).counts == {Reason.EMPTY: 1, Reason.UNLABELLED: 1}
    assert any("repeat" in line for line in found.problems)
    assert not found.fatal
    assert inspect(table, ColumnMapping("text", "label", drop_duplicates=True)).counts == {"a": 1, "b": 1}
    assert inspect(table, ColumnMapping("text", "label", "who")).counts == {"a": 2}
    assert inspect(table, ColumnMapping("text", "label", "who")).fatal
    with pytest.raises(DataError, match="no column"):
        inspect(table, ColumnMapping("text", "nothing"))
    with pytest.raises(DataError, match="different columns"):
        inspect(table, ColumnMapping("text", "text"))


def test_short_rows_are_empty_cells_and_the_word_nan_is_a_text_that_looks_empty(tmp_path):
    table = read_table(written(tmp_path, b"text,label\nx,a\nNA,b\nlonely\n"))
    found = inspect(table, ColumnMapping("text", "label"))
    assert list(table.frame["label"]) == ["a", "b", ""]
    assert found.counts == {"a": 1}
    assert found.rows.left_out(()).counts == {Reason.LOOKS_EMPTY: 1, Reason.UNLABELLED: 1}


def test_units_group_records_of_one_label(tmp_path):
    table = read_table(written(tmp_path, b"text,label,who\n1,a,u\n2,a,u\n3,b,u\n4,a,v\n"))
    dataset = to_dataset(table, ColumnMapping("text", "label", "who"), "d", ("a", "b"))
    assert dataset.by_user
    assert dataset.counted_sizes() == {"a": 2, "b": 1}
    assert to_dataset(table, ColumnMapping("text", "label"), "d", ("a", "c")).counted_sizes() == {"a": 3, "c": 0}


@pytest.mark.parametrize("by_user", [False, True])
def test_a_table_and_its_rows_one_by_one_are_the_same_data_set(tmp_path, by_user):
    generator = random.Random(5)
    lines = (f"t{i % 40},{generator.choice('abc')},u{generator.randrange(9)}\n" for i in range(200))
    table = read_table(written(tmp_path, ("text,label,who\n" + "".join(lines)).encode()))
    columns = to_dataset(table, ColumnMapping("text", "label", "who" if by_user else None), "d", ("b", "a"))
    rows = Dataset("d", ("b", "a"), tuple(columns.records), "who" if by_user else None)
    assert list(columns.content()) == list(rows.content())
    for label in ("a", "b"):
        grouped: dict[object, list[Record]] = {}
        for i, record in enumerate(rows.records):
            if record.label == label:
                grouped.setdefault(record.unit if by_user else i, []).append(record)
        expected = [tuple(records) for records in grouped.values()]
        for units in (columns.units[label], rows.units[label]):
            assert list(units) == expected == [units[i] for i in range(len(units))]


def test_no_rows_at_all_are_a_data_set():
    for user_column in (None, "who"):
        assert Dataset("d", ("a", "b"), (), user_column).counted_sizes() == {"a": 0, "b": 0}


def test_the_digest_is_that_of_the_rows_under_the_present_key(tmp_path, monkeypatch):
    records = (Record("x", "a"), Record("y", "b", "u"))
    dataset = Dataset("d", ("a", "b"), records)
    digest = fingerprint(dataset).content
    assert digest == fingerprint(dataset).content == fingerprint(Dataset("other", ("a", "b"), records)).content
    assert digest == keyed_digest(["x", "a", "", "y", "b", "u"])
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "another"))
    assert fingerprint(dataset).content != digest


def test_dropping_repetitions_never_ties_one_user_to_another(tmp_path):
    rows = "".join(f"same {i},a,mallory\n" for i in range(5)) + "".join(f"same {i},a,u{i}\n" for i in range(5))
    mapping = ColumnMapping("text", "label", "who", drop_duplicates=True)
    sizes = []
    for content in (rows, "".join(line + "\n" for line in rows.splitlines() if "mallory" not in line)):
        table = read_table(written(tmp_path, ("text,label,who\n" + content).encode()))
        sizes.append(to_dataset(table, mapping, "d", ("a",)).counted_sizes()["a"])
    assert sizes == [6, 5]


def test_a_hundred_megabytes_work(tmp_path):
    line = "x" * 990 + ",a\n" + "y" * 990 + ",b\n"
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("text,label\n")
        for _ in range(100):
            file.write(line * 530)
    assert path.stat().st_size > 100e6
    assert len(read_table(path).frame) == 106_000


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_bundled_examples_are_large_and_clean(example):
    table = read_table(example.path)
    found = inspect(table, example.mapping)
    assert len(table.frame) >= 300
    assert found.problems == ()
    assert min(found.counts.values()) >= 60
    assert guess_columns(table) == (example.mapping.text, example.mapping.label)


def guessed(tmp_path, header, *rows, labels=()):
    path = tmp_path / "guessed.csv"
    path.write_text("\n".join([header, *rows]))
    return guess_columns(read_table(path), labels)


def test_a_column_that_is_called_a_label_is_proposed_before_one_with_fewer_values(tmp_path):
    rows = [f"a long text of row {i},{i % 2},kind {i % 5}" for i in range(20)]
    assert guessed(tmp_path, "text,stars,label", *rows) == ("text", "label")
    assert guessed(tmp_path, "text,stars,Ticket_Category", *rows) == ("text", "Ticket_Category")
    assert guessed(tmp_path, "text,stars,other", *rows) == ("text", "stars")
    alike = [f"a long text of row {i},{i % 2},same" for i in range(20)]
    assert guessed(tmp_path, "text,stars,label", *alike) == ("text", "stars")  # it tells no rows apart


def test_in_a_test_file_the_column_with_the_sets_labels_is_proposed(tmp_path):
    rows = [f"a long text of row {i},{i % 2},kind {i % 5}" for i in range(20)]
    assert guessed(tmp_path, "text,label,x", *rows, labels=("kind 1", "kind 2")) == ("text", "x")
    assert guessed(tmp_path, "text,label,x", *rows, labels=("elsewhere",)) == ("text", "label")


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be"])
def test_utf_32_is_refused_by_name_where_it_says_so(tmp_path, encoding):
    path, mark = tmp_path / "x.csv", "" if encoding == "utf-32" else "\ufeff"
    path.write_bytes(f"{mark}text,label\na long text,x\n".encode(encoding))
    with pytest.raises(DataError, match="UTF-32"):
        read_table(path)


def test_more_rows_than_anybody_waits_for_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("mechanisms.data.table.MAX_ROWS", 3)
    path = tmp_path / "x.csv"
    path.write_text("text,label\n" + "a,b\n" * 3)
    assert len(read_table(path).frame) == 3
    path.write_text("text,label\n" + "a,b\n" * 4)
    with pytest.raises(DataError, match="rows: split it"):
        read_table(path)


def test_texts_under_more_than_one_label_are_told(tmp_path):
    rows = [
        "text,label,who",
        "one,a,u",
        "one,b,v",
        "one,b,w",
        "two,a,u",
        "two,c,u",
        "three,a,u",
        "three,a,u",
        "four,b,v",
    ]
    table = read_table(written(tmp_path, "\n".join(rows).encode()))
    for drop in (False, True):
        told = inspect(table, ColumnMapping("text", "label", drop_duplicates=drop)).problems
        assert [line for line in told if line.startswith("2 texts have more than one label. A person")]
    [told] = inspect(table, ColumnMapping("text", "label", "who", drop_duplicates=True)).problems
    assert told.startswith("2 texts have more than one label. Contradictory rows")
    assert "single records" not in told
    once = read_table(written(tmp_path, b"text,label\none,a\none,a\ntwo,b\n"))
    assert not [
        line for line in inspect(once, ColumnMapping("text", "label")).problems if "more than one label" in line
    ]
