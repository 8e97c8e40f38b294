"""Step 1 where rows are records: their schema from a form or a file, and what is confirmed of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.data.state import DataState, Records, Rows, blank, kind_of, schema_of, with_owner
from dpicl_ui.data.step import DataStep
from dpicl_ui.frame.model_loader import Loaded, ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Sessions
from mechanisms.accounting import PrivacyLedger
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sources import RECORD_EXAMPLES
from mechanisms.errors import DataError, StudioError, UsageError
from mechanisms.runs.forecast import ModelSpeed
from tests.toy_model import ToyModel
from tests.ui.tabs import services
from tests.ui.trees import text_of

TAB: Any = SimpleNamespace(username=None, session_hash="tab")
HOSTILE = "<img src=x onerror=alert(1)>"
NO_USER = "(every row stands for itself)"
SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}}
IMPOSSIBLE = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 1}}, "required": ["n"]}


class Tab:
    """Step 1 without a page, and what is said of a row there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sessions, self.ledger = folder, Sessions(), PrivacyLedger(folder / "home")
        self.loader = ModelLoader("none")
        self.step = asyncio.run(self._built())
        self.kind, self.form, self.unit = "", None, NO_USER

    async def _built(self) -> DataStep:
        with gr.Blocks():
            return DataStep(services(self.sessions, CuratorLedger(self.ledger), self.loader))

    @property
    def state(self) -> DataState:
        return self.sessions.of(TAB).of(DataState)

    def file(self, name: str, text: str) -> str:
        path = self.folder / "uploads" / "one" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def upload(self, name: str = "films.jsonl", **more: Any) -> dict[Any, Any]:
        rows = [{"title": f"Story {i}", "year": 1950 + i, "who": f"u{i % 4}"} | more for i in range(40)]
        if name.endswith(".csv"):
            lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        else:
            lines = [json.dumps(row) for row in rows]
        shown = self.step._upload(self.file(name, "\n".join(lines)), TAB)
        self.kind, self.form = shown[self.step.records.kind].value, shown[self.step.records.form]
        return shown

    @property
    def said(self) -> tuple[Any, ...]:
        return "title", "year", self.unit, False, self.kind, self.form

    def inspect(self, row: str = Rows.RECORDS) -> dict[Any, Any]:
        return self.step._inspect(TAB, row, *self.said)

    def give(self, schema: dict[str, Any]) -> dict[Any, Any]:
        return self.step._give_schema(TAB, self.file("schema.json", json.dumps(schema)), Rows.RECORDS, *self.said)

    def confirm(self, *, public: bool = True, sizes: str = "declare", row: str = Rows.RECORDS) -> dict[Any, Any]:
        texts = ("Text", "Label")
        return self.step._confirm(TAB, "films", [], public, public, sizes, 0.1, *texts, row, self.kind, self.form)


def words(shown: Any) -> str:
    return " ".join(text_of(shown).split())


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tab:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return Tab(tmp_path)


def test_json_lines_are_records_and_a_csv_is_texts_until_a_person_says_otherwise(tab: Tab):
    assert tab.upload()[tab.step.row] == Rows.RECORDS
    assert tab.state.columns.records is not None
    assert tab.upload("films.csv")[tab.step.row] == Rows.TEXTS
    assert tab.state.columns is None or tab.state.columns.records is None
    shown = tab.step._choose_row(TAB, Rows.RECORDS, *tab.said)
    assert shown[tab.step.records.of_records].visible
    assert not shown[tab.step.columns.text].visible
    assert tab.state.columns.records is not None
    assert "40 records" in words(shown[tab.step.facts])


@pytest.mark.parametrize("name", ["films.jsonl", "films.csv"])
def test_what_is_confirmed_are_records_of_the_schema_under_one_name(tab: Tab, name: str):
    tab.upload(name)
    tab.form["lines"][1] |= {"kind": "number", "limit": 4}
    tab.form["lines"][2]["taken"] = False
    tab.kind = "Film"
    tab.inspect()
    tab.confirm()
    confirmed = tab.state.confirmed
    assert confirmed.dataset.labels == ("Film",)
    assert confirmed.sizes == {"Film": 40}
    schema = confirmed.columns.records.schema
    assert all(schema.holds(each.text) for each in confirmed.dataset.records)
    assert confirmed.dataset.records[0].text == '{"title": "Story 0", "year": 1950}'
    assert not (tab.folder / "uploads" / "one" / name).exists()


def test_users_are_counted_and_never_shown_to_the_model(tab: Tab):
    tab.upload()
    tab.unit = "who"
    shown = tab.inspect()
    tab.form = shown[tab.step.records.form]
    assert "4 users" in words(shown[tab.step.facts])
    tab.confirm()
    assert tab.state.confirmed.sizes == {"Record": 4}
    assert not any("u0" in each.text for each in tab.state.confirmed.dataset.records)


def test_a_schema_with_the_user_column_is_refused(tab: Tab):
    tab.upload()
    tab.unit = "title"
    assert "leave it out of the schema" in text_of(tab.give(SCHEMA)[tab.step.records.problem])
    assert tab.state.columns is None


def test_no_cell_reaches_what_is_proposed(tab: Tab):
    shown = tab.upload(secret="yes", years=7)
    assert shown[tab.step.records.form] == blank(["title", "year", "who", "secret", "years"])
    assert "secret value" not in json.dumps(tab.upload(secret="secret value")[tab.step.records.form])


def test_hostile_names_are_plain_values(tab: Tab):
    shown = tab.upload(**{HOSTILE: 1})
    assert [line["name"] for line in shown[tab.step.records.form]["lines"]][-1] == HOSTILE
    tab.confirm()
    assert HOSTILE in tab.state.confirmed.columns.records.schema.document["properties"]


def test_what_the_form_lacks_is_said_beside_it_and_nothing_can_be_confirmed(tab: Tab):
    tab.upload()
    tab.form["lines"][0] |= {"kind": "choice"}
    shown = tab.inspect()
    assert "values that 'title' may have" in text_of(shown[tab.step.records.problem])
    assert tab.state.columns is None
    with pytest.raises(UsageError, match="values that 'title' may have"):
        tab.confirm()
    tab.form["lines"][0] |= {"values": "a, b"}
    assert tab.inspect()[tab.step.records.problem] == []
    assert tab.state.columns is not None


@pytest.mark.parametrize("change", ["form", "kind", "row"])
def test_what_was_changed_without_being_looked_at_is_not_confirmed(tab: Tab, change: str):
    tab.upload()
    if change == "form":
        tab.form["lines"][2]["taken"] = False
    elif change == "kind":
        tab.kind = "Movie"
    else:
        tab.inspect(Rows.TEXTS)
    with pytest.raises(DataError, match="confirm again"):
        tab.confirm()
    assert tab.state.confirmed is None


def test_a_schema_s_file_takes_the_place_of_the_form_and_gives_it_back(tab: Tab):
    tab.upload()
    shown = tab.give(SCHEMA)
    assert not shown[tab.step.records.own].visible
    assert "title" in text_of(shown[tab.step.records.given])
    assert tab.state.columns.records.schema == RecordSchema(SCHEMA)
    tab.form["lines"][0]["kind"] = "pattern"  # what the form says is not asked
    tab.confirm()
    assert tab.state.confirmed is not None
    tab.form["lines"][0]["kind"] = "text"
    shown = tab.step._take_back_schema(TAB, Rows.RECORDS, *tab.said)
    assert shown[tab.step.records.own].visible
    assert shown[tab.step.records.given] == []
    assert tab.state.confirmed is None
    assert list(tab.state.columns.records.schema.document["properties"]) == ["title", "year", "who"]


@pytest.mark.parametrize("text", ["", "[1]", '{"type": "object", "properties": {"a": {"type": "number"}}}', "\ud7ff{"])
def test_what_is_no_schema_changes_nothing(tab: Tab, text: str):
    tab.upload()
    columns = tab.state.columns
    with pytest.raises(UsageError, match="not a JSON schema of records"):
        tab.step._give_schema(TAB, tab.file("schema.json", text), Rows.RECORDS, *tab.said)
    assert tab.state.columns is columns


def test_a_schema_of_other_properties_is_refused_in_one_line(tab: Tab):
    tab.upload()
    shown = tab.give({"type": "object", "properties": {"nothing": {"type": "null"}}})
    assert "No row has any" in text_of(shown[tab.step.records.problem])
    assert tab.state.columns is None


def test_the_same_said_again_takes_nothing_back(tab: Tab):
    tab.upload()
    tab.inspect()
    tab.confirm()
    confirmed = tab.state.confirmed
    assert tab.step.public.labels_public not in tab.inspect()
    assert tab.state.confirmed is confirmed
    tab.kind = "Movie"
    assert tab.inspect()[tab.step.public.labels_public].value is False
    assert tab.state.confirmed is None


def test_schema_and_number_are_said_to_be_public_first(tab: Tab):
    tab.upload()
    tab.inspect()
    with pytest.raises(DataError, match="the schema and the number of records become public"):
        tab.confirm(public=False)
    with pytest.raises(DataError, match="the schema becomes public"):
        tab.confirm(public=False, sizes="measure")


def test_nobody_pays_for_a_measurement_under_a_schema_that_nothing_meets(tab: Tab):
    loader = tab.loader
    loader._loaded = Loaded(ToyModel(), ModelSpeed(1e-3, 1e-3, 1e-3), 0)
    loader._done.set()
    tab.upload(n=1)
    tab.give(IMPOSSIBLE)
    with pytest.raises(UsageError, match="No record can be written"):
        tab.confirm(sizes="measure")
    assert tab.ledger.snapshot("films", "record").epsilon == 0
    tab.give(SCHEMA)
    tab.confirm(sizes="measure")
    assert tab.state.confirmed.measured is not None
    assert tab.ledger.snapshot("films", "record").epsilon == pytest.approx(0.1)


@pytest.mark.parametrize("example", RECORD_EXAMPLES)
def test_a_bundled_example_is_ready_to_be_confirmed(tab: Tab, example):
    shown = tab.step._record_example(example)(TAB)
    tab.kind, tab.form = shown[tab.step.records.kind].value, shown[tab.step.records.form]
    tab.confirm()
    confirmed = tab.state.confirmed
    assert "fictional" in example.title
    assert confirmed.sizes[example.kind] >= 100
    assert all(confirmed.columns.records.schema.holds(each.text) for each in confirmed.dataset.records)


# The form for a schema: what it describes is what a person said of it, and nothing of it comes from a cell.

MARKUP = "<img src=x onerror=alert(1)> ${name} {{name}}"


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
    made = blank([MARKUP, "age", "yes"])
    said = [{name: value for name, value in line.items() if name != "name"} for line in made["lines"]]
    assert said[0] == said[1] == said[2]
    assert list(schema_of(made).document["properties"]) == [MARKUP, "age", "yes"]


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
