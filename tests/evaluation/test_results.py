"""The table of a grid: tidy, whole at all times, and of one origin."""

from __future__ import annotations

import csv
import errno
import os
import stat
import threading
from dataclasses import replace

import pytest

from mechanisms import files
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, Accuracy
from mechanisms.evaluation.grid import COLUMNS, Cell, Line, Origin, Results, grid_figure
from mechanisms.evaluation.reader import Arm
from mechanisms.files import atomic_write, check_writable
from tests.accounting.test_faults import no_room

ORIGIN = Origin("aa", "bb", "cc", "dd", "0", "no")
CELL, OTHER = Cell(Arm(PRIVATE, ()), "2", 0), Cell(Arm(PRIVATE, ()), "2", 1)
FOUND = {"raw": Accuracy(3, 10), "contextual": Accuracy(7, 10)}


def test_a_table_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / "results.csv"
    first = Results(ORIGIN, path)
    assert not first.has(CELL)
    first.add(CELL, FOUND)
    second = Results(ORIGIN, path)
    assert second.lines == first.lines
    assert second.has(CELL)
    assert not second.has(OTHER)
    second.add(OTHER, FOUND)
    assert len(Results(ORIGIN, path).lines) == 4


def test_a_line_says_what_it_is_of(tmp_path):
    Results(ORIGIN, tmp_path / "results.csv").add(CELL, FOUND)
    rows = list(csv.DictReader((tmp_path / "results.csv").read_text(encoding="utf-8").splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["reading"], int(row["right"]), int(row["rows"])) for row in rows] == [
        ("raw", 3, 10),
        ("contextual", 7, 10),
    ]
    for row in rows:
        assert float(row["low"]) < float(row["accuracy"]) < float(row["high"])
        assert [row[name] for name in COLUMNS[-6:]] == ["aa", "bb", "cc", "dd", "0", "no"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("set", "demo set"),
        ("test", "test file"),
        ("model", "model"),
        ("public", "public-only"),
        ("seed", "seed"),
        ("curator_only", "kind of"),
    ],
)
def test_a_table_of_another_origin_is_refused_and_left_alone(tmp_path, name, said):
    path = tmp_path / "results.csv"
    Results(ORIGIN, path).add(CELL, FOUND)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=f"another {said}"):
        Results(replace(ORIGIN, **{name: "other"}), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "text,label\nsomebody's row,News\n",
        lambda text: "",
        lambda text: text.replace("private demonstrations", "<b>hostile</b>", 1),
        lambda text: text.replace(",3,", ",30,", 1),
        lambda text: text + "half a li",
        lambda text: text.replace("raw", "other", 1),
    ],
)
def test_what_is_no_such_table_is_refused_and_left_alone(tmp_path, spoil):
    path = tmp_path / "results.csv"
    Results(ORIGIN, path).add(CELL, FOUND)
    path.write_text(spoil(path.read_text()))
    before = path.read_bytes()
    with pytest.raises(UsageError, match="was not written by evaluate"):
        Results(ORIGIN, path)
    assert path.read_bytes() == before


def test_a_write_that_is_cut_off_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "results.csv"
    results = Results(ORIGIN, path)
    results.add(CELL, FOUND)
    before = path.read_bytes()

    def cut_off(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", cut_off)
    with pytest.raises(KeyboardInterrupt):
        results.add(OTHER, FOUND)
    assert path.read_bytes() == before


def test_the_plot_has_a_line_for_each_reading_and_means_over_orders():
    lines = [Line(PRIVATE, shots, order, "raw", Accuracy(order + 2, 10)) for shots in ("12", "2") for order in (0, 1)]
    figure = grid_figure([Line("zero-shot", "0", 0, "raw", Accuracy(1, 10)), *lines], curator_only=True)
    assert [trace.name for trace in figure.data] == ["zero-shot, raw", "private demonstrations, raw"]
    assert list(figure.data[1].x) == ["2", "12"]
    assert list(figure.data[1].y) == pytest.approx([0.25, 0.25])
    lowest, highest = Accuracy(2, 10).interval[0], Accuracy(3, 10).interval[1]
    assert figure.data[1].error_y.arrayminus[0] == pytest.approx(0.25 - lowest)
    assert figure.data[1].error_y.array[0] == pytest.approx(highest - 0.25)
    assert "curator" in figure.layout.title.text
    assert list(figure.layout.xaxis.categoryarray) == ["0", "2", "12"]


# A result file is whole or as it was, whatever stands at its place.


@pytest.mark.parametrize("content", ["a\nnew\r\none", b"PK\x00\n"])
def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path, content):
    path = tmp_path / "result.json"
    atomic_write(path, "old")
    with no_room(2), pytest.raises(UsageError, match="result.json"):
        atomic_write(path, content)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("result.json", "old")]
    atomic_write(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)


def test_a_link_stays_one_and_so_does_who_may_read(tmp_path):
    (tmp_path / "there").mkdir()
    whole, link = tmp_path / "there" / "result.json", tmp_path / "link.json"
    whole.write_text("old")
    whole.chmod(0o600)
    link.symlink_to(whole)
    atomic_write(link, "new")
    assert link.is_symlink()
    assert whole.read_text() == "new"
    assert stat.S_IMODE(whole.stat().st_mode) == 0o600


def test_other_files_and_other_writers_are_left_alone(tmp_path):
    path, other = tmp_path / "result.json", tmp_path / "result.json.partial"
    other.write_text("somebody's own")
    contents = [f"{number}" * 200_000 for number in range(4)]
    writers = [
        threading.Thread(target=lambda each=each: [atomic_write(path, each) for _ in range(20)]) for each in contents
    ]
    for each in writers:
        each.start()
    read = set()
    while any(each.is_alive() for each in writers):
        if path.exists():
            read.add(path.read_text())
    assert read <= set(contents)
    assert path.read_text() in contents
    assert sorted(each.name for each in tmp_path.iterdir()) == ["result.json", "result.json.partial"]
    assert other.read_text() == "somebody's own"


def test_a_file_that_cannot_be_replaced_is_written_in_its_place(tmp_path, monkeypatch):
    def mounted(*_):
        raise OSError(errno.EBUSY, "busy")

    path = tmp_path / "result.json"
    path.write_text("older and longer")
    path.chmod(0o640)
    monkeypatch.setattr(os, "replace", mounted)
    atomic_write(path, "new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("result.json", "new")]
    with pytest.raises(UsageError, match="another place"):
        atomic_write(tmp_path / "other.json", "new")
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    check_writable(str(pipe))
    atomic_write(pipe, "new")
    reader.join(timeout=60)
    assert read == ["new"]
    assert pipe.is_fifo()


def test_a_file_in_a_folder_that_is_closed_is_refused_before_it_costs_anything(tmp_path, monkeypatch):
    (tmp_path / "result.json").write_text("old")
    check_writable(str(tmp_path / "result.json"))
    monkeypatch.setattr(os, "access", lambda place, mode: str(place) != str(tmp_path))  # root may write anywhere
    with pytest.raises(UsageError, match="choose another place"):
        check_writable(str(tmp_path / "result.json"))
