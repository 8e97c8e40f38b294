"""Step 4's test file: what is asked about it, which of its rows take no part, and what stays open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pytest

from dpicl_ui.data.reading import STAYS
from dpicl_ui.data.state import DataState
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Sessions
from dpicl_ui.test.state import TestState
from dpicl_ui.test.step import EvaluationStep
from mechanisms.accounting import PrivacyLedger
from mechanisms.asking import Asked
from mechanisms.errors import DataError, UsageError
from mechanisms.records import Demonstration
from tests.ui.generate.recording import demo_set
from tests.ui.tabs import services
from tests.ui.trees import text_of
from tests.word_model import WordModel

TAB = cast(gr.Request, SimpleNamespace(session_hash="one", username=None))
SET = demo_set(Demonstration("the vote was close", "News"), Demonstration("a late goal", "Sport"))
ROWS = "".join(f"something happened {i},{('News', 'Sport')[i % 2]}\n" for i in range(10))


class Measuring:
    """Step 4 without a page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sessions = folder, Sessions()
        self.measurement = asyncio.run(self._built()).measurement
        self.state.load(SET)

    async def _built(self) -> EvaluationStep:
        loader = cast(ModelLoader, SimpleNamespace(model=WordModel, speed=None))
        with gr.Blocks():
            return EvaluationStep(services(self.sessions, CuratorLedger(PrivacyLedger(self.folder / "home")), loader))

    @property
    def state(self) -> TestState:
        return self.sessions.of(TAB).of(TestState)

    def bring(self, content: str | bytes) -> dict[Any, Any]:
        path = self.folder / "uploads" / "one" / "test.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.measurement._open_test(str(path), TAB)

    def measure(self, text: str | None = "text", label: str | None = "label") -> str:
        *_, first = [next(self.measurement._measure(text, label, 10, False, False, TAB))]
        return text_of(first[self.measurement.test_notice])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measuring:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return Measuring(tmp_path)


def test_rows_that_take_no_part_are_counted_and_many_want_a_tick(place: Measuring):
    shown = place.bring(f"text,label\n{ROWS}one more,NEWS\n,News\nlast,Weather\n")
    assert shown[place.measurement.allow].visible
    told = (
        "3 of 13 rows are left out: 1 with an empty text, 1 with a label that differs from one of the set only in case"
    )
    with pytest.raises(DataError, match=told):
        place.measure()
    place.measurement._saying("allow_left_out")(True, TAB)
    assert told in place.measure()
    place.measurement._saying("merge_labels")(True, TAB)
    assert "2 of 13 rows are left out: 1 with an empty text, 1 with a label outside" in place.measure()
    place.bring(f"text,label\n{ROWS}")  # another file is asked about anew
    assert not place.state.allow_left_out
    assert not place.state.merge_labels
    assert place.measure() == ""


def test_a_test_file_is_read_as_step_one_read_its_labels(place: Measuring, tmp_path: Path):
    data = place.sessions.of(TAB).of(DataState)
    place.bring(f"text,label\n{ROWS}{ROWS.replace('News', 'NEWS')}")
    with pytest.raises(DataError, match="5 of 20"):
        place.measure()
    assert place.state.table is not None
    data.open(place.state.table, Asked(), "Label", ("text", "label"))
    data.merge_labels()
    assert place.measure() == ""


def test_a_test_file_without_a_header_is_asked_about(place: Measuring):
    shown, reading = place.bring(ROWS), place.measurement.reading
    assert shown[reading.card].visible
    assert place.state.table is None
    shown = place.measurement._read_so(TAB, "row", "", "", None, "0")
    assert not shown[reading.card].visible
    assert [each for each, _ in shown[place.measurement.text].choices] == ["1", "2"]
    assert shown[place.measurement.label].value == "2"
    assert place.measure("1", "2") == ""


def test_a_refused_or_unclear_file_says_that_the_first_one_stays(place: Measuring):
    place.bring(f"text,label\n{ROWS}")
    before = place.state.table
    for content in (b"", b"text,label\nx\0,News\n", ROWS):
        assert STAYS in text_of(place.bring(content)[place.measurement.test_notice])
        assert place.state.table is before


def test_a_file_with_none_of_the_labels_says_so(place: Measuring):
    place.bring("text,label\none,Rain\ntwo,Snow\n")
    with pytest.raises(UsageError, match="one of the set's labels"):
        place.measure()


@pytest.mark.parametrize(("text", "label"), [(None, "label"), ("text", None)])
def test_a_column_that_is_not_chosen_is_asked_for(place: Measuring, text: str | None, label: str | None):
    place.bring(f"text,label\n{ROWS}")
    with pytest.raises(DataError, match="Name the (text|label) column"):
        place.measure(text, label)
