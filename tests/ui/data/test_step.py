"""Step 1 without a page: how a file is read, its labels, the words and drafts, and what hangs on the confirmed data."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import openpyxl
import pandas as pd
import pytest

from dpicl_ui.data.cards import STAYS, WaitingFiles, declared, label_counts, proposed_name
from dpicl_ui.data.drafts import DraftPreview, Preview
from dpicl_ui.data.state import ConfirmedData, DataState, InspectedFile
from dpicl_ui.export import DEMO_SET, ExportStep
from dpicl_ui.frame.handlers import guarded
from dpicl_ui.frame.model_loader import WriterOffer
from dpicl_ui.frame.services import CuratorLedger, Session, Sessions
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.cards import outcome
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import PrivacyLedger, fingerprint, text_digests
from mechanisms.asking import Wording
from mechanisms.data.columns import MOST_LABELS, ColumnMapping, inspect
from mechanisms.data.disclosures import CLEAN_VALUES
from mechanisms.data.headers import suggested_names
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import loads
from mechanisms.demos.signature import Signature, check_signature, digest
from mechanisms.errors import DataError, ModelUnavailable, SeveralErrors, UsageError
from mechanisms.inference.models.listed import ModelListing
from mechanisms.public_inputs import DECLARED_COUNTS
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.runs.drafts import DraftRequest
from mechanisms.runs.plan import plan_for
from mechanisms.runs.settings_file import settings
from mechanisms.runs.spec import RunSpec
from tests.toy_model import ToyModel
from tests.ui.data.tab import NO_USER, TAB, Tab
from tests.ui.generate.recording import demo_set
from tests.ui.privacy.test_step import DATASET
from tests.ui.tabs import confirm, downloaded, in_page, lend, planned, services, text_of, write

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

    def read_so(self, header=None, encoding="", separator="", sheet=None, skip="0", **more) -> dict[Any, Any]:
        other = (more.get(each) for each in ("escape", "merged", "rows"))
        return self.shown(self.step._read_so(TAB, header, encoding, separator, sheet, skip, *other))

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
    assert (tab.wording.kind, tab.state.file.label_field) == ("text", "Label")
    assert tab.sessions.of(TAB).of(WaitingFiles).files == {}


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


def test_quotes_behind_a_backslash_merged_cells_and_a_list_are_proposed_with_a_look_and_read_at_a_click(tab: Letters):
    book = openpyxl.Workbook()
    for row in [("label", "text"), *(("ab"[i // 15], f"a letter {i}") for i in range(30))]:
        book.active.append(row)
    book.active.merge_cells("A2:A16")
    book.active.merge_cells("A17:A31")
    file = io.BytesIO()
    book.save(file)
    rows = [{"text": {"en": f"a letter {i}"}, "label": "ab"[i // 15]} for i in range(30)]
    escaped = "".join(f'"a \\"letter\\", {row["label"]} {i}",{row["label"]}\n' for i, row in enumerate(rows))
    for raw, name, said in (
        (f"text,label\n{escaped}", "letters.csv", {"escape": "backslash"}),
        (file.getvalue(), "letters.xlsx", {"merged": "each"}),
        (json.dumps({"test": rows[:1], "train": rows}), "letters.json", {"rows": "train"}),
    ):
        shown, reading = tab.bring(raw, name), tab.step.reading
        for each in ("escape", "merged", "rows", "sheet"):
            assert shown[getattr(reading, each)].visible == (each in said), (name, each)
            assert not said.get(each) or shown[getattr(reading, each)].value == said[each]
        assert "letter" in words(shown[reading.look])
        assert "--" not in words(shown[reading.question])
        read = tab.read_so(**said)
        assert not read[reading.card].visible
        assert tab.state.inspected.inspection.counts == {"a": 15, "b": 15}
        assert len(tab.shown_rows) == 30


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
    before = tab.state.inspected
    assert STAYS not in words(tab.page[tab.step.source.notice])
    for raw in (b"text,label\nx\0,a\n", b"", f"{SECRET},card\n{letters(header='')}"):
        shown = tab.bring(raw)
        assert STAYS in words(shown[tab.step.source.notice])
        assert tab.state.inspected is before


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
    assert not tab.state.inspected.allow_left_out
    with pytest.raises(SeveralErrors, match="at least two labels"):
        tab.confirm(["card"], name="")

    shown = tab.bring("text,label\n" + "a letter,card\n,loan\n" * 10)  # one label is left, with or without a tick
    assert not shown[tab.step.public.left_out].visible


def settings_text(tab: Letters) -> str:
    confirmed = tab.state.confirmed
    plan = planned(tab.sessions.of(TAB), recipe="vote").plan
    return settings(plan, confirmed.inspected.mapping, "mail", reading=confirmed.inspected.file.table.reading)


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


# Many labels, and other names for them: offered at once, one to one, in everything after.


def upload(tab: Tab, count: int):
    rows = "".join(f"a rather long text {i},label_{i % count:03}\n" for i in range(600))
    return tab.shown(tab.step._upload(tab.file("rows.csv", f"text,label\n{rows}"), TAB))


def name_labels(tab: Tab, lines: str):
    return tab.shown(tab.step._name_labels(TAB, lines, "text", "label", NO_USER, False))


@pytest.mark.parametrize("count", [80, MOST_LABELS])
def test_all_labels_that_a_certificate_can_hold_are_offered_and_confirmed_at_once(tab, count):
    shown = upload(tab, count)
    labels = shown[tab.step.labels].value
    assert len(labels) == len(shown[tab.step.labels].choices) == count
    assert f"{count} labels, with " in text_of(shown[tab.step.facts])
    assert tab.state.inspected is not None
    assert not tab.state.inspected.inspection.problems
    tab.confirm(labels)
    assert tab.state.confirmed is not None
    assert len(tab.state.confirmed.dataset.labels) == count


def test_names_stand_in_everything_after_and_a_test_file_is_read_by_them(tab):
    upload(tab, 3)
    labels = name_labels(tab, "".join(f"label_00{i} = Label 00{i}\n" for i in range(3)))[tab.step.labels].value
    assert labels == ["Label 000", "Label 001", "Label 002"]
    tab.confirm(labels)
    assert tab.state.confirmed is not None
    dataset = tab.state.confirmed.dataset
    assert dataset.labels == tuple(labels)
    assert set(dataset.counted_sizes().values()) == {200}
    assert tab.state.names_for(labels) == tab.state.confirmed.inspected.mapping.label_names
    assert tab.state.names_for(["label_000"]) == ()
    back = name_labels(tab, "")[tab.step.labels].value
    assert back == ["label_000", "label_001", "label_002"]
    assert tab.state.confirmed is None


def test_names_are_proposed_open_and_in_use_where_labels_are_written_for_programs(tab):
    shown = upload(tab, 2)
    assert shown[tab.step.choice._naming].open
    assert shown[tab.step.choice.names].value == "label_000 = Label 000\nlabel_001 = Label 001"
    assert "already in use" in shown[tab.step.choice.names].info
    assert shown[tab.step.labels].value == ["Label 000", "Label 001"]
    assert set(tab.state.inspected.inspection.counts) == {"Label 000", "Label 001"}


def test_a_label_that_takes_no_part_is_named_nowhere(tab):
    upload(tab, 3)
    with pytest.raises(UsageError, match="200 of 600 rows are left out: 200 with a label outside the set"):
        tab.confirm(["Label 000", "Label 001"])
    tab.step._allow(True, TAB)
    tab.confirm(["Label 000", "Label 001"])
    confirmed = tab.state.confirmed
    plan = planned(tab.sessions.of(TAB), recipe="vote").plan
    written = settings(plan, confirmed.inspected.mapping, "rows")
    assert "label_000" in written
    assert "label_002" not in written
    assert "Label 002" not in written
    assert "label_002" in {record.label for record in confirmed.dataset.records}


# Label sizes measured with noise: paid for once, claimed by every run on them.


def measured() -> MeasuredSizes:
    return MeasuredSizes({"a": 70, "b": 80}, 0.25, 1e-9, fingerprint(DATASET).content)


def spent(ledger: PrivacyLedger) -> float:
    return ledger.snapshot(DATASET.name, DATASET.unit).epsilon


def test_a_data_set_is_counted_and_charged_once(tmp_path: Path):
    session, ledger = Session(), PrivacyLedger(tmp_path)
    state = session.of(DataState)
    first = state.measured_once(DATASET, 0.1, ledger)
    assert spent(ledger) == pytest.approx(0.1)
    confirm(session, DATASET, first)
    state.withdraw()
    assert state.measured_once(DATASET, 0.5, ledger) is first
    assert spent(ledger) == pytest.approx(0.1)


def test_a_run_on_measured_sizes_claims_the_measurement_and_is_charged_without_it():
    session = Session()
    confirmed = confirm(session, DATASET, measured())
    made = planned(session, recipe="tokens")
    assert made.plan.sizes == measured().sizes == confirmed.sizes
    assert DECLARED_COUNTS not in made.plan.public_inputs
    assert made.claim.epsilon <= made.spec.epsilon
    assert made.charge == pytest.approx(made.plan.release_claim().epsilon)
    assert "a: 70, b: 80" in text_of(outcome(made))


# How the model is asked: words proposed by columns, chosen by the person, in the sentence and in the steps after.

HOSTILE = "<img src=x onerror=alert(1)> ${message}"


# The words.


def test_columns_that_say_something_propose_words(tab: Tab):
    tab.upload("message", "department", "other")
    assert (tab.wording.kind, tab.wording.relation, tab.state.file.label_field) == ("message", "about", "Department")
    assert tab.values()[tab.step.words.kind] == "message"
    tab.upload("review", "sentiment", "other")
    assert (tab.wording.kind, tab.wording.relation) == ("review", "that is")
    tab.confirm()
    assert tab.state.confirmed is not None


def test_a_hostile_column_is_no_proposal(tab: Tab):
    tab.upload(HOSTILE, "Patient Smith", "other")
    tab.shown(tab.step._read_so(TAB, "names", "", "", None, "0"))
    public = {each.lower() for each in suggested_names("", "")[0]}
    assert {value for _, value in tab.step.words.kind.choices} <= public
    assert (tab.wording.kind, tab.state.file.label_field) == ("message", "Label")


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_brings_its_own_words(tab: Tab, example):
    shown = tab.shown(tab.step._example(example)(TAB))
    assert tab.wording == example.wording
    assert tab.step.words.wording(tab.values()) == example.wording
    first = min(read_table(example.path).frame[example.mapping.label])
    assert example.wording.sentence_for(first) in text_of(shown[tab.step.words.sentence_panel])


def test_the_sentence_is_shown_for_the_first_label_as_the_model_will_be_asked(tab: Tab):
    shown = tab.upload("message", "topic", "other")
    assert tab.wording.sentence_for("x") in text_of(shown[tab.step.words.sentence_panel])
    said = tab.say(kind="note", writer="a nurse", reader="a ward", words="x = pain\ny = sleep")
    assert tab.wording.sentence_for("x") in text_of(said[tab.step.words.sentence_panel])
    assert "A nurse writes you one note about pain" in text_of(said[tab.step.words.sentence_panel])
    said = tab.say(relation="on")
    assert "A nurse writes you one note on pain" in text_of(said[tab.step.words.sentence_panel])
    own = tab.say(sentence="Send {label}!")
    assert "Send pain!" in text_of(own[tab.step.words.sentence_panel])
    assert tab.step._choose(["y"], TAB)[tab.step.words.sentence_panel] != own[tab.step.words.sentence_panel]


def test_words_that_are_the_same_leave_what_was_confirmed(tab: Tab):
    """A browser sends them again whenever somebody walks over their fields by keys."""
    tab.upload("message", "topic", "other")
    tab.confirm()
    tab.say()
    confirmed = tab.state.confirmed
    assert confirmed
    tab.inspect("message", "topic")
    assert tab.state.confirmed is confirmed


def test_what_is_confirmed_has_the_words_on_the_screen_and_none_of_labels_that_take_no_part(tab: Tab):
    tab.upload("text", "label", "other")
    tab.step._allow(True, TAB)
    tab.say(words="x = joy\ny = grief")
    tab.confirm(kind=" patient\n letter ", writer="a patient")
    assert tab.state.confirmed is not None
    wording = tab.state.confirmed.wording
    assert (wording.kind, wording.writer, wording.words) == ("patient letter", "a patient", {"x": "joy", "y": "grief"})
    settled = RunSpec.of(**tab.state.confirmed.spec_fields)
    assert settled.wording == wording
    assert (settled.text_field, settled.label_field, settled.sizes) == ("Patient letter", "Label", "counted")


# The last button.


def test_all_that_is_missing_is_told_at_once(tab: Tab):
    tab.upload("text", "label", "other")
    with pytest.raises(SeveralErrors) as missing:
        tab.confirm(["x"], name=" ", public=False, kind="")
    wanted = ("kind of text", "two labels", "a name", "tick it")
    assert len(missing.value.lines) == len(wanted)
    assert all(each in line for each, line in zip(wanted, missing.value.lines, strict=True))
    with pytest.raises(SeveralErrors, match="tick it.*epsilon for counting"):
        tab.confirm(public=False, sizes="measure", epsilon=0)
    assert tab.state.confirmed is None
    tab.confirm()
    assert tab.state.confirmed is not None


# Drafts of the words.


@pytest.fixture
def asked_for(monkeypatch) -> list[str]:
    """What drafts were asked for; a draft ends where nobody waits for it any more."""
    asked: list[str] = []

    def drafts(model: Any, wanted: DraftRequest, randomness: Any, going: Any) -> tuple[str, ...]:
        if not going():
            return ()
        asked.append(wanted.wording.sentence_for(wanted.label))
        return (f"{wanted.label} {HOSTILE}",)

    monkeypatch.setattr("dpicl_ui.data.drafts.preview_drafts", drafts)
    monkeypatch.setattr("dpicl_ui.data.drafts._QUIET", 0.0)
    return asked


@pytest.fixture
def previews(tab: Tab, asked_for) -> DraftPreview:
    """Step 1's preview with a file of the labels x and y, and a model that writes the same draft each time."""
    tab.upload("message", "topic", "other")
    lend(tab.step.drafts, loader=SimpleNamespace(model=ToyModel))
    return tab.step.drafts


def settle(previews: DraftPreview, *labels: str) -> Any:
    return previews._settle([*labels], TAB)


def written(previews: DraftPreview) -> Any:
    *_, last = previews._write(TAB)
    return last[previews.drafts]


def test_drafts_of_each_label_come_by_themselves_and_anew_when_the_words_change(tab: Tab, previews, asked_for):
    assert "Waiting" in text_of(settle(previews, "x", "y"))
    assert f"x {HOSTILE}" in text_of(written(previews))
    assert asked_for == [tab.wording.sentence_for("x"), tab.wording.sentence_for("y")]
    assert settle(previews, "x", "y") == {"__type__": "update"}, "the words are the same"
    assert list(previews._write(TAB)) == []
    tab.say(kind="ticket")
    settle(previews, "x", "y")
    assert "spinner" not in str(written(previews))
    assert "one ticket about" in asked_for[-1]
    settle(previews)
    assert written(previews) == [], "without labels none is left on the screen"


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_language_that_the_model_hardly_knows_is_told_above_its_drafts(previews, monkeypatch, pieces):
    monkeypatch.setattr(ToyModel, "encode", lambda self, text: [5] * pieces * len(text.split()))
    settle(previews, "x", "y")
    assert ("in many pieces" in text_of(written(previews))) is (pieces > 1)


def test_newer_words_end_an_older_preview_and_words_that_come_back_are_written_again(previews, asked_for):
    settle(previews, "x", "y")
    going = previews._write(TAB)
    next(going)
    settle(previews, "x")
    assert [*going] == [{previews.drafts: []}]
    assert asked_for == []
    settle(previews, "x", "y")
    assert "spinner" not in str(written(previews))
    assert len(asked_for) == 2


def test_drafts_that_were_cut_off_are_not_shown_as_of_no_use_where_somebody_came_back_meanwhile(
    previews, asked_for, monkeypatch
):
    def cut_off(model: Any, wanted: DraftRequest, randomness: Any, going: Any) -> tuple[str, ...]:
        previews._leave(TAB)
        assert not going()
        settle(previews, "x", "y")
        return ()

    settle(previews, "x", "y")
    whole = previews._write(TAB)
    with monkeypatch.context() as patched:
        patched.setattr("dpicl_ui.data.drafts.preview_drafts", cut_off)
        assert "of use" not in str([*whole])
    assert HOSTILE in text_of(written(previews)), "the same words are written anew"


@pytest.mark.parametrize("how", ["left", "closed", "another file"])
def test_who_leaves_the_step_ends_the_preview_and_finds_it_anew(tab: Tab, previews, asked_for, how: str):
    settle(previews, "x", "y")
    going = previews._write(TAB)
    next(going)
    if how == "left":
        previews._leave(TAB)
    elif how == "closed":
        tab.sessions.of(TAB).close()
    else:
        tab.upload("message", "topic", "other")
    assert [*going] == [{previews.drafts: []}]
    assert asked_for == []
    settle(previews, "x", "y")
    assert HOSTILE in text_of(written(previews))


def test_labels_that_change_while_older_ones_are_waited_for_are_the_ones_that_count(tab: Tab, previews, monkeypatch):
    newer = iter([("x",)])

    def pause(seconds: float) -> None:
        if (labels := next(newer, None)) is not None:
            assert "Waiting" in text_of(settle(previews, *labels))

    monkeypatch.setattr("dpicl_ui.data.drafts.time.sleep", pause)
    assert settle(previews, "x", "y") == {"__type__": "update"}
    assert tab.sessions.of(TAB).of(Preview).wanted.labels == ("x",)


# The state of step 1, what is proposed for a file, and what hangs on the confirmed data.

# Step 1 holds one value at a time: what is confirmed belongs to the columns that are there.


MAPPING = ColumnMapping("text", "label")


def table() -> Table:
    return Table(pd.DataFrame({"text": ["a", "b"] * 20, "label": ["x", "y"] * 20}))


@pytest.fixture
def state() -> DataState:
    made = Session().of(DataState)
    made.open(table(), Wording(), "Label", ("text", "label"))
    return made


def confirmed(state: DataState) -> InspectedFile:
    columns = state.inspect(MAPPING)
    state.confirm(ConfirmedData(columns, DATASET))
    assert state.confirmed is not None
    assert state.inspected is columns
    return columns


def test_a_confirmation_that_is_taken_back_leaves_the_tick_that_the_page_still_shows(state: DataState):
    state.inspect(MAPPING)
    state.allow_left_out(True)
    assert state.inspected is not None
    state.confirm(ConfirmedData(state.inspected, DATASET))
    state.withdraw()
    assert state.inspected.allow_left_out


@pytest.mark.parametrize("change", ["open", "read", "rechoose", "withdraw", "ask"])
def test_every_change_takes_back_what_was_confirmed_and_outdates_its_columns(state: DataState, change: str):
    columns = confirmed(state)
    if change == "open":
        state.open(table(), Wording("note"), "Label", ("text", "label"))
    elif change == "read":
        state.inspect(replace(MAPPING, drop_duplicates=not MAPPING.drop_duplicates))
    elif change == "ask":
        state.set_wording(Wording("letter"))
    else:
        getattr(state, change)()
    assert state.confirmed is None
    assert state.inspected is not columns
    with pytest.raises(UsageError, match="confirm again"):
        state.confirm(ConfirmedData(columns, DATASET))
    assert state.confirmed is None


def test_what_is_confirmed_again_stays_the_same_and_what_differs_does_not(state: DataState):
    columns = confirmed(state)
    first = state.confirmed
    state.confirm(ConfirmedData(columns, replace(DATASET)))
    assert state.confirmed is first
    other = ConfirmedData(columns, replace(DATASET, name="renamed"))
    state.confirm(other)
    assert state.confirmed is other


# What is proposed for a file.


@pytest.mark.parametrize(
    "file",
    ["train.csv", "Test (1).xlsx", "data_2024-01-31.csv", "EXPORT-final-v2.parquet", "x/y/7.csv", "a.csv"],
)
def test_a_file_name_that_says_nothing_is_no_name_of_a_data_set(file):
    assert proposed_name(file) == ""


# A tab's data set and what hangs on it: plans of another file, figures of its own rows, exports after the fact.

OTHER = Dataset("other", ("a", "b"), tuple(Record(f"o {i}", "ab"[i % 2]) for i in range(90)))


def test_a_plan_that_was_overtaken_by_another_data_set_is_dropped(monkeypatch: pytest.MonkeyPatch):
    session = Session()
    first = confirm(session, DATASET)

    def overtaken(*given: Any) -> Any:
        confirm(session, OTHER)
        return plan_for(*given)

    monkeypatch.setattr(privacy_state, "plan_for", overtaken)
    made = planned(session, recipe="vote")
    assert made.confirmed is first
    assert session.of(PrivacyState).planned is None


def test_what_is_declared_are_the_users_where_they_are_the_unit(tmp_path: Path):
    path = tmp_path / "letters.csv"
    rows = [f"letter {i},{'ab'[i % 2]},u{i % 3}" for i in range(40)]
    path.write_text("\n".join(["text,label,who", *rows]), encoding="utf-8")
    table = read_table(path)
    counted = inspect(table, ColumnMapping("text", "label", "who"))
    assert counted.counts == {"a": 3, "b": 3}
    shown = text_of(label_counts(counted, ["a", "b"], by_user=True))
    assert "how many users" in shown
    assert "20" not in shown
    assert "users" in declared(True)
    assert "rows" in declared(False)
    assert inspect(table, ColumnMapping("text", "label")).counts == {"a": 20, "b": 20}


def export(ledger: PrivacyLedger, sessions: Sessions) -> ExportStep:
    return in_page(lambda: ExportStep(services(CuratorLedger(ledger), sessions=sessions)))


@pytest.fixture
def ledger(tmp_path: Path) -> PrivacyLedger:
    return PrivacyLedger(tmp_path)


def test_an_export_carries_what_became_known_since_the_run(ledger: PrivacyLedger):
    sessions = Sessions()
    step = export(ledger, sessions)
    session = sessions.of(TAB)
    write(session, demo_set(Demonstration("A goal.", "Sport")), OTHER)
    saved = downloaded(step._save(DEMO_SET, TAB)[step.sink])
    assert loads(saved).certificate.disclosures == ()
    assert check_signature(saved) is Signature.VALID
    ledger.rows.mark_rows(text_digests(["O 1"]), CLEAN_VALUES)
    saved = step._save(DEMO_SET, TAB)
    assert loads(downloaded(saved[step.sink])).certificate.disclosures == (CLEAN_VALUES,)
    assert check_signature(downloaded(saved[step.sink])) is Signature.VALID
    page = downloaded(step._save("certificate", TAB)[step.sink])
    assert CLEAN_VALUES in page
    assert digest(downloaded(saved[step.sink])) in page
    assert "no place for that mark" in text_of(step._explain("openai", TAB)[step.purpose])
    assert CLEAN_VALUES in text_of(saved[step.certificate])


# The offer of a better writer.


class OffersOne:
    """A loader of a small model, which offers a larger one once."""

    def __init__(self, refused: str = "") -> None:
        self.refusal, self.problem, self.fetching = None, None, True
        self.best = "some/larger"
        self.loaded: list[str] = []
        self._refused = refused

    def offer(self) -> WriterOffer:
        larger = ModelListing(self.best, "larger, chat (Apache-2.0)", 600_000_000, False)
        return WriterOffer(135_000_000, None if self.loaded else larger, 1_200_000_000, 290.0)

    def fetched(self, name: str) -> Any:
        yield [f"fetching {HOSTILE}"]
        if self._refused:
            raise ModelUnavailable(self._refused)

    def changed(self, name: str) -> Any:
        yield [f"loading {HOSTILE}"]
        self.loaded.append(name)

    model = ToyModel


def test_a_better_writer_is_one_press_away_and_writes_the_drafts_anew(previews, asked_for):
    loader = OffersOne()
    lend(previews, loader=loader)
    settle(previews, "x", "y")
    written(previews)
    before, offered = len(asked_for), previews._offer(TAB)
    for said in ("135M parameters", "larger, chat (Apache-2.0)", "600M", "1.2 GB", "about 5 minutes", "step 2"):
        assert said in text_of(offered[previews.offer])
    assert offered[previews.better].visible is True
    loader.best = "some/other"  # by now another one fits, which nobody was shown
    *told, fetched = previews._fetch(TAB)
    assert told
    assert told[0][previews.stop].visible is True
    assert fetched[previews.stop].visible == "hidden"
    assert list(previews._write(TAB)) == [], "the drafts of the present model stay"
    nothing = previews._offer_if_none_comes(TAB)[previews.offer]
    assert nothing == gr.skip(), "drafts of the present model end meanwhile"
    *_, last = previews._change(TAB)
    assert last[previews.stop].visible == "hidden"
    assert loader.loaded == ["some/larger"]
    assert last[previews.better].visible == "hidden"
    assert "none in the list" in text_of(last[previews.offer])
    written(previews)
    assert len(asked_for) == 2 * before


def test_what_cannot_be_fetched_leaves_drafts_and_offer_where_they_are(previews, asked_for):
    lend(previews, loader=OffersOne("Connect to the hub."))
    settle(previews, "x", "y")
    written(previews)
    previews._offer(TAB)
    *_, last = previews._fetch(TAB)
    assert list(previews._change(TAB)) == []
    assert "Connect to the hub." in text_of(last[previews.offer])
    assert "writes better" in text_of(last[previews.offer])
    assert last[previews.better].visible is previews._said_again(TAB)[previews.better].visible is True
    assert list(previews._write(TAB)) == []


def test_without_a_model_nothing_is_offered(previews):
    lend(previews, loader=SimpleNamespace(offer=lambda: None))
    assert previews._offer(TAB)[previews.offer] == []
