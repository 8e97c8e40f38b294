"""Which schemas can be kept, what is put into them, and how a record looks."""

from __future__ import annotations

import json

import pytest

from mechanisms.data.record_schema import MAX_ITEMS, MAX_LENGTH, RecordSchema, rewritten
from mechanisms.errors import UsageError


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
