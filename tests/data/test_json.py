"""JSON Lines have no header: whatever one line says, the cells of all others under an asked-for column stay."""

from __future__ import annotations

import json

import pytest

from mechanisms.data import json_file
from mechanisms.data.columns import ColumnMapping, inspect, to_dataset
from mechanisms.data.table import ReadingAsked, Table
from mechanisms.errors import DataError
from tests.data.files import read

ROWS = [{"text": f"text é {i}", "label": "ab"[i % 2], "user": f"u{i}"} for i in range(5)]
MAPPING = ColumnMapping("text", "label", "user")
WIDE = {f"other {i}": i for i in range(150)}
NEIGHBOURS = {
    "a name with white space": {"text ": "x", "label": "a", "user": "u"},
    "another one": {" label": "a", "user\t": "u", "te  xt": "x"},
    "no name": {"": "x"},
    "many names": WIDE,
    "too many names": {f"name {i}": i for i in range(100_001)},
    "no UTF-8": b'{"note": "\xe9"}',
    "no text at all": b"\x00\xff\xfe\x81",
    "a byte-order mark": b"\xef\xbb\xbf",
    "no object": b"1",
    "half an object": b"{",
    "half a character": b'{"text": "\\ud800"}',
    "very nested": b"[" * 5000,
    "a value of a type": {"text": [1], "label": None, "user": 1.5, "x": {"y": 1}},
    "the same name twice": b'{"text": "x", "text": "", "label": "a", "user": "u"}',
}


def lines(*rows: bytes | dict, **said: str) -> Table:
    written = (row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)
    return read(b"\n".join(written), "jsonl", **said)


def usable(table: Table) -> list[tuple[str, ...]]:
    records = to_dataset(table, MAPPING, "data", ("a", "b")).records
    return [(record.text, record.label, record.unit or "") for record in records]


@pytest.mark.parametrize("at", [0, 2, 5])
@pytest.mark.parametrize("line", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_a_line_changes_no_cell_of_another(line, at):
    if at == 0 and isinstance(line, bytes) and line.startswith(b"["):
        return  # the whole file would be an array
    alone = usable(lines(*ROWS))
    beside = usable(lines(*ROWS[:at], line, *ROWS[at:], encoding="utf-8"))
    assert len(alone) == len(ROWS)
    own = [row for row in beside if row not in alone]
    assert len(own) <= 1
    assert [row for row in beside if row not in own] == alone


@pytest.mark.parametrize("start", ["", "\ufeff \n\t"])
@pytest.mark.parametrize("between", ["", "\n", "\r\n"])
@pytest.mark.parametrize("rows", [ROWS, []])
def test_an_array_is_refused_however_it_is_laid_out(start, between, rows):
    array = f"{start}[{between}{f',{between}'.join(map(json.dumps, rows))}{between}]"
    with pytest.raises(DataError, match=r"^This is a JSON array: save one object per line \(JSON Lines\)\.$"):
        read(array, "jsonl")


def test_what_is_asked_for_is_read_although_it_is_not_offered():
    offered = lines(WIDE, *ROWS).columns
    assert len(offered) <= 100
    assert {"text", "label", "user"} < set(offered)  # one line takes no column from what is offered
    table = lines(*[WIDE] * 6, *ROWS)
    assert not {"text", "label", "user"} & set(table.columns)
    assert len(usable(table)) == len(ROWS)
    assert to_dataset(table, MAPPING, "data", ("a", "b")).counted_sizes() == {"a": 3, "b": 2}
    with pytest.raises(DataError, match="no column 'texts'"):
        inspect(table, ColumnMapping("texts", "label"))


def test_a_wide_line_leaves_room_for_as_many_rows_as_before(monkeypatch):
    monkeypatch.setattr(json_file, "MAX_CELLS", 30)
    table = lines(*ROWS, WIDE)
    assert len(table.columns) * len(table.frame) <= 30
    assert len(usable(table)) == len(ROWS)


@pytest.mark.parametrize(("encoding", "first"), [("utf-8", "caf\ufffd"), ("utf-8+windows-1252", "café")])
def test_lines_are_decoded_one_by_one_as_records_of_a_csv_are(encoding, first):
    rows = [b'{"text": "caf\xe9"}', '{"text": "café"}'.encode()]
    with pytest.raises(ReadingAsked, match="Line 1 is not UTF-8"):
        lines(*rows)
    table = lines(*rows, encoding=encoding)
    assert list(table.frame["text"]) == [first, "café"]
    as_csv = read(b'text\n"caf\xe9"\n' + '"café"\n'.encode(), encoding=encoding)
    assert list(as_csv.frame["text"]) == list(table.frame["text"])
    assert as_csv.remarks == table.remarks != ()


def test_what_is_not_read_is_counted_in_a_remark_that_quotes_nothing():
    table = lines(*ROWS, {"secret ": 1}, {"": 1, "secret  name": 2})
    assert table.remarks == ("Lines with names that are not read, since they are empty or have extra white space: 2.",)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_they_do_in_any_system(end):
    table = read("\ufeff" + end.join([json.dumps(row) for row in ROWS] + ["", " "]) + end, "jsonl")
    assert (len(usable(table)), table.remarks) == (len(ROWS), ())


@pytest.mark.parametrize("line", ['"', "{", "3", '{"text": "a"}'])
def test_lines_that_are_left_out_count_as_well_as_rows(monkeypatch, line):
    monkeypatch.setattr(json_file, "MAX_ROWS", 3)
    assert len(read('{"text": "a"}\n' * 2 + f"{line}\n", "jsonl").objects) >= 2
    with pytest.raises(DataError, match="more than 2,000,000 rows"):
        read('{"text": "a"}\n' * 2 + f"{line}\n" * 2, "jsonl")
