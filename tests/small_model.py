"""A model of random weights with the tokens of the embedded one, for what is not about what a model writes.

It goes the whole way of a real model: a folder with safetensors, which is read, tested and measured. A step of it takes
a hundredth of the time.
"""

from __future__ import annotations

import functools
import tempfile

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from mechanisms.inference.models.catalogue import converted
from mechanisms.inference.models.listing import gguf_in_wheel

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
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(_FOLDER.name)
    tokenizer.chat_template = None  # the embedded model is asked in plain text as well
    tokenizer.save_pretrained(_FOLDER.name)
    return _FOLDER.name
