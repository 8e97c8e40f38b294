"""Step 4's test file: what is asked about it, which of its rows take no part, and what stays open."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpicl_ui.data.cards import STAYS
from dpicl_ui.test.step import bundled_rows_for
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.errors import UsageError
from tests.ui.test.tab import Tab
from tests.ui.trees import text_of

ROWS = "".join(f"something happened {i},{('News', 'Sport')[i % 2]}\n" for i in range(10))


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tab:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return Tab(tmp_path)


def test_rows_that_take_no_part_are_counted_by_reason_and_labels_that_look_alike_are_one(tab: Tab):
    tab.upload(f"text,label\n{ROWS}one more,NEWS\n,News\nlast,Weather\n")
    assert "2 of 13 rows are left out: 1 with an empty text, 1 with a label outside" in tab.notice()
    assert len(tab.scored.rows) == 11
    tab.upload(f"text,label\n{ROWS}")
    assert tab.notice() == ""


def test_a_test_file_without_a_header_is_asked_about(tab: Tab):
    tab.state.table = None
    shown, reading = tab.upload(ROWS), tab.measurement.reading
    assert shown[reading.card].visible
    assert tab.state.table is None
    shown = tab.measurement._read_so(tab.request, "row", "", "", None, "0")
    assert not shown[reading.card].visible
    assert [each for each, _ in shown[tab.measurement.text].choices] == ["1", "2"]
    assert shown[tab.measurement.label].value == "2"
    assert tab.notice(text="1", label="2") == ""


def test_a_refused_or_unclear_file_says_that_the_first_one_stays(tab: Tab):
    before = tab.state.table
    for content in (b"", b"text,label\nx\0,News\n", ROWS):
        assert STAYS in text_of(tab.upload(content)[tab.measurement.test_notice])
        assert tab.state.table is before


def test_a_file_with_none_of_the_labels_says_so_before_anything_is_written(tab: Tab):
    tab.bring(["one,Rain", "two,Snow"])
    with pytest.raises(UsageError, match="one of the set's labels"):
        tab.measure()
    assert tab.state.scored is None


def test_a_stop_keeps_what_was_measured(tab: Tab):
    measuring = tab.measurement._measure(tab.values(), tab.request)
    for _ in range(3):
        next(measuring)
    tab.measurement.job.halt(tab.request)
    assert any("Stopped" in text_of(each.get(tab.measurement.test_notice, [])) for each in measuring)
    assert not tab.scored.complete


# Bundled test rows are offered for the sets that they can test, and for no other.


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_example_finds_its_own_rows_which_are_none_that_wrote(example):
    rows, mapping = read_table(example.path).frame, example.mapping
    path = bundled_rows_for(sorted(set(rows[mapping.label])))
    assert path == example.test
    others = read_table(path).frame
    assert set(others[mapping.label]) == set(rows[mapping.label])
    assert not set(others[mapping.text]) & set(rows[mapping.text])
