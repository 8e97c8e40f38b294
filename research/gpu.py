"""The engine on a GPU, measured with random weights in the shapes of common models, so nothing is fetched.

    python -m research.gpu [--shapes NAME ...] [--quick] [--out FILE]

For each shape: loading (including the test of row independence), rates of prefill and decoding, a demonstration by each
scheme, `transformers.generate` for comparison, and peak memory. For the first shape also: running out of memory, and
two Ray workers on one GPU. Prints the measurements, then a table; `--out` stores them as JSON. research/docs/gpu.md has
the results. A model's speed does not depend on its weights; its texts do, and are ignored.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import GemmaConfig, GemmaForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from mechanisms.errors import StudioError
from mechanisms.inference.engine.device import chosen_device
from mechanisms.inference.engine.memory import release_freed_memory
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.language_model import LanguageModel
from mechanisms.inference.models.loading import load_model
from mechanisms.noise import Floats
from research.benchmarks.engine import (
    DEMONSTRATION,
    PROMPT,
    ROWS,
    TOKEN,
    TOKENS,
    Measured,
    PlainLoop,
    per_demonstration,
    per_token,
)
from research.lines import markdown


@dataclass(frozen=True)
class Shape:
    """A model's sizes: width and number of layers, heads, key heads, width of a head, vocabulary."""

    name: str
    width: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    head: int
    vocabulary: int
    tied: bool = True
    gemma: bool = False

    def saved(self, folder: Path) -> None:
        """Save a folder with random weights in this shape, and a tokenizer of as many words."""
        kind, configured = (GemmaForCausalLM, GemmaConfig) if self.gemma else (LlamaForCausalLM, LlamaConfig)
        config = configured(
            hidden_size=self.width,
            intermediate_size=self.inner,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.key_heads,
            head_dim=self.head,
            vocab_size=self.vocabulary,
            max_position_embeddings=8192,
            tie_word_embeddings=self.tied,
            bos_token_id=0,
            eos_token_id=1,
        )
        usual = torch.get_default_dtype()
        torch.set_default_dtype(chosen_device().dtype)
        try:
            with chosen_device().torch_device:
                kind(config).save_pretrained(folder)
        finally:
            torch.set_default_dtype(usual)
        words = {"<s>": 0, "</s>": 1, "?": 2} | {f"w{i}": i for i in range(3, self.vocabulary)}
        inner = Tokenizer(WordLevel(words, unk_token="?"))
        inner.pre_tokenizer = Split(" ", "removed")  # leaves a line break, since no row may be empty
        PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>").save_pretrained(folder)

    def texts(self, count: int = 500, length: int = 38) -> list[str]:
        """Texts of about as many tokens as a row of AG News."""
        draw = Random()
        lengths = (draw.randint(length - 15, length + 15) for _ in range(count))
        return [" ".join(f"w{draw.randrange(3, self.vocabulary)}" for _ in range(each)) for each in lengths]


SHAPES = (
    Shape("Llama 1B", 2048, 8192, 16, 32, 8, 64, 128_256),
    Shape("Llama 3B", 3072, 8192, 28, 24, 8, 128, 128_256),
    Shape("Llama 7B", 4096, 11008, 32, 32, 32, 128, 32_000, tied=False),
    Shape("Gemma 2B", 2048, 16384, 18, 8, 1, 256, 256_000, gemma=True),
    Shape("tiny", 64, 128, 2, 4, 2, 16, 500),
)
"""The last one is for a machine without a GPU."""


def rates(model: TransformersModel, plain: PlainLoop, steps: int) -> Iterator[Measured]:
    """The bare model's tokens per second of a prefill and of a step with a cache, and the time of `generate`."""
    plain.dense(ROWS, PROMPT)  # warms the shape up
    prefill, decoded = plain.cached(ROWS, PROMPT, steps)
    yield Measured("prefill", ROWS * PROMPT / prefill, "tokens/s")
    yield Measured("decoding, a hundred rows", ROWS / decoded, "tokens/s")
    plain.generated(ROWS, PROMPT, 2)
    yield Measured("as many tokens by transformers.generate", plain.generated(ROWS, PROMPT, TOKENS), "s")
    alike = (model.alike([5], rows, length, room) for rows, length, room in ((ROWS + 1, PROMPT, TOKENS), (21, 200, 1)))
    for scheme, found in zip(("per demonstration", "per token"), alike, strict=True):
        yield Measured(f"every slot of a batch computes alike, {scheme}", float(found), "(1: yes)")


def memory_runs_out(model: TransformersModel) -> Iterator[Measured]:
    """Limit this process's memory to less than a batch needs: smaller passes follow, and their numbers are compared."""
    rows, length, draw, usual = 64, 512, Random(), model.room
    prompts = [[draw.randrange(3, 400) for _ in range(length)] for _ in range(rows)]

    def opened(passes: int) -> tuple[Floats, int]:
        model.room = replace(usual, at_once=rows * length // passes)
        release_freed_memory()
        torch.cuda.reset_peak_memory_stats()
        return model.open([], prompts, length, 1).logits(), torch.cuda.max_memory_reserved()

    opened(1)
    (_, whole), (halves, less) = opened(1), opened(2)
    total = torch.cuda.get_device_properties(model.forward.device).total_memory
    try:
        torch.cuda.set_per_process_memory_fraction((whole + less) / 2 / total)
        found, _ = opened(1)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        model.room = usual
    yield Measured("a batch takes", whole / 2**30, "GiB")
    yield Measured("the same in two passes", less / 2**30, "GiB")
    yield Measured("difference after memory ran out between the two", float(np.abs(found - halves).max()), most=0)


def two_workers(folder: Path, model: TransformersModel) -> Iterator[Measured]:
    """Two Ray workers beside this process, all on one GPU: a prefill and ten steps of 400 rows."""
    from mechanisms.inference.cluster import WORKERS, spread  # Ray is an extra

    os.environ[WORKERS] = "2"
    draw = Random()
    prompts = [[draw.randrange(3, 400) for _ in range(PROMPT)] for _ in range(400)]

    def seconds(owner: LanguageModel) -> tuple[float, Floats]:
        started = time.perf_counter()
        session = owner.open([5], prompts, PROMPT, 12)
        for step in range(10):
            session.logits(np.arange(50))
            session.advance([step + 3] * len(prompts))
        return time.perf_counter() - started, session.logits(np.arange(50))

    seconds(model)
    alone, mine = seconds(model)
    started = time.perf_counter()
    with spread(str(folder), model) as several:
        yield Measured("two Ray workers on one GPU, to start", time.perf_counter() - started, "s")
        seconds(several)
        shared, theirs = seconds(several)
    yield Measured("ten steps of 400 rows, one process", alone, "s")
    yield Measured("the same on two workers", shared, "s")
    yield Measured("largest difference of a logit", float(np.abs(mine - theirs).max()), most=0.3)


def measured(shape: Shape, folder: Path, quick: bool, extras: bool) -> Iterator[tuple[str, Measured]]:
    """All measurements of one shape, each with its heading."""
    on_gpu = torch.cuda.is_available()
    started = time.perf_counter()
    shape.saved(folder)
    release_freed_memory()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    made = time.perf_counter()
    model = load_model(str(folder))
    yield "load", Measured("random weights made and written", made - started, "s")
    yield "load", Measured("loaded, and tested that rows do not touch each other", time.perf_counter() - made, "s")
    plain, texts = PlainLoop(model), shape.texts()
    yield "load", Measured("weights", plain.memory()[0] / 2**30, "GiB")
    parts: list[tuple[str, Callable[[], Iterator[Measured]]]] = [
        (DEMONSTRATION, lambda: per_demonstration(model, plain, texts, 6 if quick else TOKENS)),
        (TOKEN, lambda: per_token(model, plain, texts, 3 if quick else 10, published=False)),
        ("the bare model", lambda: rates(model, plain, 3 if quick else 30)),
    ]
    if extras and on_gpu:
        parts.append(("memory that runs out", lambda: memory_runs_out(model)))
    if extras and find_spec("ray"):
        parts.append(("Ray", lambda: two_workers(folder, model)))
    for title, part in parts:
        try:
            yield from ((title, each) for each in part())
        except (StudioError, RuntimeError) as error:  # the others can still be measured
            print(f" {title} FAILED: {type(error).__name__}: {error}", flush=True)


def table(found: dict[str, dict[str, float]]) -> str:
    """A row for each measurement, a column for each shape."""
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    rows = [[name, *(f"{each[name]:.3g}" if name in each else "" for each in found.values())] for name in names]
    return markdown(["", *found], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [shape.name for shape in SHAPES]
    usual = names[:-1] if torch.cuda.is_available() else names[-1:]
    parser.add_argument("--shapes", nargs="+", choices=names, default=usual, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="write few tokens, so that only early steps are timed")
    parser.add_argument("--out", type=Path, help="a file for the measurements, as JSON")
    options = parser.parse_args(arguments)
    found: dict[str, dict[str, float]] = {}
    print(f"{chosen_device()}; torch {torch.__version__}", flush=True)
    for shape in (each for each in SHAPES if each.name in options.shapes):
        print(shape.name, flush=True)
        folder = Path(tempfile.mkdtemp(prefix="dpicl-shape-"))
        try:
            found[shape.name] = {}
            for title, each in measured(shape, folder, options.quick, extras=len(found) == 1):
                found[shape.name][f"{title}: {each.what} {each.unit}".strip()] = each.value
                print(f" {title}:{each}", flush=True)
        except StudioError as error:  # a model without row independence is refused
            print(f" REFUSED: {error}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            gc.collect()
            release_freed_memory()
        if options.out:
            options.out.write_text(json.dumps({"device": str(chosen_device()), "shapes": found}, indent=1))
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
