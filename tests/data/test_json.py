"""JSON has no header: whatever one object says, the cells of all others under an asked-for column stay."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from mechanisms.data import json_file
from mechanisms.data.columns import ColumnMapping, inspect, to_dataset
from mechanisms.data.table import ReadingQuestion, Table
from mechanisms.errors import DataError, UsageError
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
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_an_array_is_its_objects_as_lines_however_it_is_laid_out(start, between, rows, suffix):
    array = f"{start}[{between}{f',{between}'.join(map(json.dumps, rows))}{between}]{between}"
    if not rows:
        with pytest.raises(DataError, match="Nothing in the file is a JSON object"):
            read(array, suffix)
        return
    assert read(array, suffix).frame.equals(lines(*rows).frame)


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
    with pytest.raises(ReadingQuestion, match="Line 1 is not UTF-8"):
        lines(*rows)
    table = lines(*rows, encoding=encoding)
    assert list(table.frame["text"]) == [first, "café"]
    as_csv = read(b'text\n"caf\xe9"\n' + '"café"\n'.encode(), encoding=encoding)
    assert list(as_csv.frame["text"]) == list(table.frame["text"])
    assert as_csv.remarks == table.remarks != ()


def test_what_is_not_read_is_counted_in_a_remark_that_quotes_nothing():
    table = lines(*ROWS, {"secret ": 1}, {"": 1, "secret  name": 2}, {"a b": 1, "a\nb": 2})
    [remark] = table.remarks
    assert remark.endswith("differ from another of the row only in white space: 2.")
    assert "secret" not in remark


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


# Documents: an array, and the list inside an object.

NESTED = [{"content": {"text": f"text {i}", "more": {"x": i}}, "tags": ["ab"[i % 2]]} for i in range(6)]


@pytest.mark.parametrize("element", ["1", "null", '"x"', "[1]", '{"a": "\\ud800"}', "{}", '{"text": [], "": 1}'])
@pytest.mark.parametrize("at", [0, 2, 5])
def test_an_element_changes_no_cell_of_another_and_is_counted(element, at):
    whole = [*map(json.dumps, ROWS)]
    beside = read(f"[{','.join([*whole[:at], element, *whole[at:]])}]", "json")
    assert usable(beside) == usable(lines(*ROWS))
    assert len(beside.frame) + beside.unread == len(ROWS) + 1


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ('[{"text": "Zanzibar"}, {"text": "x"', "is incomplete at element 2"),
        ('[{"text": "Zanzibar"} {"text": "x"}]', "is incomplete at element 1"),
        ('[{"text": "Zanzibar"}', "is incomplete at element 1"),
        ("[" + "[" * 10_000, "is incomplete at element 1"),
        ('[{"text": "Zanzibar"}]\n{"text": "x"}', "has content after its JSON array"),
        ('[["text", "label"]]', "Nothing in the file is a JSON object"),
    ],
)
def test_a_broken_array_gets_one_line_that_quotes_nothing(raw, message):
    with pytest.raises(DataError, match=message) as refused:
        read(raw, "json")
    assert "Zanzibar" not in str(refused.value)


@pytest.mark.parametrize("indent", [None, 1])
def test_the_list_inside_an_object_holds_the_rows_and_of_several_one_is_asked_for(indent):
    document = {"version": 1, "labels": ["a", "b"], "data": ROWS}
    table = read(json.dumps(document, indent=indent), "json")
    assert usable(table) == usable(lines(*ROWS))
    assert any("the list 'data' holds the rows" in remark for remark in table.remarks)

    several = json.dumps({"splits": {"test": ROWS[:2], "train": ROWS}, "version": 1}, indent=indent)
    with pytest.raises(ReadingQuestion, match="--rows NAME") as question:
        read(several, "json")
    assert question.value.parts == ("splits.test", "splits.train")
    assert question.value.proposed.rows == "splits.train"
    assert usable(read(several, "json", rows="splits.train")) == usable(table)
    with pytest.raises(DataError, match="no list 'splits'"):
        read(several, "json", rows="splits")
    for plain in (json.dumps(ROWS), "\n".join(map(json.dumps, ROWS))):
        with pytest.raises(UsageError, match="leave out --rows"):
            read(plain, "json", rows="data")


def test_an_object_without_a_list_of_objects_is_never_one_row_in_silence():
    nested = {"text": {"en": "x"}, "label": "a"}
    assert any("read as a single row" in remark for remark in read(json.dumps(nested), "json").remarks)
    assert read('{"text": "x", "label": "a"}', "json").remarks == ()


@pytest.mark.parametrize("orient", ["columns", "index", "list"])
@pytest.mark.parametrize("more", [{}, {"spans": [[{"x": 1}], None, []]}, {"score": [1.5, None, 2]}])
def test_columns_in_place_of_rows_are_refused(orient, more):
    frame = pd.DataFrame({"text": ["x", "y", "z"], "label": ["a", "b", "a"], **more})
    raw = json.dumps(frame.to_dict("list")) if orient == "list" else frame.to_json(orient=orient)
    with pytest.raises(DataError, match='holds columns.*orient="records"'):
        read(raw, "json")
    assert list(read(frame.to_json(orient="records"), "json").frame["text"]) == ["x", "y", "z"]


@pytest.mark.parametrize("column", [["x", "y"], ["x"], {"0": "x", "1": "y"}])
def test_a_single_column_in_place_of_rows_is_refused(column):
    with pytest.raises(DataError, match='holds columns.*orient="records"'):
        read(json.dumps({"text": column}), "json")


@pytest.mark.parametrize("index", [True, False])
def test_a_table_that_pandas_splits_is_its_rows(index):
    frame = pd.DataFrame(ROWS, index=None if index else range(7, 12))
    table = read(frame.to_json(orient="split", index=index), "json")
    assert usable(table) == usable(lines(*ROWS))
    assert any("its index is not read" in remark for remark in table.remarks)
    numbered = read(json.dumps({"columns": [0, 1], "data": [["x", "a"]]}), "json")
    assert numbered.columns == ["0", "1"]


@pytest.mark.parametrize("row", [["x"], ["x", "a", "u", "more"], [], "x", None, {"text": "x", "label": "a"}])
def test_a_row_of_a_split_table_changes_no_other_and_is_counted_where_it_does_not_fit(row):
    document = {"columns": ["text", "label", "user"], "data": [[*each.values()] for each in ROWS]}
    alone = usable(read(json.dumps(document), "json"))
    beside = read(json.dumps({**document, "data": [row, *document["data"]]}), "json")
    assert usable(beside) == alone
    assert beside.unread == (not isinstance(row, dict))
    assert [*beside.columns][:2] == ["text", "label"]


@pytest.mark.parametrize(
    "row", [{"text": "hi there", "label": "A"}, {"Body": "hi", "class": 1}, {"text": "x", "y": "A"}]
)
@pytest.mark.parametrize("lists", [1, 2])
def test_a_file_of_one_line_is_its_row_whatever_lists_the_row_has(row, lists):
    row = {
        **row,
        **{f"spans{i}": [{"text": "hi", "label": "B"}, {"text": "there", "label": "B"}] for i in range(lists)},
    }
    line = json.dumps(row)
    alone = read(line, "jsonl", labels=("A", "B"))
    assert alone.frame.equals(read(f"{line}\n{line}", "jsonl").frame.head(1))
    assert any("read as a single row" in remark for remark in alone.remarks)
    assert list(read(line, "jsonl", rows="spans0").frame["text"]) == ["hi", "there"]


@pytest.mark.parametrize("about", [{"version": 1}, {"message": "ok", "code": 200}, {"category": "news", "n": 2}])
def test_what_is_said_about_a_list_makes_no_row(about):
    table = read(json.dumps({**about, "data": ROWS}), "json", labels=("a", "b"))
    assert usable(table) == usable(lines(*ROWS))


# Nested fields have dotted names.


def test_a_field_of_a_nested_value_is_a_column_with_a_dotted_name():
    table = lines(*NESTED)
    assert table.columns == ["content.text", "content.more.x", "tags.0"]
    flat = lines(*({"content.text": f"text {i}", "tags.0": "ab"[i % 2]} for i in range(6)))
    mapping = ColumnMapping("content.text", "tags.0")
    datasets = [to_dataset(each, mapping, "d", ("a", "b")) for each in (table, flat)]
    assert list(datasets[0].content()) == list(datasets[1].content())
    whole = table.column("content.more")
    assert whole is not None
    assert whole[0] == '{"x": 0}'


@pytest.mark.parametrize("nested", [{"a": {"b": "inner"}}, {"a": [{"b": "x"}], "a.b": "literal"}, {}, {"a": "plain"}])
def test_a_name_with_a_dot_is_read_before_a_nested_field_in_each_row_by_itself(nested):
    rows = [{"a": {"b": "inner"}, "a.b": "literal"}, {"a": {"b": "inner"}}, {"a.b": "literal"}]
    cells = lines(*rows, nested).column("a.b")
    assert cells is not None
    assert list(cells)[:3] == ["literal", "inner", "literal"]
    assert list(cells)[3] == ("inner" if nested == {"a": {"b": "inner"}} else nested.get("a.b", ""))


def test_a_second_label_in_a_list_is_told():
    rows = [{"text": f"text {i}", "labels": ["a", "b"][: 1 + (i == 3)]} for i in range(6)]
    told = inspect(lines(*rows), ColumnMapping("text", "labels.0")).problems
    assert any(line == "Rows with a further label in 'labels', which is not read: 1." for line in told)


def test_a_name_of_one_row_is_quoted_in_no_error():
    rows = [{"text": {"body": f"text {i}"}, "label": "a"} for i in range(6)]
    table = lines(*rows, {"text": {"Zanzibar": "x", "message": "y"}, "label": "b"})
    with pytest.raises(DataError, match=r"name 'text\.body' instead") as refused:
        inspect(table, ColumnMapping("body", "label"))
    assert "Zanzibar" not in str(refused.value)
    assert "message" not in str(refused.value)


PEOPLE = ["anna0@x.org", "user 5551234", "5551234", "text_日本", "Anna"]


@pytest.mark.parametrize("person", PEOPLE)
def test_a_name_that_is_a_person_s_is_quoted_in_no_error(person):
    """Objects whose names are people: as the lists of a document, and as fields of one row or of each."""
    document = json.dumps({"text": {person: [{"x": 1}], "body": [{"x": 1}]}, "more": {person: [{"x": 1}] * 2}})
    with pytest.raises(ReadingQuestion, match=r"with 3 lists of objects, such as 'text\.body'\.") as question:
        read(document, "json")
    with pytest.raises(DataError, match="no list 'other': it has 3 lists of objects") as refused:
        read(document, "json", rows="other")
    told = [str(question.value), str(refused.value)]
    assert f"more.{person}" in question.value.parts
    for count in (1, 3):
        table = read(json.dumps([{"text": {person: "x"}, "label": "a"}] * count), "json")
        [line, *_] = inspect(table, ColumnMapping("text", "label")).problems
        assert line.endswith("name its field instead.")
        told.append(line)
    assert not any(person in line for line in told)
