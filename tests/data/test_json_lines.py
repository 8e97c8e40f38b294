"""JSON Lines have no header: whatever one line says, the cells of all others under an asked-for column stay."""

from __future__ import annotations

import json

import pytest

from mechanisms.data import json_lines
from mechanisms.data.columns import ColumnMapping, inspect, to_dataset
from mechanisms.data.sources import read_table
from mechanisms.data.table import Reading, ReadingAsked
from mechanisms.errors import DataError

ROWS = [{"text": f"text é {i}", "label": "ab"[i % 2], "user": f"u{i}"} for i in range(5)]
MAPPING = ColumnMapping("text", "label", "user")
WIDE = {f"other {i}": i for i in range(150)}
NEIGHBOURS = {
    "a name with white space": json.dumps({"text ": "x", "label": "a", "user": "u"}).encode(),
    "another one": json.dumps({" label": "a", "user\t": "u", "te  xt": "x"}).encode(),
    "no name": json.dumps({"": "x"}).encode(),
    "many names": json.dumps(WIDE).encode(),
    "no UTF-8": b'{"note": "\xe9"}',
    "no text at all": b"\x00\xff\xfe\x81",
    "a byte-order mark": b"\xef\xbb\xbf",
    "no object": b"1",
    "a value of a type": json.dumps({"text": [1], "label": None, "user": 1.5, "x": {"y": 1}}).encode(),
    "the same name twice": b'{"text": "x", "text": "", "label": "a", "user": "u"}',
}


def read(tmp_path, *rows: bytes | dict, encoding: str | None = None):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows))
    return read_table(path, Reading(encoding=encoding))


def usable(table, mapping=MAPPING) -> list[tuple[str, ...]]:
    records = to_dataset(table, mapping, "data", ("a", "b")).records
    return [(record.text, record.label, record.unit or "") for record in records]


@pytest.mark.parametrize("at", [0, 2, 5])
@pytest.mark.parametrize("line", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_a_line_changes_no_cell_of_another(tmp_path, line, at):
    alone = usable(read(tmp_path, *ROWS))
    beside = usable(read(tmp_path, *ROWS[:at], line, *ROWS[at:], encoding="utf-8"))
    assert len(alone) == len(ROWS)
    own = [row for row in beside if row not in alone]
    assert len(own) <= 1
    assert [row for row in beside if row not in own] == alone


@pytest.mark.parametrize("at", [1, 5])
def test_an_array_among_the_lines_is_no_object(tmp_path, at):
    assert usable(read(tmp_path, *ROWS[:at], b"[1]", *ROWS[at:])) == usable(read(tmp_path, *ROWS))


def as_array(rows: list[dict], between: str) -> bytes:
    return f"[{between}{f',{between}'.join(map(json.dumps, rows))}{between}]".encode()


@pytest.mark.parametrize(
    "raw",
    [
        *(start + as_array(ROWS, between) for start in (b"", b"\xef\xbb\xbf \n\t") for between in ("", "\n", "\r\n")),
        json.dumps(ROWS, indent=2).encode(),
        as_array([], "\n"),
    ],
)
def test_an_array_is_refused_however_it_is_laid_out(tmp_path, raw):
    with pytest.raises(DataError, match=r"^This is a JSON array: save one object per line \(JSON Lines\)\.$"):
        read(tmp_path, raw)


def test_one_line_takes_no_column_from_what_is_offered(tmp_path):
    offered = read(tmp_path, WIDE, *ROWS).columns
    assert len(offered) <= 100
    assert {"text", "label", "user"} < set(offered)


def test_what_is_asked_for_is_read_although_it_is_not_offered(tmp_path):
    table = read(tmp_path, *[WIDE] * 6, *ROWS)
    assert not {"text", "label", "user"} & set(table.columns)
    assert len(usable(table)) == len(ROWS)
    with pytest.raises(DataError, match="no column 'texts'"):
        inspect(table, ColumnMapping("texts", "label"))


def test_the_owner_of_a_row_is_read_although_it_is_not_offered(tmp_path):
    table = read(tmp_path, *[WIDE] * 6, *ROWS)
    assert "user" not in table.columns
    sizes = to_dataset(table, MAPPING, "data", ("a", "b")).counted_sizes()
    assert sizes == {"a": 3, "b": 2}


def test_a_line_of_very_many_names_is_left_out_by_itself(tmp_path):
    many = {f"name {i}": i for i in range(100_001)}
    table = read(tmp_path, {"text": "a"}, many, {"text": "b"})
    assert list(table.frame["text"]) == ["a", "b"]
    assert list(table.columns) == ["text"]


def test_lines_that_are_no_object_are_left_out_and_the_others_stay_as_they_were(tmp_path):
    odd = (b"{", b'{"text": "\\ud800"}', b"[" * 5000)
    assert usable(read(tmp_path, *ROWS[:2], *odd, *ROWS[2:])) == usable(read(tmp_path, *ROWS))


def test_a_wide_line_leaves_room_for_as_many_rows_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "MAX_CELLS", 30)
    table = read(tmp_path, *ROWS, WIDE)
    assert len(table.columns) * len(table.frame) <= 30
    assert len(usable(table)) == len(ROWS)


@pytest.mark.parametrize(("encoding", "first"), [("utf-8", "caf\ufffd"), ("utf-8+windows-1252", "café")])
def test_lines_are_decoded_one_by_one_as_records_of_a_csv_are(tmp_path, encoding, first):
    rows = [b'{"text": "caf\xe9"}', '{"text": "café"}'.encode()]
    with pytest.raises(ReadingAsked, match="Line 1 is not UTF-8"):
        read(tmp_path, *rows)
    table = read(tmp_path, *rows, encoding=encoding)
    assert list(table.frame["text"]) == [first, "café"]
    path = tmp_path / "data.csv"
    path.write_bytes(b'text\n"caf\xe9"\n' + '"café"\n'.encode())
    as_csv = read_table(path, Reading(encoding=encoding))
    assert list(as_csv.frame["text"]) == list(table.frame["text"])
    assert as_csv.remarks == table.remarks != ()


def test_what_is_not_read_is_counted_in_a_remark_that_quotes_nothing(tmp_path):
    table = read(tmp_path, *ROWS, {"secret ": 1}, {"": 1, "secret  name": 2})
    assert table.remarks == ("Lines with names that are not read, since they are empty or have extra white space: 2.",)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_they_do_in_any_system(tmp_path, end):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + end.join([json.dumps(row).encode() for row in ROWS] + [b"", b" "]) + end)
    table = read_table(path)
    assert (len(usable(table)), table.remarks) == (len(ROWS), ())


@pytest.mark.parametrize("line", ['"', "{", "3", '{"text": "a"}'])
def test_lines_that_are_left_out_count_as_well_as_rows(tmp_path, monkeypatch, line):
    monkeypatch.setattr(json_lines, "MAX_ROWS", 3)
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a"}\n' * 2 + f"{line}\n")
    assert len(read_table(path).objects) >= 2
    path.write_text('{"text": "a"}\n' * 2 + f"{line}\n" * 2)
    with pytest.raises(DataError, match="more than 2,000,000 rows"):
        read_table(path)
