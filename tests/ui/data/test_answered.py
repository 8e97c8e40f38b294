"""Step 1 where rows are texts with answers: what is asked, what is confirmed of them, and what stays private."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpicl_ui.data.state import Rows
from mechanisms.data.field_names import suggested_answers
from mechanisms.data.sources import ANSWERED_EXAMPLES
from mechanisms.errors import DataError, UsageError
from tests.ui.data.test_records import HOSTILE, NO_USER, TAB, Tab, words

ANSWER = f"zanzibar {HOSTILE}"


class Asked(Tab):
    """Step 1 with questions, their answers and who asked."""

    rows = Rows.ANSWERED

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.text, self.answer, self.kind = "question", "answer", "Question"

    def open(self, answer: str = "answer") -> dict[Any, Any]:
        rows = (f'what is it that row {i} asks,topic,"{ANSWER} {i}",u{i % 4}' for i in range(40))
        self.answer = answer
        header = f'question,topic,"{answer}",who'
        return self.step._upload(self.file("asked.csv", "\n".join([header, *rows])), TAB)

    @property
    def said(self) -> tuple[Any, ...]:
        return self.text, self.answer, self.unit, False, self.kind, None

    def choose(self) -> dict[Any, Any]:
        return self.step._choose_row(TAB, self.rows, *self.said)

    def inspect(self, row: str | None = None) -> dict[Any, Any]:
        return super().inspect(row or self.rows)

    def confirm(self, *, public: bool = True, sizes: str = "declare", row: str = Rows.ANSWERED) -> dict[Any, Any]:
        names = ("Question", "Answer")
        return self.step._confirm(TAB, "asked", [], public, public, sizes, 0.1, *names, row, self.kind, None)


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    made = Asked(tmp_path)
    made.open()
    return made


def test_rows_are_texts_with_answers_where_a_person_says_so(tab: Asked):
    assert tab.state.columns is None or tab.state.columns.rows is Rows.TEXTS
    shown, step = tab.choose(), tab.step
    assert tab.state.columns.rows is Rows.ANSWERED
    assert (shown[step.columns.label].label, shown[step.columns.label].visible) == ("Answer", True)
    assert "never a public label" in shown[step.columns.label].info
    assert shown[step.records.kind].visible
    assert not shown[step.records.of_records].visible
    assert not any(shown[box].visible for box in step._choice.boxes)
    assert "40 rows" in words(shown[step.facts])
    again = step._choose_row(TAB, Rows.TEXTS, *tab.said)
    assert (again[step.columns.label].label, again[step.columns.label].info) == ("Label", "")
    assert not again[step.records.kind].visible


def test_what_is_confirmed_are_texts_and_answers_under_one_name(tab: Asked):
    tab.choose()
    tab.confirm()
    confirmed = tab.state.confirmed
    assert (confirmed.dataset.labels, confirmed.sizes) == (("Question",), {"Question": 40})
    assert confirmed.columns.file.field_names == ("Question", "Answer")
    first = confirmed.dataset.records[0]
    assert (first.text, first.output) == ("what is it that row 0 asks", f"{ANSWER} 0")


def test_no_answer_is_public(tab: Asked):
    shown = tab.choose()
    public = [
        shown[each] for each in (tab.step.labels, *tab.step.public.outputs, *tab.step.names.outputs) if each in shown
    ]
    said = "".join(str(each.get_config() if hasattr(each, "get_config") else each) for each in public)
    assert "zanzibar" not in said
    assert "as private as the texts" in shown[tab.step.public.labels_public].label
    tab.confirm()
    assert ANSWER not in "".join(tab.state.confirmed.dataset.labels)


def test_an_answer_s_name_is_proposed_from_a_list_and_never_from_the_file(tab: Asked):
    tab.open(answer=HOSTILE)
    choices = tab.choose()[tab.step.names.label.chips].choices
    assert {value for _, value in choices} <= set(suggested_answers(""))
    assert suggested_answers("requested_items")[0] == "Item"
    assert suggested_answers(HOSTILE)[0] == "Answer"


def test_users_are_counted(tab: Asked):
    tab.unit = "who"
    assert "4 users" in words(tab.choose()[tab.step.facts])
    tab.confirm()
    assert tab.state.confirmed.sizes == {"Question": 4}


@pytest.mark.parametrize(("text", "unit"), [("answer", NO_USER), ("question", "answer")])
def test_one_column_is_one_thing(tab: Asked, text: str, unit: str):
    tab.text, tab.unit = text, unit
    assert "different columns" in words(tab.choose()[tab.step.records.problem])
    assert tab.state.columns is None
    with pytest.raises(DataError, match="Choose a file"):
        tab.confirm()


@pytest.mark.parametrize("kind", ["", " ", "x" * 41])
def test_without_a_name_for_the_rows_there_is_nothing_to_confirm(tab: Asked, kind: str):
    tab.kind = kind
    assert "1 to 40 characters" in words(tab.choose()[tab.step.records.problem])
    with pytest.raises(UsageError, match="1 to 40 characters"):
        tab.confirm()


def test_the_same_said_again_takes_nothing_back_and_another_name_does(tab: Asked):
    tab.choose()
    tab.confirm()
    confirmed = tab.state.confirmed
    assert tab.step.public.labels_public not in tab.inspect()
    assert tab.state.confirmed is confirmed
    tab.kind = "Query"
    with pytest.raises(DataError, match="confirm again"):
        tab.confirm()
    assert tab.inspect()[tab.step.public.labels_public].value is False
    assert tab.state.confirmed is None


def test_texts_with_labels_are_not_confirmed_as_texts_with_answers(tab: Asked):
    tab.choose()
    tab.inspect(Rows.TEXTS)
    with pytest.raises(DataError, match="confirm again"):
        tab.confirm()


def test_names_and_number_are_said_to_be_public_first(tab: Asked):
    tab.choose()
    with pytest.raises(DataError, match="what the rows are called and the number of rows become public"):
        tab.confirm(public=False)
    with pytest.raises(DataError, match="what the rows are called becomes public"):
        tab.confirm(public=False, sizes="measure")


@pytest.mark.parametrize("example", ANSWERED_EXAMPLES)
def test_a_bundled_example_is_ready_to_be_confirmed(tab: Asked, example):
    shown = tab.step._example(example)(TAB)
    tab.kind = shown[tab.step.records.kind].value
    tab.confirm()
    rows = tab.state.confirmed.dataset.records
    assert "fictional" in example.title
    assert len(rows) >= 100
    assert all(each.output in each.text for each in rows)
