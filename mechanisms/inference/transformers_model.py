"""Any Hugging Face causal language model as a `LanguageModel`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from mechanisms.errors import UsageError
from mechanisms.inference import attention
from mechanisms.inference.cache import GrowingCache
from mechanisms.inference.language_model import Tokens
from mechanisms.noise import Floats, Integers

ROWS_PER_CHUNK = 64
_PREFIXES_KEPT = 8
_UNKNOWN_CONTEXT = 2**31


def best_device() -> torch.device:
    """CUDA, then Apple's GPU, then the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def best_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the hardware multiplies in it, float32 elsewhere."""
    if device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return torch.float32
    return torch.bfloat16


class TransformersModel:
    """See `LanguageModel`. One session may be used at a time by one thread."""

    def __init__(self, name: str, sha256: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        attention.register()
        model.set_attn_implementation(attention.NAME)
        self.name, self.sha256 = name, sha256
        self.model: Any = model.eval()
        self.tokenizer: Any = tokenizer
        text_config = model.config.get_text_config()
        self.layers: int = text_config.num_hidden_layers
        self.context: int = getattr(text_config, "max_position_embeddings", None) or _UNKNOWN_CONTEXT
        self.stop_tokens = self._stop_tokens()
        self._prefixes: dict[tuple[int, ...], GrowingCache] = {}

    def _stop_tokens(self) -> frozenset[int]:
        ends = self.model.generation_config.eos_token_id
        stops = set(ends if isinstance(ends, list) else [ends]) | {self.tokenizer.eos_token_id}
        vocabulary = self.tokenizer.get_vocab()
        stops |= {i for piece, i in vocabulary.items() if "\n" in piece or "Ċ" in piece or piece == "<0x0A>"}
        return frozenset(int(i) for i in stops if i is not None)

    def prefix_cache(self, prefix: tuple[int, ...], compute: Callable[[tuple[int, ...]], GrowingCache]) -> GrowingCache:
        """Keys and values of a public prefix, computed on first use; the last few are kept."""
        if prefix not in self._prefixes:
            if len(self._prefixes) >= _PREFIXES_KEPT:
                self._prefixes.pop(next(iter(self._prefixes)))
            self._prefixes[prefix] = compute(prefix)
        return self._prefixes[prefix]

    def encode(self, text: str) -> list[int]:
        """See `LanguageModel.encode`; text that spells a special token is read as plain characters."""
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return list(encoded["input_ids"])

    def decode(self, tokens: Tokens) -> str:
        """See `LanguageModel.decode`."""
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True))

    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> TransformersSession:
        """See `LanguageModel.open`."""
        bos = self.tokenizer.bos_token_id
        start = [bos] if bos is not None and self.tokenizer("")["input_ids"] == [bos] else []
        return TransformersSession(self, [*start, *prefix], rows, length, room)


class TransformersSession:
    """See `Session`. Rows are computed in chunks of one shape, each with its own cache."""

    def __init__(
        self, owner: TransformersModel, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int
    ) -> None:
        if any(len(row) > length for row in rows) or length < 1:
            raise ValueError("every row must fit in the session's public length")
        if len(prefix) + length + room > owner.context:
            raise UsageError(
                f"A prompt of {len(prefix) + length + room} tokens does not fit in the model's context of "
                f"{owner.context}: lower the tokens of a record, the records of a row, or the tokens to write."
            )
        self._model, self._device, self._layers = owner.model, owner.model.device, owner.layers
        self._count = len(rows)
        chunks = math.ceil(len(rows) / ROWS_PER_CHUNK)
        per_chunk = math.ceil(len(rows) / chunks)
        # Empty rows fill the last chunk, so that every chunk runs the same kernels.
        padded = [*rows, *([()] * (chunks * per_chunk - len(rows)))]
        capacity = len(prefix) + length + room
        with torch.inference_mode():
            shared = owner.prefix_cache(tuple(prefix), self._compute_prefix)
            self._chunks = [
                _Chunk(shared.expanded(per_chunk, capacity), padded[i : i + per_chunk], len(prefix), length)
                for i in range(0, len(padded), per_chunk)
            ]
            self._logits = [self._forward(c.cache, c.tokens, c.mask) for c in self._chunks]

    def _compute_prefix(self, prefix: tuple[int, ...]) -> GrowingCache:
        cache = GrowingCache(self._layers, max(1, len(prefix)))
        if prefix:
            self._forward(cache, torch.tensor([prefix]), torch.ones((1, len(prefix)), dtype=torch.long))
        return cache

    def _forward(self, cache: GrowingCache, tokens: torch.Tensor, mask: torch.Tensor, keep: int = 1) -> torch.Tensor:
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        output = self._model(
            input_ids=tokens.to(self._device),
            attention_mask=mask.to(self._device),
            position_ids=positions.to(self._device),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=keep,
        )
        logits: torch.Tensor = output.logits[:, -keep:]
        return logits

    def logits(self, columns: Integers | None = None) -> Floats:
        """See `Session.logits`."""
        parts = [logits[:, -1] for logits in self._logits]
        if columns is not None:
            chosen = torch.from_numpy(columns).to(self._device)
            parts = [part[:, chosen] for part in parts]
        return np.concatenate([part.double().cpu().numpy() for part in parts])[: self._count]

    def advance(self, token: int) -> None:
        """See `Session.advance`."""
        with torch.inference_mode():
            for chunk in self._chunks:
                chunk.append([token])
            self._logits = [self._forward(c.cache, c.tokens, c.mask) for c in self._chunks]

    def score(self, continuation: Tokens) -> Floats:
        """See `Session.score`."""
        with torch.inference_mode():
            parts = [self._score(c, first, continuation) for c, first in zip(self._chunks, self._logits, strict=True)]
        return np.concatenate(parts)[: self._count]

    def _score(self, chunk: _Chunk, first: torch.Tensor, continuation: Tokens) -> Floats:
        logits = first[:, -1:]
        if len(continuation) > 1:
            length, tokens, mask = chunk.cache.get_seq_length(), chunk.tokens, chunk.mask
            chunk.append(continuation[:-1])
            rest = self._forward(chunk.cache, chunk.tokens, chunk.mask, keep=len(continuation) - 1)
            logits = torch.cat([logits, rest], dim=1)
            chunk.cache.rewind(length)
            chunk.tokens, chunk.mask = tokens, mask
        logs = torch.log_softmax(logits.double(), dim=-1)
        targets = torch.tensor(list(continuation), device=logs.device).expand(logs.shape[0], -1)
        return np.asarray(logs.gather(2, targets[..., None]).sum((1, 2)).cpu().numpy())


class _Chunk:
    """Rows that go through the model together: their cache, the tokens to feed next, and what they may attend to."""

    def __init__(self, cache: GrowingCache, rows: Sequence[Tokens], prefix: int, length: int) -> None:
        self.cache = cache
        self.tokens = torch.zeros((len(rows), length), dtype=torch.long)
        self.mask = torch.zeros((len(rows), prefix + length), dtype=torch.long)
        self.mask[:, :prefix] = 1
        for i, row in enumerate(rows):
            if len(row):
                self.tokens[i, -len(row) :] = torch.tensor(list(row))
                self.mask[i, -len(row) :] = 1

    def append(self, tokens: Tokens) -> None:
        rows = len(self.mask)
        self.tokens = torch.tensor([list(tokens)]).expand(rows, -1)
        self.mask = torch.cat([self.mask, torch.ones((rows, len(tokens)), dtype=torch.long)], dim=1)
