"""A small GPT-2, trained on documents of all concepts, and a tokenizer that turns the app's prompts into GINC's.

    python -m research.ginc.model --steps 3500

The result is a folder in the user's cache that `load_model` accepts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Replace, Sequence
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from mechanisms.files import cache_folder
from mechanisms.records import PromptTemplate
from research.ginc.hmm import DELIMITER, Concepts, ginc

TEMPLATE, SENTENCE = PromptTemplate(""), "{label}"
LABEL = "concept"
"""The private rows' only label: it is public that they have one concept, but not which one."""
_START, _UNKNOWN = "[endoftext]", "[unknown]"
_SEED, _SAVED_EVERY = 1, 500
"""The seed of the model, which is public: training reproduces it up to the machine's rounding."""
LAYERS, WIDTH, HEADS, CONTEXT, BATCH, RATE = 4, 64, 4, 64, 16, 3e-3
PLANNED = 4000
"""The number of steps over which the learning rate falls to zero; at 3,500 it is at 4% of its maximum."""


def folder() -> Path:
    """The folder of the trained model."""
    return cache_folder() / "ginc" / "gpt2"


def tokenizer(concepts: Concepts) -> PreTrainedTokenizerFast:
    """A tokenizer of words that drops the frame of a prompt, which leaves GINC's own form: `/ x x y / x x y / x x`.

    "Text:" and "Example:" become the delimiter, a lone line break (the start of the base distribution) becomes a
    document's beginning, and all other words of prompts are dropped.
    """
    words = [*concepts.tokens, _START, _UNKNOWN]
    built = Tokenizer(WordLevel({word: code for code, word in enumerate(words)}, unk_token=_UNKNOWN))
    frame = rf"{TEMPLATE.label}:|{LABEL}|\n"
    built.normalizer = Sequence(
        [
            Replace(Regex(r"\A\n\z"), _START),
            Replace(Regex(rf"{TEMPLATE.text}:|Example:"), f" {DELIMITER} "),
            Replace(Regex(frame), " "),
        ]
    )
    built.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=built, eos_token=_START, unk_token=_UNKNOWN)


def untrained(concepts: Concepts, layers: int = LAYERS, width: int = WIDTH) -> GPT2LMHeadModel:
    """A GPT-2 with random weights and the tokenizer's vocabulary."""
    end = len(concepts.tokens)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=end + 2, n_positions=CONTEXT, n_embd=width, n_layer=layers, n_head=HEADS,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=end, eos_token_id=end,
            loss_type="ForCausalLM",
        )
    )  # fmt: skip


def batch(concepts: Concepts, rows: int, rng: np.random.Generator) -> torch.Tensor:
    """Windows of documents of uniformly drawn concepts, every other one a beginning; shape (rows, CONTEXT)."""
    fresh = np.arange(rows) % 2 == 0
    texts = concepts.documents(rng.integers(len(concepts.start), size=rows), CONTEXT, fresh, rng)
    texts[fresh, 1:] = texts[fresh, :-1]
    texts[fresh, 0] = len(concepts.tokens)
    return torch.from_numpy(texts)


def train(
    model: GPT2LMHeadModel, concepts: Concepts, steps: int, rows: int = BATCH, planned: int = PLANNED
) -> Iterator[float]:
    """Train in place on documents drawn during training; yields each step's loss, in nats per token."""
    rng = np.random.default_rng(_SEED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=planned + 1, pct_start=0.05)
    model.train()
    for _ in range(steps):
        texts = batch(concepts, rows, rng)
        loss = model(input_ids=texts, labels=texts).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield float(loss.detach())
    model.eval()


def save(model: GPT2LMHeadModel, concepts: Concepts, told: dict[str, float]) -> None:
    """Save model, tokenizer and the training's result in the folder."""
    model.save_pretrained(folder())
    tokenizer(concepts).save_pretrained(folder())
    (folder() / "training.json").write_text(json.dumps(told), encoding="utf-8")
    print(told, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3500)
    steps = parser.parse_args().steps
    torch.manual_seed(_SEED)
    concepts, started = ginc(), time.process_time()
    model, losses = untrained(concepts), list[float]()
    for loss in train(model, concepts, steps):
        losses.append(loss)
        if len(losses) % _SAVED_EVERY == 0 or len(losses) == steps:
            seconds = round(time.process_time() - started, 1)
            save(model, concepts, {"steps": len(losses), "loss": float(np.mean(losses[-200:])), "cpu_seconds": seconds})


if __name__ == "__main__":
    main()
