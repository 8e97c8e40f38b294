"""Models whose rows can touch each other are refused, by their config and by a test on the device."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.models.catalogue import refuse_by_config, refuse_by_test
from tests.toy_model import ToyModel

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 50_000,
}


def test_mixtures_of_experts_and_positions_of_the_batch_are_refused():
    refuse_by_config(LlamaConfig(**SMALL))
    with pytest.raises(ModelUnavailable, match="experts"):
        refuse_by_config(MixtralConfig(**SMALL))
    for kind in ("dynamic", "longrope"):
        config = LlamaConfig(**SMALL)
        config.rope_parameters = {"rope_type": kind, "rope_theta": 10_000.0, "factor": 2.0}
        with pytest.raises(ModelUnavailable, match="position"):
            refuse_by_config(config)


def test_a_model_that_mixes_rows_is_noticed():
    class Mixing(ToyModel):
        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            plain = session.logits
            session.logits = lambda columns=None, rows=slice(None): plain(columns, rows) + 1e-9 * plain().mean()
            return session

    refuse_by_test(ToyModel())
    with pytest.raises(ModelUnavailable, match="other rows"):
        refuse_by_test(Mixing())


def test_the_embedded_model_passes_and_keeps_within_its_context(embedded_model):
    refuse_by_config(embedded_model.model.config)
    refuse_by_test(embedded_model)
    with pytest.raises(UsageError, match="context"):
        embedded_model.open([], [[5]], embedded_model.context, 1)


def test_grouped_heads_of_any_number_work(random_model):
    torch.manual_seed(0)
    for key_heads in (1, 2, 4):
        model = LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=key_heads))
        wrapped = TransformersModel("random", "0", model, random_model.tokenizer)
        refuse_by_test(wrapped)
        logits = wrapped.open([7], [[5, 6]], 4, 0).logits()
        assert np.isfinite(logits).all()
