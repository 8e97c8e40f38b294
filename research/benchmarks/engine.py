"""The engine's speed relative to the same work without it (plain loops) and to the machine's ceiling, in one run.

    python -m research.benchmarks.engine [--quick] [--texts FILE] [--model NAME]

`--quick` writes few tokens, in under two minutes on two cores. Missed targets are marked.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from mechanisms.accounting import Claim, Fingerprint, PrivacyLedger, PrivacyTarget
from mechanisms.data.headers import guess_columns
from mechanisms.data.sources import CLINIC, read_table
from mechanisms.inference import WritingPrompt
from mechanisms.inference.engine.attention import ATTENTION
from mechanisms.inference.engine.eight_bits import EightBitLinear
from mechanisms.inference.engine.forward import padded
from mechanisms.inference.engine.threads import fixed_threads
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.language_model import Tokens
from mechanisms.inference.models.listed import default_name
from mechanisms.inference.models.loading import load_model
from mechanisms.noise import SecureRandomness
from mechanisms.records import RECORD, Record
from mechanisms.runs.completion import complete
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import WRITE, Recipe, RunSpec
from mechanisms.runs.writing import DemonstrationWriter, write_together
from mechanisms.sampling import Scheme

ROWS = TOKENS = 100
PROMPT = 128
"""Positions of a prompt in the per-demonstration setting."""
_LABEL = "World"
_SIZES = {_LABEL: 2_000}


class PlainLoop:
    """Measures the seconds of raw calls of a model's `forward`, with the attention and cache of transformers."""

    def __init__(self, owner: TransformersModel) -> None:
        self._owner, self._model = owner, owner.model

    @contextmanager
    def own_attention(self) -> Iterator[None]:
        self._model.set_attn_implementation("sdpa")
        try:
            with torch.inference_mode():
                yield
        finally:
            self._model.set_attn_implementation(ATTENTION)

    def batched(self, prompts: Sequence[Tokens]) -> float:
        """One token of every prompt, in one batch with padding on the left; last logits only."""
        tokens, mask = padded(prompts, max(len(prompt) for prompt in prompts))
        return self._timed(tokens, attention_mask=mask.to(self._model.device))[0]

    def published(self, prompts: Sequence[Tokens]) -> float:
        """One token of every prompt as in published code: one forward pass each, with the logits of every position."""
        return sum(self._timed(torch.tensor([list(prompt)]), logits_to_keep=0)[0] for prompt in prompts)

    def dense(self, rows: int, length: int) -> float:
        """A prefill without padding, the ceiling of a step without a cache: in one batch or in the engine's passes."""
        size = self._owner.room.slices(rows, length)
        whole, slices = (torch.ones((n, length), dtype=torch.long) for n in (rows, size))
        return min(self._timed(whole)[0], sum(self._timed(slices)[0] for _ in range(rows // size)))

    def cached(self, rows: int, length: int, steps: int) -> tuple[float, float]:
        """Seconds of the prefill (the faster of two ways), and of the mean of `steps` steps with a cache."""
        tokens = torch.ones((rows, length), dtype=torch.long)
        prefill, output = self._timed(tokens, use_cache=True)
        decoded = []
        for _ in range(steps):
            seconds, output = self._timed(tokens[:, :1], use_cache=True, past_key_values=output.past_key_values)
            decoded.append(seconds)
        del output
        return min(prefill, self.dense(rows, length)), mean(decoded)

    def memory(self) -> tuple[int, int]:
        """Bytes of the weights, and the peak memory on their device since the process started."""
        weights = sum(each.numel() * each.element_size() for each in self._model.parameters())
        rounded = (each for each in self._model.modules() if isinstance(each, EightBitLinear))
        weights += sum(each.in_features * each.out_features for each in rounded)
        if self._model.device.type == "cuda":
            return weights, torch.cuda.max_memory_allocated(self._model.device)
        unit = 1 if sys.platform == "darwin" else 1024
        return weights, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def generated(self, rows: int, length: int, tokens: int) -> float:
        """Seconds for `tokens` tokens of every row by `transformers.generate`, after prompts of `length` tokens."""
        prompts = torch.full((rows, length), 5, device=self._model.device)
        with self.own_attention():
            started = time.perf_counter()
            made = self._model.generate(
                prompts, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=True, pad_token_id=0
            )
            made[0, -1].item()
            return time.perf_counter() - started

    def _timed(self, tokens: torch.Tensor, **asked: Any) -> tuple[float, Any]:
        moved = tokens.to(self._model.device)
        with self.own_attention():
            started = time.perf_counter()
            output = self._model(input_ids=moved, **{"use_cache": False, "logits_to_keep": 1} | asked)
            output.logits[0, -1, 0].item()  # reading a number waits for the device
            return time.perf_counter() - started, output


class Timed:
    """A model, or its session, that counts the `seconds` of the calls that run the model."""

    def __init__(self, inner: Any, whole: Timed | None = None) -> None:
        self._inner, self._whole, self.seconds = inner, whole or self, 0.0
        self.stop_tokens = frozenset[int]()  # a text that ends early could not be measured

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("open", "logits", "advance", "keep", "score"):
            return found

        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            result = found(*arguments, **named)
            self._whole.seconds += time.perf_counter() - started
            return Timed(result, self._whole) if name == "open" else result

        return timed


class Engine:
    """A setting of the engine, measured with two mechanisms."""

    def __init__(self, model: TransformersModel, texts: Sequence[str], **setting: Any) -> None:
        self.model, self.texts, self._setting = model, texts, setting

    def plan(self, mechanism: str = "gaussian") -> Plan:
        """A plan with the default noise, whose amount does not change the time to draw it."""
        spec = RunSpec(
            sizes=_SIZES,
            epsilon=4.0,
            kind="news article",
            exemplars=0,  # rows of a public length, whatever fits in a prompt
            recipe=Recipe.TOKENS,
            mechanism=mechanism,
            tokens=TOKENS,
            shots=1,
            candidates=50,
            **self._setting,
        )
        plan = Plan(spec=complete(spec, _SIZES), labels=(_LABEL,), sizes=_SIZES)
        if plan.spec.scheme is Scheme.PER_TOKEN:
            return plan
        prompt = self.prompt(plan)
        spare = PROMPT - len(self.model.started(prompt.prefix)) - prompt.length
        return replace(plan, spec=plan.spec.with_(max_record_tokens=plan.spec.max_record_tokens + spare))

    def prompt(self, plan: Plan) -> WritingPrompt:
        return WritingPrompt(
            self.model, plan.spec.wording, _LABEL, plan.spec.max_record_tokens, plan.sampling.per_subset
        )

    def writer(self, plan: Plan, model: Any) -> DemonstrationWriter:
        units = [(Record(self.texts[i % len(self.texts)], _LABEL),) for i in range(_SIZES[_LABEL])]
        return DemonstrationWriter(units, plan, model, SecureRandomness(), (_LABEL, 1))

    def written(self, steps: int, mechanism: str = "gaussian") -> tuple[float, float, float]:
        """Write `steps` tokens of a demonstration, charged in a temporary ledger.

        Returns:
            seconds to the first token and of a later one; the share of a later step outside the model, with its part
            of one-time costs.
        """
        plan, timed = self.plan(mechanism), Timed(self.model)
        writer = self.writer(plan, timed)
        with tempfile.TemporaryDirectory() as folder:
            ledger = PrivacyLedger(Path(folder))
            ledger.set_cap("bench", RECORD, PrivacyTarget(1e9, 0.5))
            claimed = Claim(1.0, plan.spec.delta, "none", 1.0, "none")
            run = ledger.begin(Fingerprint("bench", RECORD, "none"), "bench", plan.event, claimed)
            started = time.perf_counter()
            [(per, events), *_] = plan.stages[WRITE].charges()
            run.charge(per, events, _LABEL)
            charged = time.perf_counter() - started
            moments = [(time.perf_counter(), timed.seconds)]
            for event in write_together([writer], plan, timed):
                if isinstance(event, TokenReleased):
                    moments.append((time.perf_counter(), timed.seconds))
                    if len(moments) > steps:
                        break
        spans = [later - earlier for (earlier, _), (later, _) in pairwise(moments)]
        outside = [(later - b) - (earlier - a) for (earlier, a), (later, b) in pairwise(moments)]
        later = mean(spans[1:])
        return charged + spans[0], later, ((charged + outside[0]) / TOKENS + mean(outside[1:])) / later


@dataclass(frozen=True)
class Measured:
    """A measurement, with its lower or upper target."""

    what: str
    value: float
    unit: str = ""
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        missed = (self.least is not None and self.value < self.least) or (
            self.most is not None and self.value > self.most
        )
        goal = "" if self.most is None else f"  (at most {self.most:g})"
        goal = goal if self.least is None else f"  (at least {self.least:g})"
        return f"  {self.what}: {self.value:.4g} {self.unit}{goal}{'  MISSED' if missed else ''}"


def per_demonstration(
    model: TransformersModel, plain: PlainLoop, texts: Sequence[str], steps: int
) -> Iterator[Measured]:
    """One sample per demonstration: the engine has a cache, the plain loop feeds whole prompts for each token."""
    engine = Engine(model, texts, scheme=Scheme.PER_DEMONSTRATION, subsets=ROWS)
    yield Measured("to the first token, the first time", engine.written(2)[0], "s")  # shapes are tried then
    first, later, share = engine.written(steps)
    weights, peak = plain.memory()
    yield Measured("peak memory so far, Python and libraries included", peak / 2**30, "GiB")
    yield Measured("peak memory over the size of the model", peak / weights)
    prefill, decoded = plain.cached(engine.plan().capacity(_LABEL), PROMPT, steps - 1)
    middle = [[5] * (PROMPT + TOKENS // 2)] * ROWS
    loop = mean(plain.batched(middle) for _ in range(1 if steps < TOKENS else 3))
    ours, bare = first + (TOKENS - 1) * later, prefill + (TOKENS - 1) * decoded
    yield Measured("to the first token", first, "s")
    yield Measured("a later token", later, "s")
    yield Measured("a token of the batched plain loop, at T/2", loop, "s")
    yield Measured("a demonstration", ours, "s")
    yield Measured("a demonstration of the bare model step", bare, "s")
    yield Measured("times the batched plain loop", TOKENS * loop / ours, least=20)
    yield Measured("of the bare model step", bare / ours, least=0.7)
    yield Measured("not the model, of a step", share, most=0.05)
    yield Measured("not the model, of a step, AdaDPSyn", engine.written(min(steps, 12), "adadpsyn")[2], most=0.10)


def per_token(
    model: TransformersModel, plain: PlainLoop, texts: Sequence[str], steps: int, published: bool = True
) -> Iterator[Measured]:
    """One sample per token: neither has a cache. `published` also measures one pass for each row."""
    engine = Engine(model, texts, scheme=Scheme.PER_TOKEN, subsets=10, per_subset=2)
    plan = engine.plan()
    prompt = engine.prompt(plan)
    prefix = model.started(prompt.prefix)
    engine.written(2)  # a first run warms the shapes up
    writer, padding, loops, batches, ceilings = engine.writer(plan, model), [], [], [], []
    for _ in range(steps):  # interleaved, so that changes of the machine's speed affect all of them
        rows = [[*prefix, *row] for row in writer.join().prompts]
        padding.append(1 - mean(len(row) for row in rows) / (len(prefix) + prompt.length))
        loops += [plain.published(rows)] if published else []
        batches.append(plain.batched(rows))
        ceilings.append(plain.dense(len(rows), prompt.length))
    first, later, share = engine.written(steps)
    step, batched, dense = (first + (steps - 1) * later) / steps, mean(batches), mean(ceilings)
    yield Measured("a token", step, "s")
    yield Measured("padding, of whole-row positions", mean(padding), most=0.45)
    if published:
        yield Measured("a token of the plain loop, as published", mean(loops), "s")
        yield Measured("times the plain loop, as published", mean(loops) / step, least=1.2)
    yield Measured("a token of the plain loop, batched, last logits alone", batched, "s")
    yield Measured("a dense prefill of as many positions", dense, "s")
    yield Measured("of the prefill ceiling", dense / step, least=0.7)
    yield Measured("times the plain loop, batched, last logits alone", batched / step)
    yield Measured("not the model, of a step", share, most=0.05)
    yield Measured("not the model, of a step, AdaDPSyn", engine.written(steps, "adadpsyn")[2], most=0.10)


DEMONSTRATION = f"per demonstration, M = {ROWS}, T = {TOKENS}, P = {PROMPT}"
TOKEN = "per token, M = 10, N = 2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="write few tokens, so that only early steps are timed")
    parser.add_argument("--texts", default=CLINIC.path, help="public texts in place of private rows")
    parser.add_argument("--model", default=default_name())
    options = parser.parse_args()
    table = read_table(options.texts)
    text, _ = guess_columns(table)
    texts = [cell for cell in table.frame[text] if cell.strip()]
    model = load_model(options.model, fixed_threads())  # what is timed takes turns
    assert isinstance(model, TransformersModel)
    plain = PlainLoop(model)
    for title, found in (
        (DEMONSTRATION, per_demonstration(model, plain, texts, 6 if options.quick else TOKENS)),
        (TOKEN, per_token(model, plain, texts, 3 if options.quick else 10)),
    ):
        print(title)
        for each in found:
            print(each, flush=True)


if __name__ == "__main__":
    main()
