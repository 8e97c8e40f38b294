"""The form for a schema: what it describes is what a person said of it, and nothing of it comes from a cell."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.data.state import Records, blank, kind_of, schema_of, with_owner
from mechanisms.data.record_schema import RecordSchema
from mechanisms.errors import StudioError, UsageError

HOSTILE = "<img src=x onerror=alert(1)> ${name} {{name}}"


def form(**lines: dict[str, Any]) -> dict[str, Any]:
    """The form of some columns, each as it is said here."""
    made = blank(lines)
    return made | {"lines": [line | lines[line["name"]] for line in made["lines"]]}


def test_every_type_becomes_what_it_says():
    found = schema_of(
        form(
            title={"limit": 12},
            year={"kind": "number", "limit": 4},
            seen={"kind": "yes-no"},
            genre={"kind": "choice", "values": "Crime, Love\nstory ,Crime,, "},
            cast={"kind": "texts", "limit": 20},
            note={"taken": False},
        )
    )
    properties = found.document["properties"]
    assert list(properties) == found.document["required"] == ["title", "year", "seen", "genre", "cast"]
    assert found.holds('{"title": "a", "year": 9999, "seen": true, "genre": "Love", "cast": ["x"]}')
    for wrong in ({"title": "a" * 13}, {"title": ""}, {"year": 10_000}, {"year": -1}, {"genre": "War"}, {"seen": 1}):
        record = {"title": "a", "year": 9999, "seen": True, "genre": "Love", "cast": ["x"]} | wrong
        assert not found.holds(json.dumps(record))
    assert properties["genre"] == {"enum": ["Crime", "Love", "story"]}


def test_at_first_all_columns_are_texts_of_one_length_whatever_their_names():
    made = blank([HOSTILE, "age", "yes"])
    said = [{name: value for name, value in line.items() if name != "name"} for line in made["lines"]]
    assert said[0] == said[1] == said[2]
    assert list(schema_of(made).document["properties"]) == [HOSTILE, "age", "yes"]


def test_of_many_columns_the_first_are_taken_in():
    names = [f"c{i}" for i in range(50)]
    taken = [line["name"] for line in blank(names)["lines"] if line["taken"]]
    assert 0 < len(taken) < 50
    assert taken == names[: len(taken)]


def test_the_user_column_is_never_part_of_a_record():
    first = form(who={}, title={})
    owned = with_owner(first, "who")
    assert list(schema_of(owned).document["properties"]) == ["title"]
    insisted = owned | {"lines": [line | {"taken": True} for line in owned["lines"]]}
    assert list(schema_of(insisted).document["properties"]) == ["title"]
    assert with_owner(owned, None)["lines"] == first["lines"]
    other = with_owner(owned, "title")
    assert list(schema_of(other).document["properties"]) == ["who"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ({}, "at least one column"),
        ({"a": {"taken": False}}, "at least one column"),
        ({"genre": {"kind": "choice", "values": " , "}}, "values that 'genre' may have"),
        ({"genre": {"kind": "choice", "values": "one"}}, "at least two"),
        ({"a": {"limit": None}}, "'a' needs a number"),
        ({"a": {"limit": 0}}, "'a' must lie between"),
        ({"a": {"limit": 1.5}}, "whole number"),
        ({"a": {"kind": "number", "limit": 99}}, "'a' must lie between"),
        ({"a": {"kind": "pattern"}}, "choose its type"),
        ({"x" * 101: {}}, "1 to 100 letters"),
        ({"": {}}, "1 to 100 letters"),
        ({"a\tb": {}}, "1 to 100 letters"),
    ],
)
def test_what_is_missing_is_named_in_one_line(lines, message):
    with pytest.raises(UsageError, match=message) as refused:
        schema_of(form(**lines))
    assert "\n" not in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
LINES = st.lists(
    st.fixed_dictionaries(
        {"name": JSON, "taken": JSON, "kind": JSON | st.just("choice"), "limit": JSON, "values": JSON}
    )
)


@given(JSON | st.fixed_dictionaries({"lines": LINES}))
def test_whatever_a_page_sends_is_a_schema_or_one_line(sent):
    try:
        made = schema_of(with_owner(sent, "a"))
    except StudioError:
        return
    assert RecordSchema.read(made.text) == made


@pytest.mark.parametrize("given_name", ["", " \n", None, 3, "x" * 41])
def test_a_record_has_a_name(given_name):
    with pytest.raises(UsageError, match="what one record is"):
        kind_of(given_name)
    assert kind_of(" Appointment\n request ") == "Appointment request"


def test_the_order_of_columns_is_part_of_what_is_said():
    one, other = (schema_of(blank(names)) for names in ("ab", "ba"))
    assert Records("Film", one).said != Records("Film", other).said
