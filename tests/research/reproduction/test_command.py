"""`reproduce`: the grid that its options describe, what it writes, and what it does the second time."""

from __future__ import annotations

import json
import math
from functools import partial

import pytest

from research.__main__ import main, parser
from research.reproduction import command as reproduce
from research.reproduction.cells import EPSILONS, METHODS
from research.reproduction.tasks import TASKS
from tests.cli import command
from tests.toy_model import ToyModel

run = partial(command.run, program=main)
check_refusal = partial(command.check_refusal, program=main)


def grid(line: str):
    return reproduce._grid(parser().parse_args(["reproduce", "DATA", "--out", "x", *line.split()]))


def test_what_is_left_open_is_the_whole_grid_or_the_small_one():
    whole, small = grid(""), grid("--small")
    assert (whole.tasks, whole.methods, whole.epsilons, whole.runs) == (tuple(TASKS), METHODS, EPSILONS, 5)
    assert whole.setting.rows is None
    assert small == reproduce.SMALL
    assert len(list(small.cells())) == 16
    asked = grid("--small --rows 7 --epsilons 0 inf --runs 2 --seed 3 --mechanisms noisy-max --tasks dbpedia")
    assert (asked.tasks, asked.methods, asked.epsilons, asked.runs) == (
        ("dbpedia",),
        ("noisy-max",),
        (0.0, math.inf),
        2,
    )
    assert (asked.setting.rows, asked.setting.seed) == (7, 3)
    assert asked.setting.tokens == small.setting.tokens


@pytest.fixture
def data(tmp_path, monkeypatch):
    (tmp_path / "trec").mkdir()
    rows = "\n".join(f"words {label},{label}" for label in TASKS["trec"].labels)
    for name in ("train", "test"):
        (tmp_path / "trec" / f"{name}.csv").write_text(f"text,label\n{rows}\n")
    monkeypatch.setattr(reproduce, "load_model", lambda name: ToyModel(1.0))
    return tmp_path


def test_a_second_call_computes_nothing_and_writes_the_same_tables(capsys, data):
    line = f"reproduce {data} --out {data / 'out'} --small --tasks trec --epsilons 0 --rows 4 --json"
    code, out, err = run(capsys, line)
    assert code == 0, err
    told = json.loads(out)
    assert (told["cells"], told["computed"], told["refused"]) == (2, 2, {})
    tables = [(data / "out" / name).read_text() for name in ("results.csv", "table.md")]
    assert "cell 1 of 2: trec, zero-shot" in err
    code, out, err = run(capsys, line)
    again = json.loads(out)
    assert (code, again["cells"], again["computed"]) == (0, 2, 0)
    assert [(data / "out" / name).read_text() for name in ("results.csv", "table.md")] == tables
    assert tables[0].count("\n") == 1 + 2 * 2
    assert "GPT-3 Babbage" in tables[1]


def test_what_cannot_be_is_refused(capsys, data):
    out = data / "out"
    check_refusal(capsys, f"reproduce {data} --out {out} --mechanisms magic", 2, "magic")
    check_refusal(capsys, f"reproduce {data} --out {out} --tasks agnews --epsilons 0", 2, "Cannot read")
    (data / "file").write_text("")
    check_refusal(capsys, f"reproduce {data} --out {data / 'file'} --tasks trec", 2, "another folder")
