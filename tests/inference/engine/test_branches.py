"""Continuations read as a tree say what each would say alone; a small model with random weights, in float32."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import Gemma3TextConfig, LlamaConfig, LlamaForCausalLM, MistralConfig

from mechanisms.inference import scores_of
from mechanisms.inference.engine import forward
from mechanisms.inference.engine.forward import Branches, attends_to_everything
from mechanisms.inference.engine.transformers_model import TransformersModel
from tests.inference.engine.test_independence import SMALL
from tests.toy_model import ToyModel

LABELS = ([300, 301, 302], [300, 301], [300, 305, 306, 307], [400], [401, 301, 302])
PREFIX = [7, 8, 9, 10, 11]
ROWS = [[20], [21, 22, 23], [24, 25, 26, 27, 28, 29], []]


@pytest.fixture
def model(random_model):
    torch.manual_seed(0)
    # Weights as large as these make every position count: as they come, a random model hardly looks at its context.
    made = LlamaForCausalLM(LlamaConfig(**SMALL, initializer_range=0.3, num_key_value_heads=2))
    return TransformersModel("random", "0", made, random_model.tokenizer)


def test_what_continuations_share_is_read_once():
    tree = Branches.of(LABELS)
    assert tree.paths[0] == ()
    assert set(tree.paths[1:]) == {(300,), (300, 301), (300, 305), (300, 305, 306), (401,), (401, 301)}
    assert len(tree.tokens) == len(tree.depths) == len(tree.seen) == 6
    assert tree.after((300,)) == ([0, 1, 2], [301, 301, 305])


def test_each_score_is_that_of_its_continuation_alone_and_the_session_stays(model):
    session = model.open(PREFIX, ROWS, 8, 6)
    for _ in range(2):
        before, expected = session.logits(), np.stack([session.score(label) for label in LABELS], axis=1)
        assert session.scores(LABELS) == pytest.approx(expected, abs=1e-3)
        assert np.array_equal(session.logits(), before)
        assert expected.std() > 0.5, "all alike: the test shows nothing"
        session.advance([30, 31, 32, 33])


def test_a_row_scores_alike_to_the_bit_among_any_others(model):
    found = model.open(PREFIX, ROWS, 8, 6).scores(LABELS)
    moved = model.open(PREFIX, [[1, 2, 3, 4], ROWS[2], [5], ROWS[0]], 8, 6).scores(LABELS)
    assert np.array_equal(moved[[1, 3]], found[[2, 0]])
    assert not np.array_equal(moved[0], found[0])


def test_continuations_of_one_token_need_no_pass(model):
    session = model.open(PREFIX, ROWS, 8, 0)
    expected = np.stack([session.score([each]) for each in (300, 301)], axis=1)
    assert session.scores([[300], [301]]) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("config", [MistralConfig(sliding_window=4), Gemma3TextConfig()])
def test_a_window_is_not_looked_through(config):
    assert not attends_to_everything(config)
    assert attends_to_everything(LlamaConfig(**SMALL))


def test_a_session_without_a_tree_is_asked_one_by_one(model):
    session = ToyModel().open([], [[5], [6]], 1, 9)
    expected = np.stack([session.score(label) for label in ([1, 2], [3])], axis=1)
    assert np.array_equal(scores_of(session, [[1, 2], [3]]), expected)
    model.forward.branches = False
    session = model.open(PREFIX, ROWS, 8, 6)
    assert np.array_equal(session.scores(LABELS), np.stack([session.score(label) for label in LABELS], axis=1))


@pytest.mark.parametrize("part", [1, 2, 4])
def test_a_prefix_in_parts_is_the_same_prefix(model, monkeypatch, part):
    whole = model.open(PREFIX, ROWS, 8, 1).logits()
    monkeypatch.setattr(forward, "_PART", part)
    model._prefixes.clear()
    assert model.open(PREFIX, ROWS, 8, 1).logits() == pytest.approx(whole, abs=1e-3)
    model._prefixes.clear()
    assert model.open([1, *PREFIX[1:]], ROWS, 8, 1).logits() != pytest.approx(whole, abs=1e-3)
