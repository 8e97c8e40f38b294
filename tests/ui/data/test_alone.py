"""Step 1 where rows are texts alone: what is asked, what is confirmed of them, and what the later steps make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpicl_ui.data.state import Rows
from dpicl_ui.privacy.state import usual
from mechanisms.errors import DataError
from tests.ui.data.test_answered import Asked
from tests.ui.data.test_records import TAB, words


class Letters(Asked):
    """Step 1 with letters, and who wrote them."""

    rows = Rows.ALONE

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.text, self.answer, self.kind = "letter", "label", "Letter"

    def open(self, header: str = "letter,label,who") -> dict[Any, Any]:
        columns = len(header.split(","))
        rows = (",".join([f"dear team this is letter {i}", f"L{i % 3}", f"u{i % 4}"][:columns]) for i in range(40))
        return self.step._upload(self.file("letters.csv", "\n".join([header, *rows])), TAB)

    def confirm(self, *, public: bool = True) -> dict[Any, Any]:
        names = ("Letter", "Label")
        return self.step._confirm(TAB, "mail", [], public, public, "declare", 0.1, *names, self.rows, self.kind, None)


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Letters:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    made = Letters(tmp_path)
    made.open()
    return made


def test_neither_a_label_nor_an_answer_is_asked_for(tab: Letters):
    shown, step = tab.choose(), tab.step
    assert tab.state.columns.rows is Rows.ALONE
    assert shown[step.columns.text].visible
    assert not shown[step.columns.label].visible
    assert not shown[step.names.label.said].visible
    assert shown[step.records.kind].visible
    assert not any(shown[box].visible for box in step._choice.boxes)
    assert "40 rows" in words(shown[step.facts])
    assert "answer" not in shown[step.public.labels_public].label
    again = step._choose_row(TAB, Rows.TEXTS, *tab.said)
    assert again[step.columns.label].visible
    assert again[step.names.label.said].visible
    assert tab.state.columns.rows is Rows.TEXTS


def test_a_file_of_one_column_is_taken_for_texts_alone(tab: Letters):
    shown = tab.open("letter")
    assert shown[tab.step.row] == Rows.ALONE.value
    assert tab.state.columns.rows is Rows.ALONE
    tab.kind = shown[tab.step.records.kind].value
    tab.confirm()
    assert tab.state.confirmed.sizes == {tab.kind: 40}


def test_a_file_without_a_header_is_asked_about_and_its_first_line_is_a_row_where_that_is_said(tab: Letters):
    before = tab.state.file
    shown, reading = tab.open("dear team zanzibar is where I live"), tab.step.reading
    assert shown[reading.card].visible
    assert "zanzibar" not in words(shown[reading.question])
    assert "stays open" in words(shown[tab.step.source.notice])
    assert tab.state.file is before
    shown = tab.step._read_so(TAB, "row", "", "", None, "0")
    assert tab.state.file.table.columns == ["1"]
    assert len(tab.state.file.table.frame) == 41
    assert shown[tab.step.row] == Rows.ALONE.value
    assert tab.state.file.field_names[0] == "Text"


def test_lines_of_one_property_are_records_still(tab: Letters):
    shown = tab.step._upload(tab.file("users.jsonl", '{"user": {"name": "a", "age": 1}}\n' * 3), TAB)
    assert shown[tab.step.row] == Rows.RECORDS.value


def test_what_is_confirmed_are_texts_under_one_name(tab: Letters):
    tab.choose()
    tab.confirm()
    confirmed = tab.state.confirmed
    assert (confirmed.dataset.labels, confirmed.sizes) == (("Letter",), {"Letter": 40})
    first = confirmed.dataset.records[0]
    assert (first.text, first.label, first.output) == ("dear team this is letter 0", "Letter", None)
    template = usual(confirmed)
    assert (template.instruction, template.text, template.label) == (
        "Write one letter with the given kind.",
        "Letter",
        "Kind",
    )
    tab.inspect()  # the same said again takes nothing back
    assert tab.state.confirmed is confirmed


def test_users_are_counted(tab: Letters):
    tab.unit = "who"
    assert "4 users" in words(tab.choose()[tab.step.facts])
    tab.confirm()
    assert tab.state.confirmed.sizes == {"Letter": 4}


def test_names_and_number_are_said_to_be_public_first(tab: Letters):
    tab.choose()
    with pytest.raises(DataError, match="what the rows are called and the number of rows become public"):
        tab.confirm(public=False)


def test_a_typed_name_stays_until_another_column_is_the_text(tab: Letters):
    tab.choose()
    tab.step._called("Missive", "Label", TAB)
    tab.inspect()
    assert tab.state.file.field_names[0] == "Missive"
    tab.text = "who"
    tab.inspect()
    assert tab.state.file.field_names[0] != "Missive"
