"""The same work without any of the project's engine: what `bench` compares with.

Transformers' own attention and cache. One loop feeds every prompt whole at each token, as published code does; the bare
model step is the ceiling.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from mechanisms.inference.engine import attention
from mechanisms.inference.engine.chunk import padded
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.language_model import Tokens


class PlainLoop:
    """Times raw calls of a model's `forward`, in seconds."""

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
        """One token of every prompt: all of them in one batch, padded on the left to the longest; last logits alone."""
        tokens, mask = padded(prompts, max(len(prompt) for prompt in prompts))
        with self._own_attention():
            return self._timed(tokens, attention_mask=mask)

    def one_at_a_time(self, prompts: Sequence[Tokens], all_logits: bool) -> float:
        """One token of every prompt, each prompt a forward pass of its own.

        Args:
            prompts: without padding.
            all_logits: of every position, as a plain call of the model gives them; else of the last one alone.
        """
        keep = 0 if all_logits else 1
        with self._own_attention():
            return sum(self._timed(torch.tensor([list(prompt)]), keep) for prompt in prompts)

    def dense(self, rows: int, length: int) -> float:
        """A prefill of rows x length positions without padding: the ceiling of a step that has no cache.

        In one batch, or in as many passes as the engine takes for it: whichever is faster.
        """
        size = self._owner.room.slices(rows, length)
        with self._own_attention():
            whole = self._timed(torch.ones((rows, length), dtype=torch.long))
            if size == rows:
                return whole
            return min(
                whole, sum(self._timed(torch.ones((size, length), dtype=torch.long)) for _ in range(rows // size))
            )

    def cached(self, rows: int, length: int, steps: int) -> tuple[float, list[float]]:
        """Prefill seconds (the faster of two ways, see `dense`), and seconds of each of `steps` steps with a cache."""
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
        """Bytes of the weights, and the most that was in use on their device since the process started."""
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
