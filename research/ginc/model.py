"""A small GPT-2 that is trained on documents of all concepts, and a tokenizer that makes GINC's prompts of the app's.

    python -m research.ginc.model --steps 3500

What stands in the user's cache afterwards is a folder of the kind that `load_model` takes.
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
"""The private rows' only label: that they are of one concept is public, which one it is is not said."""
_START, _UNKNOWN = "[endoftext]", "[unknown]"
_SEED, _SAVED_EVERY = 1, 500
"""The model is public: whoever trains it has the same one, up to the rounding of the machine."""
LAYERS, WIDTH, HEADS, CONTEXT, BATCH, RATE = 4, 64, 4, 64, 16, 3e-3
PLANNED = 4000
"""Steps over which the learning rate falls to nothing; at 3,500 it is at 4% of its height."""


def folder() -> Path:
    """Where the trained model stands."""
    return cache_folder() / "ginc" / "gpt2"


def tokenizer(concepts: Concepts) -> PreTrainedTokenizerFast:
    """A word is a token. The frame of a prompt is none, so that what is left is GINC's own: `/ x x y / x x y / x x`.

    "Text:" and "Example:" are the delimiter, a lone line break (what the base distribution starts from) a document's
    beginning, and all else that prompts say around texts is nothing.
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
    """A GPT-2 with random weights, whose vocabulary is the tokenizer's."""
    end = len(concepts.tokens)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=end + 2, n_positions=CONTEXT, n_embd=width, n_layer=layers, n_head=HEADS,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=end, eos_token_id=end,
            loss_type="ForCausalLM",
        )
    )  # fmt: skip


def batch(concepts: Concepts, rows: int, rng: np.random.Generator) -> torch.Tensor:
    """Windows of documents of concepts drawn evenly, every other one a document's beginning; shape (rows, CONTEXT)."""
    fresh = np.arange(rows) % 2 == 0
    texts = concepts.documents(rng.integers(len(concepts.start), size=rows), CONTEXT, fresh, rng)
    texts[fresh, 1:] = texts[fresh, :-1]
    texts[fresh, 0] = len(concepts.tokens)
    return torch.from_numpy(texts)


def train(
    model: GPT2LMHeadModel, concepts: Concepts, steps: int, rows: int = BATCH, planned: int = PLANNED
) -> Iterator[float]:
    """Train in place on documents that are drawn as they are needed; yields each step's loss, in nats a token."""
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
    """Put model, tokenizer and what the training came to into the folder."""
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
