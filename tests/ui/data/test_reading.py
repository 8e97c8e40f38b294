"""Step 1 where it is not clear how a file is read: what is asked, what is shown, and what no answer leaves out."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from dpicl_ui.data.cards import STAYS, Waiting
from dpicl_ui.frame.handlers import guarded
from mechanisms.errors import DataError, SeveralErrors
from mechanisms.runs.plan import settings
from tests.ui.data.tab import NO_USER, TAB, Tab
from tests.ui.tabs import planned
from tests.ui.trees import text_of

SECRET = "Zanzibar quagga lost a card in the old harbour"
TEXTS = {
    "gb18030": "申请贷款需要什么材料",
    "shift_jis": "注文した商品が届きません",
    "windows-1251": "когда придёт мой заказ",
}


class Letters(Tab):
    """Step 1 with letters in some shape."""

    def bring(self, raw: bytes | str, name: str = "letters.csv") -> dict[Any, Any]:
        path = Path(self.file(name, ""))
        path.write_bytes(raw.encode() if isinstance(raw, str) else raw)
        return self.shown(self.step._upload(str(path), TAB))

    def read_so(self, header=None, encoding="", separator="", sheet=None, skip="0") -> dict[Any, Any]:
        return self.shown(self.step._read_so(TAB, header, encoding, separator, sheet, skip))

    @property
    def shown_rows(self) -> list[list[str]]:
        file = self.state.file
        return file.table.frame.to_numpy().tolist() if file else []


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Letters:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return Letters(tmp_path)


def words(shown: Any) -> str:
    return " ".join(text_of(shown).split())


def letters(count: int = 40, label=lambda i: ("card", "loan")[i % 2], header: str = "text,label\n") -> str:
    return header + "".join(f"a letter about a thing {i},{label(i)}\n" for i in range(count))


def workbook(**sheets: list) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


# What is asked.


def test_a_first_line_that_looks_like_a_row_is_asked_about_with_a_look_at_the_rows(tab: Letters):
    shown, reading = tab.bring(f"{SECRET},card\n{letters(header='')}"), tab.step.reading
    assert shown[reading.card].visible
    assert shown[reading.header].value is None
    assert "--" not in words(shown[reading.question])
    assert "Zanzibar" not in words(shown[reading.question])
    assert SECRET in words(shown[reading.look])  # the preview is its owner's screen
    assert tab.step.body not in shown
    assert tab.state.file is None
    as_row = tab.step.reading._look(TAB, "row", "", "", None, "0")
    assert text_of(as_row).index("1") < text_of(as_row).index(SECRET)

    again = tab.read_so()  # nothing said: the same question
    assert again[reading.card].visible
    shown = tab.read_so("row")
    assert shown[tab.step.body].visible
    assert not shown[reading.card].visible
    assert shown[tab.step.public.name] == "letters"
    assert tab.state.file.table.columns == ["1", "2"]
    assert tab.shown_rows[0] == [SECRET, "card"]
    assert (tab.asked.kind, tab.state.file.label_field) == ("text", "Label")
    assert tab.sessions.of(TAB).of(Waiting).files == {}


@pytest.mark.parametrize("encoding", TEXTS)
def test_an_encoding_is_proposed_with_a_look_and_may_be_another_one(tab: Letters, encoding: str):
    text = TEXTS[encoding]
    raw = ("text,label\n" + "".join(f"{text} {i},{'ab'[i % 2]}\n" for i in range(30))).encode(encoding)
    shown, reading = tab.bring(raw), tab.step.reading
    assert shown[reading.encoding].value == encoding
    assert text in words(shown[reading.look])
    assert text not in words(reading._look(TAB, None, "windows-1252", "", None, "0"))
    tab.read_so(encoding=encoding)
    assert tab.shown_rows[0] == [f"{text} 0", "a"]
    assert tab.state.file.table.reading.encoding == encoding


def test_sheets_are_chosen(tab: Letters):
    rows = [line.split(",") for line in letters().splitlines()]
    shown, reading = tab.bring(workbook(One=rows[:9], Two=rows), "letters.xlsx"), tab.step.reading
    assert [each for each, _ in shown[reading.sheet].choices] == ["One", "Two"]
    assert not shown[reading.encoding].visible
    assert not shown[reading.separator].visible
    tab.read_so(sheet="Two")
    assert len(tab.shown_rows) == 40
    tab.bring(workbook(Readme=[("About",)], Data=rows), "letters.xlsx")
    tab.read_so(sheet="Data")
    assert len(tab.shown_rows) == 40


def test_a_file_that_is_refused_or_asked_about_says_that_the_first_one_stays(tab: Letters):
    tab.bring(letters())
    before = tab.state.columns
    assert STAYS not in words(tab.page[tab.step.source.notice])
    for raw in (b"text,label\nx\0,a\n", b"", f"{SECRET},card\n{letters(header='')}"):
        shown = tab.bring(raw)
        assert STAYS in words(shown[tab.step.source.notice])
        assert tab.state.columns is before


# Rows that are left out.


def test_rows_that_are_left_out_are_told_and_many_want_a_tick(tab: Letters):
    shown = tab.bring(letters() + "nan,card\n,loan\na letter,\n")
    told = words(shown[tab.step.facts])
    assert "3 of 43 rows are left out: 1 with an empty text, 1 with a text such as" in told
    assert shown[tab.step.public.left_out].visible
    assert not shown[tab.step.public.left_out].value
    with pytest.raises(DataError, match="Go on without the rows"):
        tab.confirm(["card", "loan"])
    tab.step._allow(True, TAB)
    tab.confirm(["card", "loan"])
    assert tab.state.confirmed is not None
    assert "left" not in settings_text(tab)

    shown = tab.step._choose(["card"], TAB)  # another choice is asked about anew
    assert "23 of 43 rows are left out" in words(shown[tab.step.facts])
    assert not tab.state.columns.allow_left_out
    with pytest.raises(SeveralErrors, match="at least two labels"):
        tab.confirm(["card"], name="")


def settings_text(tab: Letters) -> str:
    confirmed = tab.state.confirmed
    plan = planned(tab.sessions.of(TAB), recipe="vote").plan
    return settings(plan, confirmed.columns.mapping, "mail", reading=confirmed.columns.file.table.reading)


# Labels that look alike, and labels with names in the file.


def test_labels_that_look_alike_are_read_as_one_at_a_click(tab: Letters):
    spelled = ["card", "Card", "card\u200b", "card", "loan"]
    shown = tab.bring(letters(label=lambda i: spelled[i % 5]))
    choice = tab.step.choice
    assert len(shown[tab.step.labels].choices) == 4
    assert "Card" in words(shown[choice.alike])
    assert shown[choice.merge].visible
    shown = tab.step._merge_labels(TAB, "text", "label", NO_USER, False)
    assert [label for label, _ in shown[tab.step.labels].choices] == ["card", "loan"]
    assert not shown[choice.merge].visible
    assert words(shown[choice.alike]) == ""
    tab.confirm(["card", "loan"])
    assert tab.state.confirmed.sizes == {"card": 32, "loan": 8}
    assert "merge-labels: true" in settings_text(tab)


# What is guessed.


def test_no_answer_quotes_a_cell_in_an_error(tab: Letters):
    tab.bring(f"{SECRET},card\n{letters(header='')}")
    shown = guarded(tab.step.reading.look)(tab.step._read_so)(TAB, "row", "", "ab", None, "0")
    assert "Zanzibar" not in text_of(shown[tab.step.reading.look])
