"""Chunks take a number of rows at which every slot computes alike, whatever the kernels' blocks are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.slots import layout
from mechanisms.inference.transformers_model import TransformersModel

CONFIG = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=50_000
)


def model_with(kernel, tokenizer):
    """A small model whose linear layers treat the last rows of a batch as `kernel(output rows)` says."""

    def hook(module, inputs, output):
        flat = output.view(-1, output.shape[-1])
        flat[kernel(len(flat))] *= 1 + 1e-5

    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG).float()
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear) and layer is not model.get_output_embeddings():
            layer.register_forward_hook(hook)
    return TransformersModel("blocks", "0", model, tokenizer, chat=False)


def blocks_of_four(rows):
    return slice(rows // 4 * 4, rows)


def seen(model, rows):
    session = model.open([5], rows, 5, 3)
    session.advance([9] * len(rows))
    before = session.logits()
    session.keep(list(range(1, len(rows))))
    session.advance([8] * (len(rows) - 1))
    return before, session.logits(), session.score([7, 6])


@pytest.mark.parametrize("count", [6, 7, 9])
def test_rows_never_meet_the_edge_of_a_block(embedded_model, count):
    model = model_with(blocks_of_four, embedded_model.tokenizer)
    for each in seen(model, [[300, 301]] * count):
        assert (each == each[0]).all()
    raw = model.model.model(input_ids=torch.full((count, 1), 7)).last_hidden_state
    assert not bool((raw == raw[0]).all()), "the kernel of this test has an edge"


def test_a_device_without_safe_numbers_is_refused(embedded_model):
    model = model_with(lambda rows: slice(0, 1), embedded_model.tokenizer)
    with pytest.raises(ModelUnavailable, match="place in the batch"):
        model.open([5], [[300]] * 3, 4, 1)
    assert np.isfinite(model.open([5], [[300]], 4, 1).logits()).all(), "one row alone has no other places"


@given(rows=st.integers(1, 3000), limit=st.integers(1, 300), in_a_pass=st.integers(1, 400), multiple=st.integers(1, 96))
def test_chunks_hold_all_rows_in_the_multiple_asked_for(rows, limit, in_a_pass, multiple):
    chunks, per_chunk = layout(rows, limit, in_a_pass, multiple)
    assert chunks * per_chunk >= rows
    assert per_chunk % multiple == 0
    plain, bare = layout(rows, limit, None, multiple)
    assert plain == chunks
    assert bare <= limit or bare == multiple
    assert (chunks - 1) * max(multiple, limit // multiple * multiple) < rows
