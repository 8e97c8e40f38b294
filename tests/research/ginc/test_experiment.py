"""A cell from rows to figures, with a model that has learnt nothing: what is kept, and what never is."""

from __future__ import annotations

import json
import math

import pytest
import torch

from mechanisms.inference.engine.transformers_model import TransformersModel
from research.ginc.experiment import LENGTH, PLANS, PUBLIC, REAL, SHOTS, Bench, Cell, cells
from research.ginc.hmm import ginc
from research.ginc.model import tokenizer, untrained

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


def test_rows_are_of_one_concept_and_length(bench):
    assert len(bench.dataset.records) == len(ROWS)
    assert {len(each.text.split()) for each in bench.dataset.records} == {LENGTH}


@pytest.mark.parametrize(
    "cell", [Cell(3, 1, "", PUBLIC, 0.0), Cell(3, 1, "", REAL, math.inf), Cell(3, 1, "ours", "pta", math.inf)]
)
def test_a_cell_is_four_texts_and_their_figures(bench, cell):
    line = bench.line(cell)
    assert all(0 <= line[name] <= 1 for name in ("one", "all", "likeliest", "impossible", "accuracy"))
    assert ("texts" in line) == cell.releasable
    if cell.releasable:
        assert [len(text.split()) for text in line["texts"]] == [LENGTH] * SHOTS
        assert {word for text in line["texts"] for word in text.split()} <= set(bench.concepts.tokens)
    else:  # nothing of the rows is kept
        assert not any(row in json.dumps(line) for row in ROWS)


def test_every_cell_is_there_once():
    found = list(cells(2, [1.0, 8.0]))
    assert len(set(found)) == len(found) == 2 * 5 * (2 + 3 * (2 * len(PLANS) + 1))
