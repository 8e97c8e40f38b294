"""A row of the file is a record: what one record holds never shows in how another one is read."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.data import csv_file as csv_rows
from mechanisms.data.csv_file import MAX_FURTHER_BYTES, Rows
from mechanisms.data.sources import EXAMPLES, RawFile
from mechanisms.data.table import Reading, ReadingAsked
from mechanisms.data.text_lines import encodings_named
from mechanisms.errors import DataError
from tests.data.files import read

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


@given(st.lists(CELLS.filter(lambda cell: "\r" not in cell), min_size=2, max_size=5), st.sampled_from(DELIMITERS))
def test_what_stands_within_the_header_s_quotes_separates_no_cells(header, delimiter):
    content = [header, ["x"] * len(header)]
    assert parsed("".join(written(row, delimiter, True) for row in content).encode()) == content


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
    with pytest.raises(ReadingAsked, match=r"Line 102 is not UTF-8.*--encoding utf-8\+") as asked:
        read(raw)
    assert encodings_named(asked.value.proposed.encoding)[0] == "utf-8"
    table = read(raw, encoding=encoding)
    assert list(table.frame["text"]) == [f"café {i}" for i in range(100)] + [last]
    assert table.remarks == (remark,)


def test_one_quote_does_not_swallow_the_other_rows():
    texts = [f"quoted, {i}" if i % 10 == 9 else f"plain {i}" for i in range(100)]
    rows = "".join(f'"{text}",b\n' if "," in text else f"{text},a\n" for text in texts)
    table = read(f'text,label\n"5 inches,a\n{rows}')
    assert list(table.frame["text"]) == ['"5 inches', *texts]
    assert table.remarks == ("Rows with unpaired quotes, each read literally as one line: 1.",)


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
    remark = "Rows with a carriage return (CR) inside, which ends no line here: 2, first in line 3."
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
