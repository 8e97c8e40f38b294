"""8-bit products: each position is computed as it would be alone, and close to the float product."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from mechanisms.inference import scores_of
from mechanisms.inference.engine.eight_bits import (
    EightBitLinear,
    eight_bits_work,
    number_format,
    round_to_eight_bits,
)
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.models.refusal import refuse_by_test

pytestmark = pytest.mark.skipif(not torch.cpu._is_avx2_supported(), reason="this processor has no 8-bit products")


def test_torch_still_has_the_products_on_a_processor_that_has_them():
    assert eight_bits_work()


def inputs_of(seed, rows, width):
    """Rows of very different sizes, with an outlier in each."""
    numbers = np.random.default_rng(seed)
    inputs = numbers.normal(size=(rows, width)) * np.exp(numbers.uniform(-20, 20, size=(rows, 1)))
    inputs[np.arange(rows), numbers.integers(width, size=rows)] *= 50
    return torch.tensor(inputs, dtype=torch.float32)


@given(st.integers(0, 2**32 - 1), st.integers(1, 130), st.integers(1, 90), st.integers(1, 70), st.data())
def test_a_position_has_the_bits_it_has_alone_in_any_place_among_any_others(seed, rows, width, out, data):
    layer = EightBitLinear(nn.Linear(width, out))
    inputs = inputs_of(seed, rows, width)
    place = data.draw(st.integers(0, rows - 1))
    others = inputs_of(seed + 1, rows, width)
    others[place] = inputs[place]
    with torch.inference_mode():
        alone = layer(inputs[place : place + 1])[0]
        assert torch.equal(layer(inputs)[place], alone)
        assert torch.equal(layer(others)[place], alone)
        assert torch.equal(layer(inputs.view(1, rows, width))[0, place], alone)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_product_is_that_of_the_rounded_numbers(seed, has_bias):
    layer, inputs = nn.Linear(96, 40, bias=has_bias), inputs_of(seed, 9, 96)
    weight = layer.weight.detach().double()
    rounded = EightBitLinear(layer)
    levels = next(each for each in (63, 127) if str(each.bit_length() + 1) in number_format(nn.Sequential(rounded)))
    by_output = weight.abs().amax(1, keepdim=True) / levels
    by_position = inputs.double().abs().amax(1, keepdim=True) / 127
    exact = ((inputs / by_position).round() * by_position) @ ((weight / by_output).round() * by_output).T
    size = by_position * by_output.T * 127 * levels
    bias = layer.bias.detach().double() if has_bias else 0
    with torch.inference_mode():
        found = rounded(inputs).double()
    # A number halfway between two whole ones may be rounded either way: one step of one of 96 products.
    assert bool(((found - exact - bias).abs() <= size / 63 + 1e-6 * (exact + bias).abs()).all())


def test_rows_of_zeros_and_of_numbers_that_are_none_leave_the_others_alone():
    layer = EightBitLinear(nn.Linear(8, 4, bias=False))
    inputs = inputs_of(3, 4, 8)
    broken = inputs.clone()
    broken[1], broken[2] = 0, torch.nan
    with torch.inference_mode():
        found, expected = layer(broken), layer(inputs)
    assert torch.equal(found[1], torch.zeros(4))
    assert torch.equal(found[[0, 3]], expected[[0, 3]])


def test_a_zero_weight_stays_zero():
    layer = nn.Linear(8, 2, bias=False)
    with torch.no_grad():
        layer.weight[0] = 0
    with torch.inference_mode():
        assert bool((EightBitLinear(layer)(inputs_of(1, 3, 8))[:, 0] == 0).all())


@pytest.fixture
def small(random_model):
    """A small model, as it is and rounded."""
    tokenizer = random_model.tokenizer
    config = LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4, vocab_size=50_000
    )
    exact, rounded = LlamaForCausalLM(config), LlamaForCausalLM(config)
    rounded.load_state_dict(exact.state_dict())
    round_to_eight_bits(rounded)
    return TransformersModel("exact", "0", exact, tokenizer), TransformersModel("rounded", "0", rounded, tokenizer)


def test_a_rounded_model_passes_the_test_at_load_and_says_what_it_computes(small):
    exact, rounded = small
    refuse_by_test(rounded)
    assert "8-bit products" in rounded.arithmetic
    assert "float32" in exact.arithmetic


def test_all_but_the_output_head_is_rounded_and_the_model_hardly_changes(small):
    exact, rounded = small
    assert type(rounded.model.lm_head) is nn.Linear
    assert not any(type(each) is nn.Linear for each in rounded.model.base_model.modules())
    texts = [exact.encode(text) for text in ("one row", "another one with more words", "x")]
    a, b = (scores_of(model.open(texts[0], texts, 10, 10), texts) for model in (exact, rounded))
    assert not np.array_equal(a, b)
    np.testing.assert_allclose(a, b, rtol=0.02)


def test_a_model_without_plain_linear_layers_is_left_as_it_is():
    model = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=100))
    assert not round_to_eight_bits(model)
    assert number_format(model) == "float32"
