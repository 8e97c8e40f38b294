"""A cell from rows to figures, with a model that has learnt nothing: what is kept, and what never is."""

from __future__ import annotations

import json
import math

import pytest
import torch

from mechanisms.inference.engine.transformers_model import TransformersModel
from research.ginc.experiment import METHODS, PLANS, PUBLIC, REAL, SHOTS, Bench, Cell, cells
from research.ginc.hmm import ginc
from research.ginc.model import tokenizer, untrained
from research.ginc.table import COLUMNS, differences, grouped, table

ROWS = ["a ai / l", "v au j n", "m n / x", "f af as k"] * 90


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    folder = tmp_path_factory.mktemp("data")
    (folder / "ginc").mkdir()
    rows = [f"{text},j,3,1,5" for text in ROWS] + ["v au,x,3,1,3", "v au j n,x,2,1,5"]  # of another length, concept
    for split in ("train", "test"):
        kept = rows if split == "train" else rows[:6]
        (folder / "ginc" / f"{split}.csv").write_text("\n".join(["text,label,hmm,start_slot,k", *kept]), "utf-8")
    torch.manual_seed(0)
    weights = untrained(ginc(), layers=1, width=32)
    with torch.no_grad():  # the last word, the unknown one, is no text: it never is among the likeliest
        weights.transformer.ln_f.weight[0], weights.transformer.ln_f.bias[0] = 0.0, 1.0
        weights.transformer.wte.weight[-1, 0] = -100.0
    return Bench(folder, 3, TransformersModel("ginc", "0" * 64, weights, tokenizer(ginc())))


@pytest.mark.parametrize(
    "cell",
    [
        Cell(3, 1, "", PUBLIC, 0.0),
        Cell(3, 1, "", REAL, math.inf),
        Cell(3, 1, "ours", "pta", math.inf),
        pytest.param(Cell(3, 1, "printed", "pta, no base", 8.0), marks=pytest.mark.slow),
    ],
)
def test_a_cell_is_four_texts_and_their_figures(bench, cell):
    line = bench.line(cell)
    assert all(0 <= line[name] <= 1 for name in ("one", "all", "likeliest", "impossible", "accuracy"))
    assert ("texts" in line) == cell.releasable
    if cell.releasable:
        assert [len(text.split()) for text in line["texts"]] == [PLANS[cell.plan or "ours"]["tokens"]] * SHOTS
        assert {word for text in line["texts"] for word in text.split()} <= set(bench.concepts.tokens)
    else:  # nothing of the rows is kept
        assert not any(row in json.dumps(line) for row in ROWS)


def test_every_method_of_a_plan_has_every_epsilon_and_none_twice():
    found = list(cells(2, [1.0, 8.0]))
    assert len(set(found)) == len(found)
    for plan, methods in METHODS.items():
        of_plan = {(each.method, each.epsilon) for each in found if each.plan == plan}
        assert of_plan == {(method, epsilon) for method in methods for epsilon in (1.0, 8.0, math.inf)}


# Intervals are over runs, whole ones alone, and differences are paired.


def line(concept: int, run: int, method: str, one: float) -> dict:
    return dict.fromkeys(COLUMNS, 0.0) | {
        "concept": concept, "run": run, "plan": "ours", "method": method, "epsilon": 1.0, "one": one,
    }  # fmt: skip


LINES = [
    line(concept, run, method, 0.1 * run + 0.2 * concept + (0.05 if method == "pta" else 0.0))
    for run in (1, 2, 3)
    for concept in (0, 1)
    for method in ("plain", "pta")
]


def test_a_run_is_the_mean_over_concepts_and_counts_when_it_is_whole():
    cut = [*LINES, line(0, 4, "plain", 9.0)]
    assert grouped(cut, "one")["ours", "plain", 1.0] == pytest.approx([0.2, 0.3, 0.4])


def test_what_runs_share_falls_out_of_differences():
    assert "| ours | pta | 1 | +0.050 ± 0.000 |" in differences(LINES, "one")
    assert "| ours | pta | 1 | 3 | 0.350 ± 0.248 |" in table(LINES)
