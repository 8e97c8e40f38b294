"""Every CSV file either works or gets one clear line, and its rows are the data set that they make."""

from __future__ import annotations

import itertools
import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping, Reason, inspect, to_dataset
from mechanisms.data.sources import read_table
from mechanisms.errors import DataError
from mechanisms.files import keyed_digest
from mechanisms.records import Dataset, Record
from tests.data.files import read

ROWS = [("déjà vu", "a"), ('he said "no", twice', "b"), ("two\nlines", "a"), ("a;b|c", "b")]
PLAIN = ColumnMapping("text", "label")


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def content(delimiter: str = ",") -> str:
    return "".join(f"{quoted(t)}{delimiter}{label}\r\n" for t, label in [("text", "label"), *ROWS])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_delimiters_quotes_and_multi_line_cells(delimiter, encoding):
    said = {"encoding": "windows-1252"} if encoding == "cp1252" else {}
    table = read(content(delimiter).encode(encoding), **said)
    assert table.columns == ["text", "label"]
    assert [tuple(row) for row in table.frame.to_numpy()] == ROWS
    assert bool(table.remarks) == (encoding == "utf-16")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "empty"),
        (b"  \n\n", "empty"),
        (b"text,label\n", "no rows"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "not a text file"),
        (random.Random(1).randbytes(5000), "not a text file"),
        (b"text,label\n" + b"x" * 3_000_000 + b",a\n\x00,b\n", "not a text file"),
        (b"sep=;\n\n", "empty"),
        (b"sep= \na;b\n1;2\n", "no known separator"),
        (b"sep=\x01\na;b\n1;2\n", "no known separator"),
        (b"text,text,\na,b,c\n", "name the columns"),
        (b",\na,b\n", "name the columns"),
        (b"text,label\na,b,c\nd,e\n", "does not fit"),
        (b"text,label\r\na,b\nc,d\re,f\n", "Line 3 does not fit the header: it has a carriage return"),
        (b'text,label\n"open,b,c\nc,d\n', "Line 2 does not fit"),
        (b"\xff\xfeabc", "not a text file"),
        (b'"' + b"x" * 200_000, "header line has an unpaired quote"),
        *(("\ufefftext,label\nx,y\n".encode(f"utf-32-{end}"), "UTF-32") for end in ("le", "be")),
    ],
)
def test_bad_files_get_one_line(raw, message):
    with pytest.raises(DataError, match=message) as caught:
        read(raw)
    assert "\n" not in str(caught.value)


def test_a_file_that_calls_itself_tsv_has_tabs_whatever_its_header_says():
    table = read("text, as it came in\tlabel\na, b\tx\n", "tsv", header=True)
    assert table.columns == ["text, as it came in", "label"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", ":", "^"])
@pytest.mark.parametrize("first", ["sep={}", '"sep={}"', "SEP={}", "sep={0}{0}"])
def test_a_first_line_for_excel_says_the_separator(separator, first):
    lines = [first.format(separator), f'text{separator}"a, b; c"', f'"é, e; d"{separator}x']
    for suffix, end, encoding in itertools.product(("csv", "tsv"), ("\n", "\r\n", "\r"), ("utf-8-sig", "utf-16")):
        found = read(end.join(lines).encode(encoding), suffix)
        assert found.frame.to_dict("records") == [{"text": "é, e; d", "a, b; c": "x"}]


@pytest.mark.parametrize("ends", [",", ",,,", ', "" ,""', ",  ,"])
@pytest.mark.parametrize("row", ["x,a", '"x, y",a', '"two\nlines",a', '5" wide,a'])
def test_empty_cells_beyond_the_last_column_are_no_cells(ends, row):
    table, plain = read(f"text,label\n{row}{ends}\nz,b\n"), read(f"text,label\n{row}\nz,b\n")
    if row.startswith("5") and '"' in ends:  # a stray quote: the line is taken literally
        return
    assert table.frame.equals(plain.frame)
    with pytest.raises(DataError, match="does not fit"):
        read(f"text,label\n{row}{ends},z\nz,b\n")


@pytest.mark.parametrize("delimiter", [",", ";", "|"])
@pytest.mark.parametrize("around", ["{} ", "{}  ", " {}", " {}  "])
def test_a_quoted_cell_may_have_spaces_around_it(delimiter, around):
    rows = [row for row in ROWS if "\n" not in row[0]]
    lines = (around.format(delimiter).join(map(quoted, row)) for row in [("text", "label"), *rows])
    table = read("\n".join(lines), header=True)
    assert [tuple(row) for row in table.frame.to_numpy()] == rows


def test_a_quote_behind_a_space_takes_no_other_line():
    rows = read('text,label\nhe said, "no\nand, "yes" she said\n x, "a ""b"" c" \n').frame.to_numpy().tolist()
    assert rows == [["he said", ' "no'], ["and", ' "yes" she said'], [" x", 'a "b" c']]


def test_headers_of_any_form_are_headers():
    assert read("sep=;,label\na,b\n").columns == ["sep=;", "label"]  # it only looks like Excel's line
    assert read('"the\ntext","the label"\nx,a\ny,b\n').columns == ["the text", "the label"]
    wide = read(f"{chr(10) * 2_000_000}text;label\n{'x' * 3_000_000};a\né;b\n".encode("cp1252"), encoding="cp1252")
    assert wide.columns == ["text", "label"]
    assert wide.frame["text"].iloc[1] == "é"


def test_a_missing_file_gets_one_line_and_a_pipe_can_be_read(tmp_path):
    with pytest.raises(DataError, match="cannot be opened"):
        read_table(tmp_path / "nowhere.csv")
    path = tmp_path / "data.csv"
    os.mkfifo(path)
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(path.write_bytes, content().encode())
        assert len(read_table(path).frame) == len(ROWS)
        writing.result()


def test_a_hundred_megabytes_work(tmp_path):
    line = "x" * 990 + ",a\n" + "y" * 990 + ",b\n"
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("text,label\n")
        for _ in range(100):
            file.write(line * 530)
    assert path.stat().st_size > 100e6
    assert len(read_table(path).frame) == 106_000


def test_more_rows_than_anybody_waits_for_are_refused(monkeypatch):
    monkeypatch.setattr("mechanisms.data.table.MAX_ROWS", 3)
    assert len(read("text,label\n" + "a,b\n" * 3).frame) == 3
    with pytest.raises(DataError, match="rows: split it"):
        read("text,label\n" + "a,b\n" * 4)


# Problems of a file, and the data set that it becomes.


def test_problems_are_collected_and_shown():
    table = read("text,label,who\nx,a,1\nx,a,2\n,b,3\ny,,4\nz,b,\nNA,b,5\nlonely\n")
    found = inspect(table, PLAIN)
    assert found.counts == {"a": 2, "b": 1}
    assert found.duplicates == 1
    assert found.rows.left_out(()).counts == {Reason.EMPTY: 1, Reason.LOOKS_EMPTY: 1, Reason.UNLABELLED: 2}
    assert any("repeat" in line for line in found.problems)
    assert not found.fatal
    assert inspect(table, ColumnMapping("text", "label", drop_duplicates=True)).counts == {"a": 1, "b": 1}
    assert inspect(table, ColumnMapping("text", "label", "who")).counts == {"a": 2}
    assert inspect(table, ColumnMapping("text", "label", "who")).fatal
    with pytest.raises(DataError, match="no column"):
        inspect(table, ColumnMapping("text", "nothing"))
    with pytest.raises(DataError, match="different columns"):
        inspect(table, ColumnMapping("text", "text"))


def test_texts_under_more_than_one_label_are_told():
    rows = "one,a,u\none,b,v\none,b,w\ntwo,a,u\ntwo,c,u\nthree,a,u\nthree,a,u\nfour,b,v\n"
    table = read(f"text,label,who\n{rows}")
    for drop in (False, True):
        told = inspect(table, ColumnMapping("text", "label", drop_duplicates=drop)).problems
        assert [line for line in told if line.startswith("2 texts have more than one label. A person")]
    [told] = inspect(table, ColumnMapping("text", "label", "who", drop_duplicates=True)).problems
    assert told.startswith("2 texts have more than one label. Contradictory rows")
    once = inspect(read("text,label\none,a\none,a\ntwo,b\n"), PLAIN).problems
    assert not any("more than one label" in line for line in once)


@pytest.mark.parametrize("by_user", [False, True])
def test_a_table_and_its_rows_one_by_one_are_the_same_data_set(by_user):
    generator = random.Random(5)
    lines = (f"t{i % 40},{generator.choice('abc')},u{generator.randrange(9)}\n" for i in range(200))
    table = read("text,label,who\n" + "".join(lines))
    columns = to_dataset(table, ColumnMapping("text", "label", "who" if by_user else None), "d", ("b", "a"))
    rows = Dataset("d", ("b", "a"), tuple(columns.records), "who" if by_user else None)
    assert columns.by_user == by_user
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


def test_dropping_repetitions_never_ties_one_user_to_another():
    rows = "".join(f"same {i},a,mallory\n" for i in range(5)) + "".join(f"same {i},a,u{i}\n" for i in range(5))
    mapping = ColumnMapping("text", "label", "who", drop_duplicates=True)
    sizes = []
    for each in (rows, "".join(line + "\n" for line in rows.splitlines() if "mallory" not in line)):
        sizes.append(to_dataset(read(f"text,label,who\n{each}"), mapping, "d", ("a",)).counted_sizes()["a"])
    assert sizes == [6, 5]
