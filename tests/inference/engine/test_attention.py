"""Windows of attention count tokens, not the padding between a public prefix and a row."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, MistralConfig, MistralForCausalLM

from mechanisms.inference.engine import attention
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.models.catalogue import refuse_by_test

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "vocab_size": 50_000,
    "sliding_window": 5,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gemma", "mistral"])
def test_a_padded_session_of_a_sliding_window_model_equals_the_plain_forward_pass(random_model, kind):
    torch.manual_seed(0)
    if kind == "gemma":
        layers = ["sliding_attention", "full_attention", "sliding_attention"]
        plain = Gemma3ForCausalLM(Gemma3TextConfig(**SMALL, layer_types=layers)).eval()
    else:
        plain = MistralForCausalLM(MistralConfig(**SMALL)).eval()
    plain.set_attn_implementation("eager")
    prefix, rows, steps = [7, 8, 9], [[], [11], list(range(20, 32))], (40, 41, 42)
    start = list(random_model.tokenizer("")["input_ids"])
    with torch.inference_mode():
        texts = [torch.tensor([[*start, *prefix, *row, *steps]]) for row in rows]
        expected = np.stack([plain(text).logits[0, -1].double().numpy() for text in texts])
    wrapped = TransformersModel("random", "0", plain, random_model.tokenizer)
    refuse_by_test(wrapped)
    session = wrapped.open(prefix, rows, 16, len(steps))
    for token in steps:
        session.advance([token] * len(rows))
    assert np.abs(session.logits() - expected).max() < 1e-5


@pytest.mark.parametrize("softcap", [None, 5.0])
def test_attention_by_blocks_is_attention(monkeypatch, softcap):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 6, 11, 8), torch.randn(3, 2, 40, 8), torch.randn(3, 2, 40, 8)
    mask = torch.zeros(3, 1, 11, 40).masked_fill(torch.ones(11, 40).triu(30).bool(), -torch.inf)
    repeated = key.repeat_interleave(3, dim=1)
    weights = query @ repeated.transpose(2, 3) / 8**0.5
    weights = weights if softcap is None else softcap * torch.tanh(weights / softcap)
    expected = (weights + mask).softmax(-1) @ value.repeat_interleave(3, dim=1)
    for block in (1, 1000, 2**20):  # a position at a time, a few, and all of them
        monkeypatch.setattr(attention, "_BLOCK", block)
        given = {} if softcap is None else {"softcap": softcap}
        found, _ = attention.row_independent_attention(torch.nn.Module(), query, key, value, mask, **given)
        assert (found.transpose(1, 2) - expected).abs().max() < 1e-5


def test_a_rows_attention_by_blocks_is_its_own_to_the_bit(monkeypatch):
    monkeypatch.setattr(attention, "_BLOCK", 2**14)
    query, key, value = (torch.randn(4, heads, n, 16, dtype=torch.bfloat16) for heads, n in ((6, 90), (2, 70), (2, 70)))
    found, _ = attention.row_independent_attention(torch.nn.Module(), query, key, value, None)
    for row in range(4):
        alone, _ = attention.row_independent_attention(
            torch.nn.Module(), query[row : row + 1], key[row : row + 1], value[row : row + 1], None
        )
        assert torch.equal(found[row], alone[0])
