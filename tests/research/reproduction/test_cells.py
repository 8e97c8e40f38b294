"""The papers' tables: their cells, their figures, and `reproduce`."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import partial

import pytest

from mechanisms.errors import UsageError
from research.__main__ import main
from research.reproduction import command as reproduce
from research.reproduction.cells import METHODS, PUBLIC, ZERO_SHOT, Method, Preset, Setting
from research.reproduction.presets import PRESETS
from research.reproduction.published import published
from research.reproduction.tasks import TASKS
from tests.cli import command
from tests.toy_model import ToyModel

# Which cells a grid has.


INF = math.inf


def keys(grid):
    return [(each.task, each.method, each.epsilon, each.run) for each in grid.cells()]


def test_a_grid_has_each_method_at_each_epsilon_and_the_baselines_once():
    methods = {name: METHODS[name] for name in ("gaussian", "gaussian+pta")}
    grid = Preset("grid", settings={"trec": Setting()}, methods=methods, epsilons=(0.0, 1.0, INF), runs=2)
    assert keys(grid) == [
        ("trec", "zero-shot", 0, 1),
        ("trec", "public", 0, 1),
        ("trec", "gaussian", 1, 1),
        ("trec", "gaussian+pta", 1, 1),
        ("trec", "real rows", INF, 1),
        ("trec", "non-private", INF, 1),
        ("trec", "non-private+pta", INF, 1),
        ("trec", "public", 0, 2),
        ("trec", "gaussian", 1, 2),
        ("trec", "gaussian+pta", 1, 2),
        ("trec", "real rows", INF, 2),
        ("trec", "non-private", INF, 2),
        ("trec", "non-private+pta", INF, 2),
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"settings": {"sst2": Setting()}}, "none of the papers'"),
        ({"epsilons": (math.nan,)}, "--epsilons"),
        ({"runs": 0}, "--runs"),
        ({"rows": 0}, "--rows"),
        ({"shots": (0,)}, "--shots"),
        ({"seed": -1}, "--seed"),
    ],
)
def test_what_cannot_be_is_refused(wrong, said):
    with pytest.raises(UsageError, match=said):
        Preset("wrong", **wrong)


@pytest.mark.parametrize(
    ("name", "said"),
    [("magic", "magic"), ("public", "baseline"), ("gaussian+magic", "magic"), ("blended-logits+pta", "no transform")],
)
def test_a_method_that_is_none_is_refused(name, said):
    with pytest.raises(UsageError, match=said):
        Method.of(name)


# The papers' figures: complete, possible, and those of the tables that they name.

EVERY_CELL = {
    (each.method, each.epsilon, each.shots)
    for preset in PRESETS.values()
    for each in preset.cells()
    if not preset.elsewhere
}


def test_every_figure_belongs_to_a_cell_that_a_preset_has():
    for each in published():
        assert each.task in TASKS
        assert (each.method, each.epsilon, each.shots) in EVERY_CELL
        assert 0 < each.accuracy < 1
        assert each.deviation is None or 0 <= each.deviation < 0.2
        assert each.source
        assert each.table.startswith("table")
        assert each.model
        assert (each.epsilon == 0) == (each.method in (ZERO_SHOT, PUBLIC))
    keys = Counter((e.source, e.table, e.model, e.task, e.method, e.epsilon, e.shots) for e in published())
    assert max(keys.values()) == 1


# `reproduce`: the grid that its options describe, what it writes, and what it does the second time.

run = partial(command.run, program=main)
check_refusal = partial(command.check_refusal, program=main)


@pytest.fixture
def data(tmp_path, monkeypatch):
    (tmp_path / "trec").mkdir()
    rows = "\n".join(f"words {label},{label}" for label in TASKS["trec"].labels)
    for name in ("train", "test"):
        (tmp_path / "trec" / f"{name}.csv").write_text(f"text,label\n{rows}\n")
    monkeypatch.setattr(reproduce, "load_model", lambda name: ToyModel(1.0))
    return tmp_path


def test_a_second_call_computes_nothing_and_writes_the_same_tables(capsys, data):
    line = f"reproduce grid-small {data} --out {data / 'out'} --tasks trec --epsilons 0 --rows 4 --json"
    code, out, err = run(capsys, line)
    assert code == 0, err
    told = json.loads(out)
    assert (told["cells"], told["refused"]) == (2, {})
    tables = [(data / "out" / name).read_text() for name in ("results.csv", "table.md")]
    assert "cell 1 of 2: trec, zero-shot" in err
    code, out, err = run(capsys, line)
    assert (code, json.loads(out)["cells"]) == (0, 2)
    assert "cell 1" not in err
    assert [(data / "out" / name).read_text() for name in ("results.csv", "table.md")] == tables
    assert tables[0].count("\n") == 1 + 2 * 2
    assert "GPT-3 Babbage" in tables[1]


def test_a_dry_run_counts_the_labels_of_the_files_that_it_is_given(capsys, data):
    with (data / "trec" / "train.csv").open("a") as file:
        file.write("\nmore words,Entity")
    code, out, err = run(capsys, f"reproduce grid-small {data} --tasks trec --dry-run")
    assert code == 0, err
    assert "| 1e-05 |  | 1 |" in out
    code, out, _ = run(capsys, "reproduce grid-small --tasks trec --dry-run")
    assert "| 1e-05 |  | 86 |" in out


def test_options_that_cannot_be_are_refused(capsys, data):
    out = data / "out"
    check_refusal(capsys, f"reproduce grid {data} --out {out} --methods magic", 2, "magic")
    check_refusal(capsys, f"reproduce grid {data} --out {out} --tasks agnews --epsilons 0", 2, "Cannot read")
    check_refusal(capsys, f"reproduce tang-2 {data} --out {out} --tasks trec", 2, "has not the data set trec")
    check_refusal(capsys, "reproduce grid", 2, "DATA")
    check_refusal(capsys, f"reproduce tang-15 {data} --runs 1", 2, "another command")
    check_refusal(capsys, f"attack membership {data} --out {out} --preset tang-1", 2, "--preset takes tang-15")
    (data / "file").write_text("")
    check_refusal(capsys, f"reproduce grid {data} --out {data / 'file'} --tasks trec", 2, "another folder")
