"""A result file is whole or as it was, whatever stands at its place."""

from __future__ import annotations

import errno
import os
import stat
import threading

import pytest

from mechanisms.errors import UsageError
from mechanisms.files import atomic_write, check_writable
from tests.accounting.test_faults import no_room


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
