"""Seconds a demonstration on Llama-2-7B's shape with random weights, in AdaDPSyn's AG News setting.

    python -m research.benchmarks.llama_shape --shape llama-2-7b    # CUDA; nothing is downloaded
    python -m research.benchmarks.llama_shape --shape tiny          # anywhere: shows that the script works

Per-token scheme, M = 10 subsets of N = 2 expected records of 64 tokens, K = 50, T = 100, the whole of `synthesize`:
sampling, model, mechanism, ledger, events. AdaDPSyn's authors report 173 s a demonstration (Llama-2-7B, A5000).
Times do not depend on the values of the weights, nor on the texts: shapes are public.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import tempfile
import time
from itertools import islice, pairwise

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.inference import GenerationPrompt
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class

SHAPES = {
    "tiny": LlamaConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=344, num_hidden_layers=4, num_attention_heads=4
    ),
    "llama-2-7b": LlamaConfig(
        vocab_size=32_000, hidden_size=4096, intermediate_size=11_008, num_hidden_layers=32, num_attention_heads=32,
        max_position_embeddings=4096,
    ),
}  # fmt: skip
PUBLISHED = 173
TOKENS, SUBSETS, PER_SUBSET, RECORD, ROWS = 100, 10, 2, 64, 30_000
TEMPLATE = PromptTemplate("Classify the news articles.", "Article", "Answer")


class StandInTokenizer:
    """A token for each word, by its spelling: as much of a tokenizer as the engine asks for."""

    bos_token_id, eos_token_id, chat_template = 1, 2, None

    def __init__(self, size: int) -> None:
        self._size = size

    def get_vocab(self) -> dict[str, int]:
        return {f"w{i}": i for i in range(self._size)}

    def __call__(self, text: str, add_special_tokens: bool = True, **_: object) -> dict[str, list[int]]:
        tokens = [3 + hash(word) % (self._size - 3) for word in text.split() or [text] * bool(text)]
        return {"input_ids": [self.bos_token_id] * add_special_tokens + tokens}

    def decode(self, tokens: list[int], **_: object) -> str:
        return "".join(f" w{token}" for token in tokens)


def matrix_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Measured operations a second of a large square product."""
    size, repeats = (8192, 50) if device.type == "cuda" else (1536, 10)
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    for _ in range(3):
        a @ b
    finish(device)
    begun = time.perf_counter()
    for _ in range(repeats):
        a @ b
    finish(device)
    return 2 * size**3 * repeats / (time.perf_counter() - begun)


def finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def articles() -> tuple[Record, ...]:
    draw = random.Random(1)
    words = [f"word{i}" for i in range(5000)]
    return tuple(Record(" ".join(draw.choices(words, k=RECORD)), "World") for _ in range(ROWS))


def operations(model: TransformersModel, step: int) -> float:
    """Model operations of a step, counted from 1: 2 a weight of the layers and position, and the attention's products.

    All rows with their padding, and the public row's one new position; the head's K columns are left out.
    """
    prompt = GenerationPrompt(model, TEMPLATE, "World", RECORD, PER_SUBSET)
    config = model.model.config
    weights = sum(weight.numel() for weight in model.model.model.layers.parameters())
    length = prompt.length + step - 1
    held = len(model.started(prompt.prefix)) + length
    private = SUBSETS * length
    attention = 4 * config.num_hidden_layers * config.hidden_size
    return float(2 * weights * (private + 1) + attention * (private * held + held))


def steps(name: str, records: tuple[Record, ...], model: TransformersModel, count: int) -> list[float]:
    """Seconds of the first `count` steps behind the first one of a demonstration."""
    dataset = Dataset(name, ("World",), records)
    plan = SamplingPlan(Scheme.PER_TOKEN, subsets=SUBSETS, per_subset=PER_SUBSET, unit_rows=False, tokens=TOKENS)
    request = SynthesisRequest(
        labels=("World",),
        template=TEMPLATE,
        plan=plan,
        mechanism=mechanism_class(name)(),
        target=PrivacyTarget(8.0, 1 / ROWS),
        sizes={"World": ROWS},
        content=fingerprint(dataset).content,
        candidates=50,
    ).calibrated()
    run = synthesize(dataset, request, model, PrivacyLedger())
    released = (time.perf_counter() for event in run if isinstance(event, TokenReleased))
    times = list(islice(released, count + 1))
    run.close()
    if len(times) < 2:
        raise SystemExit("A stop token was drawn at once: run again.")
    return [after - before for before, after in pairwise(times)]


def report(name: str, seconds: list[float], model: TransformersModel, rate: float) -> None:
    measured = [operations(model, step) for step in range(2, len(seconds) + 2)]
    whole = sum(operations(model, step) for step in range(1, TOKENS + 1))
    demonstration = whole * sum(seconds) / sum(measured)
    beside = f" (published for AdaDPSyn on A5000: {PUBLISHED} s)" if model.name == "llama-2-7b" else ""
    print(
        f"{name}: {demonstration:.2f} s a demonstration of {TOKENS} tokens{beside}, scaled by operations from "
        f"{len(seconds)} measured steps; {sum(measured) / sum(seconds) / rate:.0%} of the measured matrix rate"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--steps", type=int, default=TOKENS - 1, help="steps to measure (default: a whole text)")
    options = parser.parse_args()
    cuda = torch.cuda.is_available()
    if options.shape != "tiny" and not cuda:
        raise SystemExit("No GPU is at hand: this shape needs one with 20 GiB. --shape tiny runs everywhere.")
    device, dtype = torch.device("cuda" if cuda else "cpu"), torch.bfloat16 if cuda else torch.float32
    config = SHAPES[options.shape]
    with device:
        random_weights = LlamaForCausalLM._from_config(config, dtype=dtype)
    model = TransformersModel(options.shape, "0" * 64, random_weights, StandInTokenizer(config.vocab_size))
    size = sum(weight.numel() * weight.element_size() for weight in random_weights.parameters())
    rate = matrix_rate(device, dtype)
    where = torch.cuda.get_device_name() if cuda else "CPU"
    print(f"{options.shape}, {size / 2**30:.2f} GiB of {dtype} weights on {where}: {rate / 1e12:.2f} TFLOP/s measured")
    records = articles()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPICL_HOME"] = folder
        for name in ("adadpsyn", "gaussian"):
            report(name, steps(name, records, model, options.steps), model, rate)
    if cuda:
        print(f"peak memory {torch.cuda.max_memory_allocated() / size:.2f} times the model's")
    else:
        print(f"peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB, libraries included")


if __name__ == "__main__":
    main()
