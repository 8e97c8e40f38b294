"""The papers' tables: their cells, their figures, and `reproduce`."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import partial

import pytest

from mechanisms.errors import UsageError
from mechanisms.steps import mechanism_names, transform_names
from research.__main__ import main, parser
from research.reproduction import command as reproduce
from research.reproduction.cells import EPSILONS, METHODS, PUBLIC, REAL, ZERO_SHOT, Grid
from research.reproduction.published import published
from research.reproduction.tasks import TASKS
from tests.cli import command
from tests.toy_model import ToyModel

# Which cells a grid has.


INF = math.inf


def keys(grid):
    return [(each.task, each.method, each.epsilon, each.run) for each in grid.cells()]


def test_a_grid_has_each_method_at_each_epsilon_and_the_baselines_once():
    grid = Grid(("trec",), ("gaussian", "gaussian+pta"), (0.0, 1.0, INF), 2)
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


def test_the_whole_grid_has_a_cell_for_nearly_every_published_figure():
    own = {(each.task, each.method, each.epsilon) for each in Grid().cells()}
    without = {(each.method, each.epsilon) for each in published() if (each.task, each.method, each.epsilon) not in own}
    assert without == {("blended-logits", INF), ("svt-public", INF)}  # with little noise there, with none nowhere


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tasks": ("sst2",)}, "none of the papers'"),
        ({"methods": ("magic",)}, "magic"),
        ({"methods": ("public",)}, "baseline"),
        ({"methods": ("blended-logits+pta",)}, "takes no transform"),
        ({"epsilons": (math.nan,)}, "--epsilons"),
        ({"runs": 0}, "--runs"),
    ],
)
def test_what_cannot_be_is_refused(wrong, said):
    with pytest.raises(UsageError, match=said):
        Grid(**wrong)
    assert METHODS[0] == "gaussian"


# The papers' figures: complete, possible, and those of the tables that they name.

EVERY_METHOD = {ZERO_SHOT, PUBLIC, REAL, *mechanism_names()}


def found(source: str, method: str, task: str) -> dict[float, tuple[float, float | None]]:
    return {
        each.epsilon: (each.accuracy, each.deviation)
        for each in published()
        if (each.source, each.method, each.task) == (source, method, task)
    }


def test_every_figure_belongs_to_a_cell_that_the_grid_knows():
    for each in published():
        name, _, transform = each.method.partition("+")
        assert each.task in TASKS
        assert each.epsilon in EPSILONS
        assert name in EVERY_METHOD
        assert transform in {"", *transform_names()}
        assert 0 < each.accuracy < 1
        assert each.deviation is None or 0 <= each.deviation < 0.2
        assert each.source
        assert each.table.startswith("table")
        assert each.model
        assert (each.epsilon == 0) == (each.method in (ZERO_SHOT, PUBLIC))
    keys = Counter((e.source, e.table, e.model, e.task, e.method, e.epsilon) for e in published())
    assert max(keys.values()) == 1


def test_what_the_papers_say_in_words_holds_of_their_figures():
    """Gao et al., section 5.1; Yamasaki et al., section 5.2; Bhusal et al., results; Tang et al., section 5.2."""
    for task in TASKS:
        better, base = (found("Gao et al. 2025", method, task) for method in ("adadpsyn", "gaussian"))
        assert all(better[epsilon][0] > base[epsilon][0] for epsilon in (1, 2, 4, 8))
    for task in ("agnews", "trec"):
        better, base = (found("Yamasaki et al. 2025", method, task) for method in ("gaussian+pta", "gaussian"))
        assert all(better[epsilon][0] > base[epsilon][0] for epsilon in (1, 8))
    for task in ("agnews", "trec"):
        ours, *others = (
            [e.accuracy for e in published() if (e.method, e.task, e.epsilon, e.table) == (method, task, 1, "table 1")]
            for method in ("blended-logits", "gaussian", "svt-public")
        )
        assert all(ours[0] > other[-1] for other in others)
    for task in ("dbpedia", "trec"):
        private, public = found("Tang et al. 2024", "gaussian", task), found("Tang et al. 2024", PUBLIC, task)
        assert all(private[epsilon][0] > public[0][0] for epsilon in (1, 2, 4, 8))


# `reproduce`: the grid that its options describe, what it writes, and what it does the second time.

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
    assert (told["cells"], told["refused"]) == (2, {})
    tables = [(data / "out" / name).read_text() for name in ("results.csv", "table.md")]
    assert "cell 1 of 2: trec, zero-shot" in err
    code, out, err = run(capsys, line)
    assert (code, json.loads(out)["cells"]) == (0, 2)
    assert "cell 1" not in err
    assert [(data / "out" / name).read_text() for name in ("results.csv", "table.md")] == tables
    assert tables[0].count("\n") == 1 + 2 * 2
    assert "GPT-3 Babbage" in tables[1]


def test_options_that_cannot_be_are_refused(capsys, data):
    out = data / "out"
    check_refusal(capsys, f"reproduce {data} --out {out} --mechanisms magic", 2, "magic")
    check_refusal(capsys, f"reproduce {data} --out {out} --tasks agnews --epsilons 0", 2, "Cannot read")
    (data / "file").write_text("")
    check_refusal(capsys, f"reproduce {data} --out {data / 'file'} --tasks trec", 2, "another folder")
