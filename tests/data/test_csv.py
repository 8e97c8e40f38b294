"""CSV: a file works or gets one line, and what one row holds never shows in how another one is read."""

from __future__ import annotations

import csv
import io
import itertools
import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting import fingerprint
from mechanisms.data import csv_file as csv_rows
from mechanisms.data.columns import ColumnMapping, Reason, inspect, to_dataset
from mechanisms.data.csv_file import MAX_FURTHER_BYTES, Rows
from mechanisms.data.sources import EXAMPLES, RawFile, read_table
from mechanisms.data.table import Reading, ReadingQuestion
from mechanisms.data.text_lines import encodings_named
from mechanisms.errors import DataError, UsageError
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
        for units in (columns.units_by_label[label], rows.units_by_label[label]):
            assert list(units) == expected == [units[i] for i in range(len(units))]


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


DELIMITERS = [",", ";", "\t", "|"]
MIXED = "utf-8+windows-1252"
CELLS = st.text(st.sampled_from('ab é“ÿ日🎉,;\t|"\r\n\x0b\x85\u2028'), max_size=8)
LABELS = st.sampled_from(["a", "b"])
# Behind a stray quote, a cell that opens with one of these looks like the end of the stray quote's cell.
UNMISTAKABLE = CELLS.filter(lambda cell: not cell or cell[0] not in '\r\n"' + "".join(DELIMITERS))
HOSTILE = [
    b"\xff,a", b'"open,a', b'open,"', b'"', b'"""', b'5" screen,a', b'"5" screen,a', b'"closed" and on,a',
    b'say "hi",b', b"caf\xe9 caf\xc3\xa9,b", b"lone\rreturn,a", b'"lone\rreturn",a', b"short", b'""',
    b"\xef\xbb\xbf,a", b"\xc3,\xa9",
]  # fmt: skip


def parsed(raw: bytes, **said) -> list[list[str]]:
    rows = Rows(RawFile("data.csv", raw), Reading(**said))
    return [rows.first, *rows]


def written(row: list[str], delimiter: str, everything: bool) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL if everything else csv.QUOTE_MINIMAL).writerow(row)
    return text.getvalue()


@given(st.lists(st.tuples(CELLS, LABELS, CELLS)), st.sampled_from(DELIMITERS), st.booleans(), st.sampled_from(
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"]
))  # fmt: skip
def test_what_csv_writes_comes_back(rows, delimiter, everything, encoding):
    content = [["text", "label", "more"], *map(list, rows)]
    text = "".join(written(row, delimiter, everything) for row in content)
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    assert parsed((mark + text).encode(encoding)) == content
    assert list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)) == content


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ('text;"city, street, country"', ["text", "city, street, country"]),
        ('"a, ""b"", c";label', ['a, "b", c', "label"]),
        ('"the\ntext, as it was";label', ["the\ntext, as it was", "label"]),
        ('5" screen;label', ['5" screen', "label"]),
        ('text,a;"b', ["text", 'a;"b']),
    ],
)
def test_the_separator_is_what_the_header_has_most_of_outside_quotes(line, header):
    assert parsed(f"{line}\nx\ny\n".encode()) == [header, ["x", ""], ["y", ""]]


@given(
    st.lists(st.tuples(UNMISTAKABLE, LABELS, st.booleans(), st.sampled_from(["utf-8", "cp1252"])), min_size=1),
    st.sampled_from(HOSTILE),
    st.integers(0, 100),
    st.sampled_from(DELIMITERS),
    st.booleans(),
)
def test_a_record_more_or_less_leaves_every_other_row_as_it_is(rows, hostile, place, delimiter, mark):
    header = ("\ufeff" if mark else "").encode() + f"text{delimiter}label\n".encode()
    records = [
        written([text, label], delimiter, everything).encode(encoding, "replace")
        for text, label, everything, encoding in rows
    ]
    place %= len(records) + 1
    more = [*records[:place], hostile.replace(b",", delimiter.encode()) + b"\n", *records[place:]]
    without, whole = (parsed(header + b"".join(each), encoding=MIXED) for each in (records, more))
    assert len(without) == len(records) + 1
    del whole[place + 1]
    assert whole == without


@pytest.mark.parametrize(
    ("encoding", "last", "remark"),
    [
        ("utf-8", "\ufffd\ufffd", "Lines with bytes that are not utf-8, which are replaced: 1."),
        (MIXED, "ÿ\ufffd", "Lines with bytes that are not utf-8 or windows-1252, which are replaced: 1."),
        ("utf-8+ibm850", "\xa0ü", "Lines that are not utf-8, read as ibm850: 1."),
    ],
)
def test_one_byte_does_not_decode_the_other_rows(encoding, last, remark):
    rows = "".join(f"café {i},a\n" for i in range(100)).encode()
    raw = b"text,label\n" + rows + b"\xff\x81,a\n"
    with pytest.raises(ReadingQuestion, match=r"Line 102 is not UTF-8.*--encoding utf-8\+") as question:
        read(raw)
    assert encodings_named(question.value.proposed.encoding)[0] == "utf-8"
    table = read(raw, encoding=encoding)
    assert list(table.frame["text"]) == [f"café {i}" for i in range(100)] + [last]
    assert table.remarks == (remark,)


@pytest.mark.parametrize("row", ["a,b,c", '"5" wide, flat",a', '"open, and on,a', '"x",a,"y"'])
def test_a_row_that_does_not_fit_is_refused_with_its_line(row):
    raw = f'text,label\n\n"two\nlines",a\n{row}\nx,a\n'.encode()
    with pytest.raises(DataError, match="^Line 5 does not fit"):
        parsed(raw)


def test_what_the_format_cannot_tell_is_taken_as_it_is_written():
    """Public by declaration: lines that together are a well-formed record are one, whoever wrote them."""
    header, stray, closing_line = b"text,label\n", b'"open,a\n', b'12",b\n'
    between = b"x,a\ny,b\n"
    assert parsed(header + stray + between + closing_line)[1:] == [["open,a\nx,a\ny,b\n12", "b"]]
    assert len(parsed(header + stray + between)) == 1 + 3
    assert len(parsed(header + between + closing_line)) == 1 + 3
    # And the lines of a record whose quotes do not pair up are as many rows.
    assert parsed(header + b'"two\nlines" and on,b\n')[1:] == [['"two', ""], ['lines" and on', "b"]]


def test_a_quote_stays_open_for_a_public_number_of_bytes():
    line = b"x" * 99 + b"\n"
    fitting = line * (MAX_FURTHER_BYTES // len(line) - 1)
    (row,) = parsed(b'text,label\n"\n' + fitting + b'",a\n')[1:]
    assert row == ["\n" + fitting.decode(), "a"]
    assert len(parsed(b'text,label\n"\n' + fitting + line + line + b'",a\n')) == 1 + 1 + len(fitting) // 100 + 2 + 1


@pytest.mark.parametrize("line", [b'"x,a\n', b'x","\n', b'x,"\n', b'"""x\n', b'","\n'])
def test_no_line_is_read_ahead_often(line, monkeypatch):
    taken = 0

    class Counted(csv_rows._Lines):
        def __next__(self):
            nonlocal taken
            taken += 1
            return super().__next__()

    monkeypatch.setattr(csv_rows, "_Lines", Counted)
    parsed(b"text,label,more\n" + line * 2000)
    assert taken < 5 * 2000


def test_a_lone_carriage_return_ends_lines_only_where_it_ends_the_header():
    assert parsed(b'text,label\na\rb,"a"\r\nc,b\n')[1:] == [["a\rb", "a"], ["c", "b"]]
    assert parsed(b'text,label\ra,"b\rc"\rd,e\nf\r')[1:] == [["a", "b\rc"], ["d", "e\nf"]]
    assert parsed("\r\rtext,label\ra,b\r".encode("utf-16")) == [["text", "label"], ["a", "b"]]


def test_a_lone_carriage_return_in_a_cell_is_told_with_its_line():
    raw = b'text,label\r\nx,a\r\nlone\rreturn,a\n"two\r\nlines",a\r\nmore\rreturn,b\n'
    remark = "Rows with a carriage return (CR) inside, which does not end a line: 2, first in line 3."
    assert read(raw).remarks == (remark,)
    assert read(b"text,label\r\nx,a\r\ny,b\n").remarks == ()


def test_utf_16_that_does_not_decode_is_refused_with_a_line():
    raw = ("text,label\n" + "é,a\n" * 20_000).encode("utf-16")
    with pytest.raises(DataError, match=r"not a text file: .* after line \d+\.") as caught:
        parsed(raw[:-1])
    assert 10_000 < int(str(caught.value).split("line ")[1].split(".")[0]) <= 20_001


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_bundled_examples_are_what_csv_reads(example):
    with example.path.open(encoding="utf-8", newline="") as file:
        assert parsed(example.path.read_bytes()) == list(csv.reader(file, strict=True))


# Quotes behind a backslash, as Spark and MySQL write them: said, never guessed.

BACKSLASHED = st.text(st.sampled_from('ab é,;\t"\\\n'), max_size=8)


def with_backslashes(cell: str) -> str:
    return '"{}"'.format(cell.replace("\\", "\\\\").replace('"', '\\"'))


@given(st.lists(st.tuples(BACKSLASHED, LABELS), min_size=1), st.sampled_from(DELIMITERS))
def test_quotes_behind_a_backslash_are_read_where_that_is_said(rows, delimiter):
    lines = [delimiter.join(map(with_backslashes, row)) + "\n" for row in [("text", "label"), *rows]]
    assert parsed("".join(lines).encode(), escape="backslash") == [["text", "label"], *map(list, rows)]


@pytest.mark.parametrize(
    "row",
    [
        '"He said \\"hi\\"",a',
        '"He said \\"hi, you\\", then left",a',
        '"a line\nof \\"two\\"",a',
        '"ends with \\"",a\n"b",a',
        "commas\\, many\\, too,a",
    ],
)
def test_a_row_that_fits_with_backslashes_alone_is_asked_about(row):
    raw = f'text,label\n"plain, one",b\n{row}\n'
    with pytest.raises(
        ReadingQuestion, match=r"^Line 3 fits the header only .*--escape backslash.*--escape dou"
    ) as question:
        read(raw)
    assert question.value.proposed.escape == "backslash"
    table = read(raw, escape="backslash")
    assert table.remarks == ()
    assert set(table.frame["label"]) == {"a", "b"}
    assert not any("\\" in text for text in table.frame["text"])


@pytest.mark.parametrize("row", ["C:\\new,a", '"C:\\new\\",a', '"C:\\new, or ""x""",a', "\\N,a", '5" \\ 7",a'])
def test_a_backslash_that_makes_no_difference_is_asked_about_by_nobody(row):
    assert [len(each) for each in parsed(f"text,label\n{row}\nx,b\n".encode())] == [2, 2, 2]


def test_quotes_that_are_said_to_be_doubled_are_not_asked_about():
    assert parsed(b'text,label\n"say \\"hi\\"",a\n', escape="doubled")[1] == ['"say \\"hi\\""', "a"]
    with pytest.raises(UsageError, match="'backslash' or 'doubled'"):
        read("text,label\nx,a\n", escape="\\")


@given(st.lists(st.tuples(BACKSLASHED, LABELS), min_size=1), st.sampled_from(HOSTILE), st.integers(0, 100))
def test_a_record_more_leaves_rows_with_backslashes_as_they_are(rows, hostile, place):
    # As of doubled quotes, behind a stray one a cell may look like its end.
    rows = [row for row in rows if not row[0].startswith(("\n", '"', *DELIMITERS, "\\"))]
    lines = [(",".join(map(with_backslashes, row)) + "\n").encode() for row in rows]
    place %= len(lines) + 1
    whole = parsed(b"text,label\n" + b"".join([*lines[:place], hostile + b"\n", *lines[place:]]),
                   escape="backslash", encoding=MIXED)  # fmt: skip
    del whole[place + 1]
    assert whole[1:] == [list(row) for row in rows]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("first", ["", "\r\r\n", "sep=,\r\r\n"])
def test_a_file_that_was_written_twice_has_the_rows_of_the_one_that_was_written_once(encoding, first):
    once = content().replace("\r\n", "\n").replace("\n", "\r\n")
    twice = read((first + once.replace("\r\n", "\r\r\n")).encode(encoding))
    plain = read(once)
    assert twice.frame.equals(plain.frame)
    assert not any("CR" in remark for remark in twice.remarks)
