"""What a text and a label are called: proposed by columns, chosen by the person, in the prompts of the steps after."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.data.state import DataState, Rows
from dpicl_ui.data.step import DataStep
from dpicl_ui.frame.guard import guarded
from dpicl_ui.frame.sessions import CuratorLedger, Sessions
from mechanisms.accounting import PrivacyLedger
from mechanisms.data.field_names import suggested_names
from mechanisms.errors import SeveralErrors, UsageError
from tests.toy_model import ToyModel
from tests.ui.tabs import lend, services
from tests.ui.trees import text_of

TAB: Any = SimpleNamespace(username=None, session_hash="tab")
HOSTILE = "<img src=x onerror=alert(1)> ${message}"


class Tab:
    """Step 1 without a page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sessions = folder, Sessions()
        self.step = asyncio.run(self._built())

    async def _built(self) -> DataStep:
        with gr.Blocks():
            ledgers = CuratorLedger(PrivacyLedger(self.folder / "home"))
            return DataStep(services(self.sessions, ledgers))

    @property
    def state(self) -> DataState:
        return self.sessions.of(TAB).of(DataState)

    @property
    def names(self) -> tuple[str, str] | None:
        return self.state.file.field_names if self.state.file else None

    def upload(self, *columns: str) -> dict[Any, Any]:
        path = self.folder / "uploads" / "one" / "rows.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = ",".join(f'"{each}"' for each in columns)
        rows = [",".join([f"a rather long text {i}", "xy"[i % 2], "zw"[i % 2]]) for i in range(40)]
        path.write_text("\n".join([head, *rows]), encoding="utf-8")
        return self.step._upload(str(path), TAB)

    def confirm(self, *names: object) -> dict[Any, Any]:
        return self.step._confirm(TAB, "rows", ["x", "y"], True, True, "declare", None, *names, Rows.TEXTS, "", None)


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tab:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return Tab(tmp_path)


def shown(tab: Tab, updates: dict[Any, Any]) -> tuple[Any, Any]:
    return tuple(updates[each].value for each in tab.step.names.inputs)


def test_columns_that_say_something_propose_names(tab: Tab):
    updates = tab.upload("message", "department", "other")
    assert shown(tab, updates) == tab.names == ("Message", "Department")
    tab.confirm(*tab.names)
    assert tab.state.confirmed is not None


def test_columns_that_say_nothing_leave_the_neutral_names(tab: Tab):
    assert shown(tab, tab.upload("text", "label", "other")) == tab.names == ("Text", "Label")


def test_only_names_that_say_nothing_are_asked_for(tab: Tab):
    asked = tab.step.names.asked
    assert "what one text is and what its label is" in text_of(tab.upload("text", "label", "other")[asked])
    shown = tab.step._called("Tweet", "Label", TAB)[asked]
    assert "what its label is" in text_of(shown)
    assert "one text" not in text_of(shown)
    assert tab.step._called("Tweet", "Topic", TAB)[asked] == []
    assert tab.upload("message", "department", "other")[asked] == []


def test_all_that_is_missing_is_told_at_once(tab: Tab):
    tab.upload("text", "label", "other")
    with pytest.raises(SeveralErrors) as missing:
        tab.step._confirm(TAB, " ", ["x"], False, False, "declare", None, "", "Label", Rows.TEXTS, "", None)
    wanted = ("1 to 40 characters", "two labels", "a name", "both boxes")
    assert len(missing.value.lines) == len(wanted)
    assert all(each in line for each, line in zip(wanted, missing.value.lines, strict=True))
    with pytest.raises(SeveralErrors, match="become public.*epsilon for counting"):
        tab.step._confirm(TAB, "d", ["x", "y"], False, False, "measure", 0, "T", "L", Rows.TEXTS, "", None)
    assert tab.state.confirmed is None
    tab.confirm("Text", "Label")
    assert tab.state.confirmed is not None


def test_one_notice_lists_all_that_is_missing(tab: Tab):
    tab.upload("text", "label", "other")
    place = tab.step.public.problem
    given = ("", ["x", "y"], False, True, "declare", None, "Text", "Label", Rows.TEXTS, "", None)
    [shown] = guarded(place)(tab.step._confirm)(TAB, *given)[place]
    assert shown["attributes"]["role"] == "alert"
    assert len(shown["children"][1]["children"]) == 2
    assert "2 things are missing" in text_of(shown)


def test_a_hostile_column_is_no_choice(tab: Tab):
    tab.upload(HOSTILE, "Patient Smith", "other")
    updates = tab.step._read_so(TAB, "names", "", "", None, "0")
    public = {each for names in suggested_names("", "") for each in names}
    for field in (tab.step.names.text, tab.step.names.label):
        assert {value for _, value in updates[field.chips].choices} <= public
    assert tab.names == ("Message", "Label")


def test_other_columns_propose_anew_and_a_user_column_does_not(tab: Tab):
    tab.upload("text", "label", "topic")
    tab.step._called("Letter", "Mood", TAB)
    tab.step._inspect(TAB, Rows.TEXTS, "text", "label", "topic", False, "", None)
    assert tab.names == ("Letter", "Mood")
    updates = tab.step._inspect(TAB, Rows.TEXTS, "text", "topic", "(every row stands for itself)", False, "", None)
    assert shown(tab, updates) == tab.names == ("Text", "Topic")


def test_another_name_takes_back_what_was_confirmed(tab: Tab):
    tab.upload("text", "label", "other")
    tab.confirm("Text", "Label")
    columns = tab.state.columns
    tab.step._called("Review", "Label", TAB)
    assert tab.state.confirmed is None
    assert tab.state.columns is not columns
    assert tab.names == ("Review", "Label")


def test_what_is_confirmed_has_the_names_on_the_screen(tab: Tab):
    tab.upload("text", "label", "other")
    tab.confirm(" Patient\n letter ", "Ward")
    assert tab.state.confirmed is not None
    assert tab.state.confirmed.columns.file.field_names == ("Patient letter", "Ward")


@pytest.mark.parametrize("given", ["", None, "x" * 100])
def test_without_a_name_nothing_is_confirmed(tab: Tab, given):
    tab.upload("text", "label", "other")
    tab.confirm("Text", "Label")
    with pytest.raises(UsageError, match="1 to 40 characters"):
        tab.step._called(given, "Label", TAB)
    assert tab.state.confirmed is None
    with pytest.raises(UsageError, match="1 to 40 characters"):
        tab.confirm(given, "Label")
    assert tab.state.confirmed is None


def test_drafts_of_the_words_are_shown_label_by_label_and_end_where_the_words_change(tab: Tab, monkeypatch):
    tab.upload("message", "topic", "other")
    loader: Any = SimpleNamespace(ready=True, model=ToyModel)
    lend(tab.step.drafts, loader=loader)
    asked: list[str] = []

    def drafts(model: Any, template: Any, label: str, *rest: Any) -> tuple[str, ...]:
        asked.append(f"{template.text} {label}")
        return (f"{label} {HOSTILE}",)

    monkeypatch.setattr("dpicl_ui.data.draft_preview.preview_drafts", drafts)
    shown, labels = tab.step.drafts, ["x", "y"]
    shown._renamed(labels, TAB)
    assert list(shown._write(TAB)) == []  # nobody asked for it
    shown._asked(labels, TAB)
    *_, last = shown._write(TAB)
    said = text_of(last[tab.step.drafts.drafts])
    assert asked == ["Message x", "Message y"]
    assert "Nothing of them was read" in said
    assert f"x {HOSTILE}" in said
    shown._renamed(labels, TAB)
    assert list(shown._write(TAB)) == []  # the words are the same
    tab.step._called("Ticket", "Topic", TAB)
    shown._renamed(labels, TAB)
    going = shown._write(TAB)
    next(going)
    shown._renamed(["y"], TAB)
    assert list(going) == []
    *_, last = shown._write(TAB)
    assert asked[2:] == ["Ticket x", "Ticket y"]
    assert "spinner" not in str(last)


@pytest.fixture
def previews(tab: Tab, monkeypatch):
    """Step 1's preview with a file of the labels x and y, and a model that writes the same draft each time."""
    tab.upload("message", "topic", "other")
    lend(tab.step.drafts, loader=SimpleNamespace(ready=True, model=ToyModel))
    monkeypatch.setattr("dpicl_ui.data.draft_preview.preview_drafts", lambda *given: ("a draft",))
    return tab.step.drafts


def test_words_that_come_back_while_a_preview_ends_are_written_again(previews):
    [waiting] = previews._asked(["x", "y"], TAB)[previews.drafts]
    assert "Waiting" in text_of(waiting)
    going = previews._write(TAB)
    next(going)
    previews._renamed(["x"], TAB)
    assert list(going) == []
    previews._renamed(["x", "y"], TAB)
    *_, last = previews._write(TAB)
    assert "spinner" not in str(last)
    assert "a draft" in str(last)


def test_without_labels_no_preview_is_left_on_the_screen(previews):
    for _ in range(2):
        previews._asked(["x", "y"], TAB)
        going = previews._write(TAB)
        next(going)
        previews._renamed([], TAB)
        assert list(going) == [{previews.drafts: []}]
    previews._asked(["x", "y"], TAB)
    list(previews._write(TAB))
    previews._renamed([], TAB)
    assert list(previews._write(TAB)) == [{previews.drafts: []}]


def test_a_preview_of_another_file_is_none(tab: Tab, previews):
    previews._asked(["x", "y"], TAB)
    list(previews._write(TAB))
    tab.upload("message", "topic", "other")
    assert list(previews._write(TAB)) == []


def test_a_preview_after_confirming_is_whole(tab: Tab, previews):
    tab.confirm("Message", "Topic")
    previews._asked(["x", "y"], TAB)
    *_, last = previews._write(TAB)
    assert "labels" not in str(last)


def test_a_preview_ends_where_the_data_set_is_confirmed_and_does_not_go_on_waiting(tab: Tab, previews):
    previews._asked(["x", "y"], TAB)
    going = previews._write(TAB)
    next(going)
    tab.confirm("Message", "Topic")
    [last] = going
    assert "a draft" in str(last)
    assert "spinner" not in str(last)
    assert "1 of 2 labels" in str(last)


def test_names_that_are_the_same_leave_what_was_confirmed(tab: Tab):
    """A browser sends them again whenever somebody walks over their fields by keys."""
    tab.upload("message", "topic", "other")
    tab.confirm("Message", "Topic")
    tab.step._called("Message", "Topic", TAB)
    confirmed = tab.state.confirmed
    assert confirmed
    mapping = confirmed.columns.mapping
    tab.step._inspect(TAB, "texts", mapping.text, mapping.label, "(every row stands for itself)", False, "Record", None)
    assert tab.state.confirmed is confirmed
    tab.step._called("Ticket", "Topic", TAB)
    assert tab.state.confirmed is None


def test_the_length_of_a_text_is_declared_checked_and_withdraws_what_was_confirmed(tab: Tab):
    tab.upload("message", "topic", "other")
    tab.confirm("Message", "Topic")
    assert tab.state.confirmed
    tab.step._said_length("180", TAB)
    assert tab.state.file is not None
    assert tab.state.file.words == 180
    assert tab.state.confirmed is None
    tab.confirm("Message", "Topic")
    tab.step._said_length("180", TAB)
    assert tab.state.confirmed
    for wrong in ("-3", "999999"):
        with pytest.raises(UsageError, match="1 to 2,000 words"):
            tab.step._said_length(wrong, TAB)
    tab.step._said_length(" ", TAB)
    assert tab.state.file.words is None
