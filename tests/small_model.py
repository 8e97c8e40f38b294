"""A model of random weights with the tokens of the embedded one, for what is not about what a model writes.

It writes plain words, and at times ends a sentence, so that its texts are texts to the gate and to a ballot.
It goes the whole way of a real model: a folder with safetensors, which is read, tested and measured. A step of it takes
a hundredth of the time.
"""

from __future__ import annotations

import functools
import re
import tempfile

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase
from transformers.utils import logging

from mechanisms.inference.models.conversion import converted
from mechanisms.inference.models.listed import gguf_in_wheel

_WORD, _WORDS = re.compile("Ġ[a-z]{4,8}"), 200
_CONSTANT, _BARRED, _STOPS = 30.0, 10.0, 0.3
"""A number of every hidden state, what it weighs against all other tokens, and what for a full stop."""
_FOLDER = tempfile.TemporaryDirectory(prefix="dpicl-small-model-")


@functools.cache
def small_model() -> str:
    """The folder, as `--model` and `DPICL_MODEL` take it; made once a process."""
    logging.disable_progress_bar()
    gguf = gguf_in_wheel()
    assert gguf is not None
    tokenizer = AutoTokenizer.from_pretrained(converted(gguf))
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        initializer_range=0.3,  # the least likely token is some nats behind the likeliest, as in a real one
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
    _speak(model, tokenizer)
    model.save_pretrained(_FOLDER.name)
    tokenizer.chat_template = None  # the embedded model is asked in plain text as well
    tokenizer.save_pretrained(_FOLDER.name)
    return _FOLDER.name


def _speak(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase) -> None:
    """Leave words and full stops among the likely tokens: the first number of a hidden state is always the same."""
    words = sorted(code for name, code in tokenizer.get_vocab().items() if _WORD.fullmatch(name))[:_WORDS]
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = _CONSTANT
        for layer in model.model.layers:
            attention, mlp = layer.self_attn, layer.mlp
            attention.o_proj.weight[0] = mlp.down_proj.weight[0] = 0.0
            for reads in (attention.q_proj, attention.k_proj, attention.v_proj, mlp.gate_proj, mlp.up_proj):
                reads.weight[:, 0] = 0.0
        head = model.lm_head.weight
        head[:, 0] = -_BARRED
        head[words, 0] = 0.0
        head[tokenizer.convert_tokens_to_ids("."), 0] = _STOPS
