"""Records: files of them, and their schemas."""

from __future__ import annotations

import json

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping, breakdown, to_dataset
from mechanisms.data.record_schema import MAX_ITEMS, MAX_LENGTH, RecordSchema, rewritten
from mechanisms.data.sources import KIND, RECORD, as_lines, as_records, read_records, read_table
from mechanisms.errors import DataError, UsageError

# Records from JSON Lines and from CSV: row by row, by the schema, whatever else a row says.


SCHEMA = RecordSchema(
    {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "year": {"type": "integer"},
            "cast": {"type": "array", "items": {"type": "string"}},
        },
    }
)


def texts(path) -> list[str]:
    return read_records(path, SCHEMA, "Movie").frame[RECORD].tolist()


def lines(tmp_path, *rows: str):
    path = tmp_path / "films.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_lines_become_records_of_one_kind(tmp_path):
    path = lines(tmp_path, '{"year": 1999, "title": "Älg", "x": 1}', "", '{"cast": ["A"], "title": "B"}')
    table = read_records(path, SCHEMA, "Movie")
    assert table.frame[RECORD].tolist() == ['{"title": "Älg", "year": 1999}', '{"title": "B", "cast": ["A"]}']
    assert set(table.frame[KIND]) == {"Movie"}
    assert table.remarks == ()
    dataset = to_dataset(table, ColumnMapping(RECORD, KIND), "films", ("Movie",))
    assert dataset.counted_sizes() == {"Movie": 2}


def test_lines_that_are_no_object_are_left_out_and_counted_and_the_others_stay_as_they_were(tmp_path):
    good = '{"title": "B"}'
    path = lines(tmp_path, good, "[1]", "{", '{"title": "\\ud800"}', "[" * 5000, good)
    table = read_records(path, SCHEMA, "Movie")
    assert table.frame[RECORD].tolist() == [good, good]
    left_out = breakdown(table, ColumnMapping(RECORD, KIND), ("Movie",)).left_out(("Movie",))
    assert left_out.sentence == "4 of 6 rows are left out: 4 as lines that are no JSON object."


def test_a_row_without_any_property_has_no_text_and_does_not_take_part(tmp_path):
    table = read_records(lines(tmp_path, '{"other": 1}', '{"title": "B"}'), SCHEMA, "Movie")
    assert table.frame[RECORD].tolist() == ["", '{"title": "B"}']
    assert to_dataset(table, ColumnMapping(RECORD, KIND), "films", ("Movie",)).counted_sizes() == {"Movie": 1}


def test_a_csv_and_its_lines_say_the_same(tmp_path):
    path = tmp_path / "films.csv"
    cast = json.dumps(["A", "B"]).replace('"', '""')
    path.write_text(f'year,who,title,cast\n1999,u,12,"{cast}"\n,v,"A, b",C\nabout 1999,w,,\n', encoding="utf-8")
    assert texts(path) == [
        '{"title": "12", "year": 1999, "cast": ["A", "B"]}',
        '{"title": "A, b", "cast": "C"}',
        '{"year": "about 1999"}',
    ]


def test_words_for_yes_and_no_are_booleans_where_the_schema_wants_them_and_nowhere_else(tmp_path):
    path = tmp_path / "films.csv"
    path.write_text("seen,title\nYes,yes\nFALSE,no\n1,true\nmaybe,x\n", encoding="utf-8")
    schema = RecordSchema(SCHEMA.document | {"properties": {"seen": {"type": "boolean"}, "title": {"type": "string"}}})
    found = [json.loads(text) for text in read_records(path, schema, "Movie").frame[RECORD]]
    assert [row["seen"] for row in found] == [True, False, 1, "maybe"]
    assert [row["title"] for row in found] == ["yes", "no", "true", "x"]


def test_lines_are_read_once_and_become_records_of_any_schema(tmp_path):
    rows = [{"title": "A", "x  y": 1}, {"year": 1999, "cast": ["B"]}]
    table = read_table(lines(tmp_path, *map(json.dumps, rows)))
    assert table.columns == ["title", "year", "cast"]
    assert table.frame["cast"].tolist() == ["", '["B"]']
    assert as_records(table, SCHEMA, "Movie").frame[RECORD].tolist() == [
        '{"title": "A"}',
        '{"year": 1999, "cast": ["B"]}',
    ]
    other = RecordSchema({"type": "object", "properties": {"x  y": {"type": "integer"}}})
    assert as_records(table, other, "Thing").frame[RECORD].tolist() == ['{"x  y": 1}', ""]


def test_names_that_have_no_end_are_no_columns_but_the_schema_s_own_are_there(tmp_path):
    rows = [{f"name {i}": i} for i in range(500)] + [{"title": "B"}]
    table = read_table(lines(tmp_path, *map(json.dumps, rows)))
    assert len(table.columns) < 500
    assert as_records(table, SCHEMA, "Movie").frame["title"].tolist()[-1] == "B"


def test_what_is_written_as_lines_is_read_again(tmp_path):
    texts_ = ['{"title": "Ä"}', '{"year": 1}']
    path = tmp_path / "again.ndjson"
    path.write_text(as_lines(texts_), encoding="utf-8")
    assert texts(path) == texts_


def test_users_come_from_a_property_that_the_model_never_sees(tmp_path):
    path = lines(tmp_path, *(json.dumps({"title": f"t{i}", "who": f"u{i % 2}"}) for i in range(6)))
    table = read_records(path, SCHEMA, "Movie")
    dataset = to_dataset(table, ColumnMapping(RECORD, KIND, "who"), "films", ("Movie",))
    assert dataset.counted_sizes() == {"Movie": 2}
    assert not any("u0" in record.text for record in dataset.records)


def test_a_text_inside_a_record_is_known_again(tmp_path, data_folder):
    told = "a long story about a moose and a town"
    records = read_records(lines(tmp_path, json.dumps({"title": told})), SCHEMA, "Movie")
    rows = fingerprint(to_dataset(records, ColumnMapping(RECORD, KIND), "films", ("Movie",))).rows
    other = tmp_path / "other.csv"
    other.write_text(f"title,year\n{told.upper()},1\n")
    read = read_records(other, SCHEMA, "Film")
    again = fingerprint(to_dataset(read, ColumnMapping(RECORD, KIND), "o", ("Film",))).rows
    assert set(rows.tolist()) & set(again.tolist())


@pytest.mark.parametrize("content", ["", "{}\n{}", "[1]\n2\n", '{"other": 1}'])
def test_a_file_without_records_is_refused(tmp_path, content):
    with pytest.raises(DataError):
        read_records(lines(tmp_path, content), SCHEMA, "Movie")


def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path):
    path = tmp_path / "films.jsonl"
    with pytest.raises(DataError, match="cannot be opened"):
        read_records(path, SCHEMA, "Movie")
    path.write_text('{"title": "A"}\n', encoding="utf-16")
    assert len(read_records(path, SCHEMA, "Movie").frame) == 1


def test_the_users_column_is_no_property_of_a_record(tmp_path):
    """No model is to read whose row it is."""
    path = lines(tmp_path, '{"title": "A", "who": "P-17"}')
    assert "P-17" not in str(read_records(path, SCHEMA, "Movie", "who").frame[RECORD].tolist())
    with pytest.raises(DataError, match="leave it out of the schema"):
        read_records(path, SCHEMA, "Movie", "title")


def test_a_csv_without_any_property_is_refused_and_quoted_nowhere(tmp_path):
    path = tmp_path / "films.csv"
    path.write_text("Mr Smith,b\nx,y\n")
    with pytest.raises(DataError, match="rename the columns") as refused:
        read_records(path, SCHEMA, "Movie")
    assert "Smith" not in str(refused.value)


def test_a_line_of_very_many_names_is_left_out_by_itself(tmp_path):
    path = tmp_path / "x.jsonl"
    many = json.dumps({f"name {i}": i for i in range(100_001)})
    path.write_text('{"text": "a"}\n' + many + '\n{"text": "b"}\n')
    table = read_table(path)
    assert list(table.frame["text"]) == ["a", "b"]
    assert list(table.columns) == ["text"]


# Which schemas can be kept, what is put into them, and how a record looks.


def schema(**properties) -> RecordSchema:
    return RecordSchema({"type": "object", "properties": properties})


def test_open_bounds_are_put_in_and_given_ones_kept():
    found = schema(
        a={"type": "string"},
        b={"type": "string", "minLength": MAX_LENGTH + 1},
        c={"type": "array", "items": {"type": "string", "maxLength": 3}},
        d={"type": "integer", "minimum": 5},
        e={"type": "object", "properties": {"f": {"type": "array", "items": {"type": "null"}, "maxItems": 1}}},
    )
    inside = found.document["properties"]
    assert inside["a"]["maxLength"] == MAX_LENGTH
    assert inside["b"]["maxLength"] == MAX_LENGTH + 1
    assert (inside["c"]["maxItems"], inside["c"]["items"]["maxLength"]) == (MAX_ITEMS, 3)
    assert (inside["d"]["minimum"], inside["d"]["maximum"]) == (5, 2**53 - 1)
    assert inside["e"]["properties"]["f"]["maxItems"] == 1
    assert found.document["additionalProperties"] is inside["e"]["additionalProperties"] is False
    assert RecordSchema(found.document) == found


@pytest.mark.parametrize(
    "value",
    [
        {"type": "string", "pattern": "^a*$"},
        {"type": "string", "format": "date"},
        {"type": "number"},
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "null"}, "uniqueItems": True},
        {"$ref": "#"},
        {"anyOf": [{"type": "null"}]},
        {"enum": []},
        {"enum": [1.5]},
        {"enum": ["a\nb"]},
        {"type": "string", "maxLength": 10**9},
        {"type": "array"},
        {},
        True,
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(value):
    with pytest.raises(UsageError, match="fails at properties/a"):
        schema(a=value)


@pytest.mark.parametrize(
    "text", ["", "[1]", '"a"', "{", "NaN", '{"type": "string"}', '{"type": "object"}', '"\\ud800"']
)
def test_what_is_no_schema_of_records_is_refused(text):
    with pytest.raises(UsageError, match="not a JSON schema of records"):
        RecordSchema.read(text)


def test_a_schema_that_is_nested_without_end_is_refused():
    deep = "{" + '"type":"array","items":{' * 5000
    with pytest.raises(UsageError, match="not a JSON schema of records"):
        RecordSchema.read('{"type":"object","properties":{"a":' + deep + "}" * 5003)


def test_the_digest_tells_schemas_apart_by_order_too():
    one, other = {"type": "null"}, {"type": "boolean"}
    digests = {schema(a=one, b=other).digest, schema(b=other, a=one).digest, schema(a=other, b=one).digest}
    assert len(digests) == 3
    assert schema(a=one).digest == RecordSchema.read(schema(a=one).text).digest


def test_a_record_is_put_in_the_schema_s_order_without_what_the_schema_does_not_name():
    found = schema(
        name={"type": "string"},
        tags={
            "type": "array",
            "items": {"type": "object", "properties": {"x": {"type": "null"}, "y": {"type": "null"}}},
        },
    )
    record = {"secret": 1, "tags": [{"y": 2, "z": 3, "x": 1}, "odd"], "name": "Ä"}
    assert found.canonical(record) == '{"name": "Ä", "tags": [{"x": 1, "y": 2}, "odd"]}'
    assert found.canonical({"secret": 1}) == ""


def test_what_a_text_says_decides_whether_it_is_a_record():
    found = schema(n={"type": "integer", "maximum": 3})
    assert found.holds('{"n": 3}')
    assert found.holds("{}")
    for text in ('{"n": 4}', '{"m": 3}', "[]", "{", "", "[" * 100_000):
        assert not found.holds(text)


def test_the_fixed_bytes_are_those_of_the_longest_record_without_its_strings():
    found = schema(
        a={"type": "string"},
        b={"type": "array", "items": {"enum": ["x", "long"]}, "maxItems": 2},
        c={"type": "integer", "minimum": -12, "maximum": 5},
    )
    longest = json.dumps({"a": "", "b": ["long", "long"], "c": -12})
    assert len(longest) <= found.fixed_bytes <= len(longest) + 6


def test_rewriting_changes_nothing_that_is_said():
    assert rewritten('{"a":"\\u00e4\\"",\n"b":[1]}') == '{"a": "ä\\"", "b": [1]}'
