"""Windows of attention count tokens, not the padding between a public prefix and a row."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, MistralConfig, MistralForCausalLM

from mechanisms.inference.engine.independence import refuse_by_test
from mechanisms.inference.engine.transformers_model import TransformersModel

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
def test_a_padded_session_of_a_sliding_window_model_equals_the_plain_forward_pass(embedded_model, kind):
    torch.manual_seed(0)
    if kind == "gemma":
        layers = ["sliding_attention", "full_attention", "sliding_attention"]
        plain = Gemma3ForCausalLM(Gemma3TextConfig(**SMALL, layer_types=layers)).eval()
    else:
        plain = MistralForCausalLM(MistralConfig(**SMALL)).eval()
    plain.set_attn_implementation("eager")
    prefix, rows, steps = [7, 8, 9], [[], [11], list(range(20, 32))], (40, 41, 42)
    start = list(embedded_model.tokenizer("")["input_ids"])
    with torch.inference_mode():
        texts = [torch.tensor([[*start, *prefix, *row, *steps]]) for row in rows]
        expected = np.stack([plain(text).logits[0, -1].double().numpy() for text in texts])
    wrapped = TransformersModel("random", "0", plain, embedded_model.tokenizer)
    refuse_by_test(wrapped)
    session = wrapped.open(prefix, rows, 16, len(steps))
    for token in steps:
        session.advance([token] * len(rows))
    assert np.abs(session.logits() - expected).max() < 1e-5
