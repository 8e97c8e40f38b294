"""The benchmark of the engine, beside the same work without it."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from mechanisms.accounting import Claim, Fingerprint, PrivacyLedger, PrivacyTarget
from mechanisms.inference import WritingPrompt
from mechanisms.inference.engine import attention
from mechanisms.inference.engine.forward import padded
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.language_model import Tokens
from mechanisms.noise import SecureRandomness
from mechanisms.records import RECORD, Record
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import WRITE, Recipe, RunSpec, completed
from mechanisms.runs.writing import DemonstrationWriter, write_together
from mechanisms.sampling import Scheme


class PlainLoop:
    """The same work without the project's engine: times raw calls of a model's `forward`, in seconds.

    It uses the attention and cache of transformers. One loop feeds every whole prompt for each token, as published code
    does; the bare model step is the ceiling.
    """

    def __init__(self, owner: TransformersModel) -> None:
        self._owner, self._model = owner, owner.model

    @contextmanager
    def _own_attention(self) -> Iterator[None]:
        self._model.set_attn_implementation("sdpa")
        try:
            with torch.inference_mode():
                yield
        finally:
            self._model.set_attn_implementation(attention.NAME)

    def batched(self, prompts: Sequence[Tokens]) -> float:
        """One token of every prompt, in one batch with padding on the left; last logits only."""
        tokens, mask = padded(prompts, max(len(prompt) for prompt in prompts))
        with self._own_attention():
            return self._timed(tokens, attention_mask=mask)

    def published(self, prompts: Sequence[Tokens]) -> float:
        """One token of every prompt, without padding: a forward pass for each, with the logits of every position."""
        with self._own_attention():
            return sum(self._timed(torch.tensor([list(prompt)]), keep=0) for prompt in prompts)

    def dense(self, rows: int, length: int) -> float:
        """A prefill of rows x length positions without padding: the ceiling of a step without a cache.

        The faster of one batch and of the engine's number of passes.
        """
        size = self._owner.room.slices(rows, length)
        with self._own_attention():
            whole = self._timed(torch.ones((rows, length), dtype=torch.long))
            return min(
                whole, sum(self._timed(torch.ones((size, length), dtype=torch.long)) for _ in range(rows // size))
            )

    def cached(self, rows: int, length: int, steps: int) -> tuple[float, list[float]]:
        """Seconds of the prefill (the faster of two ways, as `dense`) and of each of `steps` steps with a cache."""
        tokens = torch.ones((rows, length), dtype=torch.long).to(self._model.device)
        with self._own_attention():
            started = time.perf_counter()
            output = self._model(input_ids=tokens, use_cache=True, logits_to_keep=1)
            _wait(output)
            prefill, decoded = time.perf_counter() - started, []
            for _ in range(steps):
                started = time.perf_counter()
                output = self._model(
                    input_ids=tokens[:, :1], past_key_values=output.past_key_values, use_cache=True, logits_to_keep=1
                )
                _wait(output)
                decoded.append(time.perf_counter() - started)
        del output
        return min(prefill, self.dense(rows, length)), decoded

    def memory(self) -> tuple[int, int]:
        """Bytes of the weights, and the peak memory on their device since the process started."""
        weights = sum(parameter.numel() * parameter.element_size() for parameter in self._model.parameters())
        if self._model.device.type == "cuda":
            return weights, torch.cuda.max_memory_allocated(self._model.device)
        unit = 1 if sys.platform == "darwin" else 1024
        return weights, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def _timed(self, tokens: torch.Tensor, keep: int = 1, **inputs: torch.Tensor) -> float:
        moved = {name: value.to(self._model.device) for name, value in inputs.items()}
        started = time.perf_counter()
        _wait(self._model(input_ids=tokens.to(self._model.device), use_cache=False, logits_to_keep=keep, **moved))
        return time.perf_counter() - started


def _wait(output: Any) -> None:
    # Reading one number waits for the device.
    output.logits[0, -1, 0].item()


class _Timed:
    """A proxy that times calls which run the model."""

    def __init__(self, inner: Any, count: Callable[[float], None]) -> None:
        self._inner, self._count = inner, count

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("open", "logits", "advance", "keep", "score"):
            return found

        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                result = found(*arguments, **named)
            finally:
                self._count(time.perf_counter() - started)
            return _Timed(result, self._count) if name == "open" else result

        return timed


class TimedModel(_Timed):
    """A `LanguageModel` that counts the `seconds` of its sessions, opening included, without encoding and decoding."""

    def __init__(self, model: Any) -> None:
        self.seconds = 0.0
        self.stop_tokens: frozenset[int] = model.stop_tokens
        super().__init__(model, self._add)

    def _add(self, seconds: float) -> None:
        self.seconds += seconds


TOKENS = 100
"""T of every setting."""
PROMPT = 128
"""P: positions of a prompt in the per-demonstration setting."""
_CANDIDATES = 50
"""K of every setting."""
_LABEL = "World"
_SIZES = {_LABEL: 2_000}


@dataclass(frozen=True)
class Measured:
    """One line of the report.

    Attributes:
        setting, what: the run, and the measured quantity.
        value, unit: the measurement.
        at_least, at_most: the goal; None for a value without one.
    """

    setting: str
    what: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the value meets its goal."""
        low, high = self.at_least, self.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)


@dataclass(frozen=True)
class _Steps:
    """Seconds to a demonstration's first token and of each later one; the share of a later step outside the model,
    with its part of one-time costs."""

    first: float
    later: list[float]
    share: float


def bench(model: TransformersModel, texts: Sequence[str], quick: bool = False) -> Iterator[Measured]:
    """Measure the engine beside plain loops and the machine's ceiling; yields a measurement as soon as it is known.

    Args:
        model: on its device.
        texts: public texts in place of private records.
        quick: write fewer tokens in each setting, so that only early steps are timed.
    """
    plain = PlainLoop(model)
    yield from _per_demonstration(model, plain, texts, 6 if quick else TOKENS)
    yield from _per_token(model, plain, texts, 3 if quick else 10)


def _per_demonstration(
    model: TransformersModel, plain: PlainLoop, texts: Sequence[str], steps: int
) -> Iterator[Measured]:
    setting = f"per demonstration, M = 100, T = {TOKENS}, P = {PROMPT}"
    plan = _plan(model, Scheme.PER_DEMONSTRATION, 100, unit_rows=True)
    ours = _written(model, plan, texts, steps)
    weights, peak = plain.memory()
    yield Measured(setting, "peak memory so far, Python and libraries included", peak / 2**30, "GiB")
    yield Measured(setting, "peak memory over the size of the model", peak / weights)
    prefill, decoded = plain.cached(plan.capacity(_LABEL), PROMPT, steps - 1)
    middle = [[5] * (PROMPT + TOKENS // 2)] * 100
    loop = mean(plain.batched(middle) for _ in range(1 if steps < TOKENS else 3))
    ours_whole = ours.first + (TOKENS - 1) * mean(ours.later)
    bare_whole = prefill + (TOKENS - 1) * mean(decoded)
    yield Measured(setting, "to the first token", ours.first, "s")
    yield Measured(setting, "a later token", mean(ours.later), "s")
    yield Measured(setting, "a token of the batched plain loop, at T/2", loop, "s")
    yield Measured(setting, "a demonstration", ours_whole, "s")
    yield Measured(setting, "a demonstration of the bare model step", bare_whole, "s")
    yield Measured(setting, "times the batched plain loop", TOKENS * loop / ours_whole, at_least=20)
    yield Measured(setting, "of the bare model step", bare_whole / ours_whole, at_least=0.7)
    yield Measured(setting, "not the model, of a step", ours.share, at_most=0.05)
    adaptive = _plan(model, Scheme.PER_DEMONSTRATION, 100, unit_rows=True, mechanism="adadpsyn")
    ada = _written(model, adaptive, texts, min(steps, 12))
    yield Measured(setting, "not the model, of a step, AdaDPSyn", ada.share, at_most=0.10)


def _per_token(model: TransformersModel, plain: PlainLoop, texts: Sequence[str], steps: int) -> Iterator[Measured]:
    setting = "per token, M = 10, N = 2"
    plan = _plan(model, Scheme.PER_TOKEN, 10, unit_rows=False)
    prompt = _prompt(model, plan)
    prefix = model.started(prompt.prefix)
    _written(model, plan, texts, 2)  # a first run warms the shapes up
    writer = _writer(model, plan, texts)
    times: dict[str, list[float]] = {"published": [], "batch": [], "dense": []}
    shares = []
    # Interleaved, so that changes of the machine's speed affect all of them.
    for _ in range(steps):
        rows = [[*prefix, *row] for row in writer.join().prompts]
        shares.append(1 - mean(len(row) for row in rows) / (len(prefix) + prompt.length))
        times["published"].append(plain.published(rows))
        times["batch"].append(plain.batched(rows))
        times["dense"].append(plain.dense(len(rows), prompt.length))
    ours = _written(model, plan, texts, steps)
    ada = _written(model, _plan(model, Scheme.PER_TOKEN, 10, unit_rows=False, mechanism="adadpsyn"), texts, steps)
    step = mean([ours.first, *ours.later])
    yield Measured(setting, "a token", step, "s")
    yield Measured(setting, "padding, of whole-row positions", mean(shares), at_most=0.45)
    yield Measured(setting, "a token of the plain loop, as published", mean(times["published"]), "s")
    yield Measured(setting, "a token of the plain loop, batched, last logits alone", mean(times["batch"]), "s")
    yield Measured(setting, "a dense prefill of as many positions", mean(times["dense"]), "s")
    yield Measured(setting, "of the prefill ceiling", mean(times["dense"]) / step, at_least=0.7)
    yield Measured(setting, "times the plain loop, as published", mean(times["published"]) / step, at_least=1.2)
    yield Measured(setting, "times the plain loop, batched, last logits alone", mean(times["batch"]) / step)
    yield Measured(setting, "not the model, of a step", ours.share, at_most=0.05)
    yield Measured(setting, "not the model, of a step, AdaDPSyn", ada.share, at_most=0.10)


def _plan(model: TransformersModel, scheme: Scheme, subsets: int, unit_rows: bool, mechanism: str = "gaussian") -> Plan:
    # The amount of noise does not change how long it takes to draw.
    spec = RunSpec(
        sizes=_SIZES,
        epsilon=4.0,
        kind="news article",
        recipe=Recipe.TOKENS,
        mechanism=mechanism,
        scheme=scheme,
        subsets=subsets,
        per_subset=None if unit_rows else 2,
        tokens=TOKENS,
        shots=1,
        candidates=_CANDIDATES,
    )
    plan = Plan(spec=completed(spec, _SIZES), labels=(_LABEL,), sizes=_SIZES)
    if scheme is Scheme.PER_TOKEN:
        return plan
    prompt = _prompt(model, plan)
    spare = PROMPT - len(model.started(prompt.prefix)) - prompt.length
    return replace(plan, spec=plan.spec.with_(max_record_tokens=plan.spec.max_record_tokens + spare))


def _prompt(model: TransformersModel, plan: Plan) -> WritingPrompt:
    return WritingPrompt(model, plan.spec.asked, _LABEL, plan.spec.max_record_tokens, plan.sampling.per_subset)


def _writer(model: Any, plan: Plan, texts: Sequence[str]) -> DemonstrationWriter:
    units = [(Record(texts[i % len(texts)], _LABEL),) for i in range(plan.sizes[_LABEL])]
    return DemonstrationWriter(units, plan, model, SecureRandomness(), (_LABEL, 1))


def _written(model: TransformersModel, plan: Plan, texts: Sequence[str], steps: int) -> _Steps:
    """Write `steps` tokens of a demonstration, charged in a temporary ledger."""
    timed = TimedModel(model)
    timed.stop_tokens = frozenset()  # a text that ends early would leave nothing to measure
    writer = _writer(timed, plan, texts)
    with tempfile.TemporaryDirectory() as folder:
        claimed = Claim(1.0, plan.spec.delta, "none", 1.0, "none")
        ledger = PrivacyLedger(Path(folder))
        ledger.set_cap("bench", RECORD, PrivacyTarget(1e9, 0.5))
        run = ledger.begin(Fingerprint("bench", RECORD, "none"), "bench", plan.event, claimed)
        started = time.perf_counter()
        [(per, events), *_] = plan.stages[WRITE].charges()
        run.charge(per, events, _LABEL)
        charged = time.perf_counter() - started
        ends = [time.perf_counter()]
        within = [timed.seconds]
        for event in write_together([writer], plan, timed):
            if isinstance(event, TokenReleased):
                ends.append(time.perf_counter())
                within.append(timed.seconds)
                if len(ends) > steps:
                    break
    spans = [later - earlier for earlier, later in pairwise(ends)]
    other = [span - (later - earlier) for span, (earlier, later) in zip(spans, pairwise(within), strict=True)]
    once = (charged + other[0]) / TOKENS
    return _Steps(charged + spans[0], spans[1:], (once + mean(other[1:])) / mean(spans[1:]))
