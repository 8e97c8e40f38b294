"""Chunks take a number of rows at which every slot computes alike, whatever the kernels' blocks are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import linear
from transformers import LlamaConfig, LlamaForCausalLM

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.engine import forward
from mechanisms.inference.engine.transformers_model import TransformersModel, TransformersSession, layout
from mechanisms.inference.models.catalogue import refuse_by_test

CONFIG = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4, vocab_size=50_000
)
LENGTH = 5
FEW = 2 * LENGTH
"""Rows of a matrix: more of them are a first pass here, fewer are single tokens."""


def off(flat, edge):
    """What a kernel gives that does the rows of `edge` with other instructions."""
    flat[edge] *= 1 + 1e-5
    return flat


def tail(rows):
    """The last rows, which fill no block of four."""
    return slice(rows // 4 * 4, rows)


def model_with(edge, tokenizer):
    """A small model whose linear layers, but for the head, do the rows of `edge(rows of the matrix)` differently."""

    def hook(module, inputs, output):
        flat = output.view(-1, output.shape[-1])
        off(flat, edge(len(flat)))

    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG).float()
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear) and layer is not model.get_output_embeddings():
            layer.register_forward_hook(hook)
    return TransformersModel("blocks", "0", model, tokenizer, chat=False)


def alike(model, count):
    """Whether equal rows look equal at every point of a session."""
    session = model.open([5], [[300, 301]] * count, LENGTH, 3)
    seen = [session.logits(), session.score([7, 6])]
    session.advance([9] * count)
    seen.append(session.logits())
    session.keep(list(range(1, count)))
    session.advance([8] * (count - 1))
    seen.append(session.logits())
    return all((each == each[0]).all() for each in seen)


EDGES = {
    "every": tail,
    "single tokens": lambda rows: tail(rows) if rows < FEW else slice(0, 0),
    "first pass": lambda rows: tail(rows) if rows >= FEW else slice(0, 0),
    "first row of a pass, inside": lambda rows: slice(1, 2) if rows % 4 else slice(0, 0),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("count", [6, 7, 9])
def test_rows_never_meet_the_edge_of_a_block(random_model, monkeypatch, name, count):
    model = model_with(EDGES[name], random_model.tokenizer)
    assert alike(model, count)
    monkeypatch.setattr(model.slots, "alike", lambda rows, positions: True)
    assert not alike(model, count), "this kernel has an edge that a session would meet"


class Switching:
    """One thread and two in turn, from one call of a session to the next."""

    def settle(self):
        torch.set_num_threads(3 - torch.get_num_threads())


@pytest.mark.parametrize("count", [7, 9])
def test_nor_when_the_number_of_threads_changes(random_model, monkeypatch, count):
    """Kernels with blocks of four rows on one thread, and of six on two: no chunk of theirs is the other's."""

    def edge(rows):
        blocks = 2 + 2 * torch.get_num_threads()
        return slice(rows // blocks * blocks, rows)

    before, model = torch.get_num_threads(), model_with(edge, random_model.tokenizer)
    model.threads = Switching()
    try:
        torch.set_num_threads(1)
        assert alike(model, count)
        assert {threads for rows, positions, threads in model.slots._known} == {1, 2}
        monkeypatch.setattr(TransformersSession, "_settle", lambda session: model.threads.settle())
        assert not alike(model, count)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("count", [6, 7, 9])
def test_neither_does_the_head(random_model, monkeypatch, count):
    model = model_with(lambda rows: slice(0, 0), random_model.tokenizer)
    monkeypatch.setattr(
        forward, "linear", lambda features, *matrix: off(linear(features, *matrix), tail(len(features)))
    )
    assert alike(model, count)
    monkeypatch.setattr(model.slots, "alike", lambda rows, positions: True)
    assert not alike(model, count)


def test_a_device_without_safe_numbers_is_refused_at_load(random_model):
    with pytest.raises(ModelUnavailable, match="other rows"):
        refuse_by_test(model_with(lambda rows: slice(0, 1), random_model.tokenizer))
    refuse_by_test(model_with(tail, random_model.tokenizer))


@pytest.mark.parametrize(("edge", "rows", "expected"), [(tail, 7, True), (lambda rows: slice(0, 1), 7, False)])
def test_a_model_knows_whether_a_session_has_such_a_number(random_model, edge, rows, expected):
    model = model_with(edge, random_model.tokenizer)
    assert model.alike([5], rows, LENGTH, 3) is expected
    assert model.alike([5], 1, LENGTH, 3), "a single row has no other place"


@given(
    rows=st.integers(1, 3000), limit=st.integers(96, 300), in_a_pass=st.integers(1, 400), multiple=st.integers(1, 96)
)
def test_chunks_hold_all_rows_in_the_multiple_asked_for(rows, limit, in_a_pass, multiple):
    chunks, per_chunk = layout(rows, limit, in_a_pass, multiple)
    assert chunks * per_chunk >= rows
    assert per_chunk % multiple == 0
    assert layout(rows, limit, rows, multiple)[0] == chunks
    assert layout(rows, limit, rows, multiple)[1] <= limit
    assert (chunks - 1) * (limit // multiple * multiple) < rows
