"""`replay`: everything that a run released, in its order, and nothing that a terminal would obey."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mechanisms.runs.events import TokenReleased
from mechanisms.runs.run_file import to_lines
from tests.cli.command import check_refusal, run
from tests.runs.runs import KINDS, file_of, recorded


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def saved(kind: str, tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text(file_of(kind), encoding="utf-8")
    return path


def test_it_tells_every_token_and_every_stage_in_order(kind: str, saved: Path, capsys: pytest.CaptureFixture[str]):
    code, said, _ = run(capsys, "replay", str(saved))
    assert code == 0
    tokens = [event for event in recorded(kind) if isinstance(event, TokenReleased)]
    assert said.count("beside it") == len(tokens)
    stages = [str(each.stage) for each in recorded(kind) if type(each).__name__ == "StageStarted"]
    assert [line.removeprefix("Stage: ") for line in said.splitlines() if line.startswith("Stage: ")] == stages
    assert all(each.isprintable() for each in said.replace("\n", ""))


def test_as_json_it_is_one_object(kind: str, saved: Path, capsys: pytest.CaptureFixture[str]):
    told = json.loads(run(capsys, "replay --json", str(saved))[1])
    assert told["ended"] == "completed"
    assert told["demonstrations"] == len(recorded(kind)[-1].demo_set.demonstrations)
    assert told["marks"] == list(recorded(kind)[-1].demo_set.certificate.disclosures)


HOSTILE = "\x9b31m\x1b[2J\u202e\x85mark"


@pytest.mark.parametrize("options", ["", " --json"])
def test_a_mark_reaches_no_terminal_as_it_stands(options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "run.jsonl"
    path.write_text(to_lines(recorded("tokens"), (HOSTILE,)), encoding="utf-8")
    code, said, complaint = run(capsys, f"replay {path}{options}")
    assert code == 0
    assert "mark" in said
    assert all(each.isprintable() for each in (said + complaint).replace("\n", ""))
    if options:
        assert HOSTILE in json.loads(said)["marks"]


def test_another_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "x"
    path.write_text("{}\n{}")
    check_refusal(capsys, f"replay {path}", 2, "line 1")
    check_refusal(capsys, f"replay {path} --pause nan", 2, "--pause")
