"""`export`, and the digest by which `account` knows the file of a certificate page again."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.cli.command import check_refusal, run
from tests.exports.sets import labelled, marked, none_chosen


@pytest.fixture
def demos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "home"))
    path = tmp_path / "demos.json"
    path.write_text(labelled("A goal in the last minute.", "A vote.").dumps(), encoding="utf-8")
    return path


def test_paper_and_file_are_compared(demos: Path, tmp_path: Path, capsys):
    page = tmp_path / "page.html"
    code, out, _ = run(capsys, f"export {demos} --format certificate --out {page} --json")
    assert code == 0
    found = json.loads(out)["digest"]
    assert found in page.read_text(encoding="utf-8")
    code, out, _ = run(capsys, f"account --from {demos} --json", "--digest", found)
    assert code == 0
    assert json.loads(out)["digest"] == found
    demos.write_text(demos.read_text(encoding="utf-8").replace("A goal", "No goal"), encoding="utf-8")
    code, out, err = run(capsys, f"account --from {demos} --json", "--digest", found)
    assert code == 3
    assert "not the file of that certificate page" in err
    assert json.loads(out)["digest"] != found


def test_a_digest_needs_a_file(capsys):
    check_refusal(capsys, "account --digest 00 --delta 1e-5", 2, "--from")


def test_several_files_are_a_folder_or_an_archive(demos: Path, tmp_path: Path, capsys):
    folder, archive = tmp_path / "new/set", tmp_path / "set.zip"
    for place in (folder, archive):
        code, *_ = run(capsys, f"export {demos} --format hugging-face --out {place}")
        assert code == 0
    with zipfile.ZipFile(archive) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == {
            path.name: path.read_bytes() for path in folder.iterdir()
        }


def test_a_mark_that_is_lost_is_said(demos: Path, tmp_path: Path, capsys):
    demos.write_text(marked(labelled("x")).dumps(), encoding="utf-8")
    code, _, err = run(capsys, f"export {demos} --format openai --out {tmp_path / 'm.jsonl'}")
    assert code == 0
    assert "no place for that mark" in err


@pytest.mark.parametrize(
    ("change", "line", "code", "message"),
    [
        (lambda text: "[]", "--format csv", 2, "not a dpicl-demos"),
        (lambda text: text.replace('"delta": 1e-05', '"delta": 1e-09'), "--format csv", 3, "refused"),
        (lambda text: none_chosen().text, "--format csv", 2, "no demonstrations"),
        (lambda text: text, "--format excel", 2, "excel"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    demos: Path, tmp_path: Path, capsys, change, line, code, message
):
    before = demos.read_text(encoding="utf-8")
    demos.write_text(change(before), encoding="utf-8")
    assert (change(before) == before) == ("excel" in line)
    check_refusal(capsys, f"export {demos} {line} --out {tmp_path / 'out'}", code, message)
    assert not (tmp_path / "out").exists()
