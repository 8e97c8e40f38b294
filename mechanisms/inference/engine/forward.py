"""One forward pass: a chunk of rows, branches of continuations, selected columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear
from transformers import PreTrainedModel

from mechanisms.inference.engine.attention import ALIGNED, GrowingCache, attends_to_everything
from mechanisms.inference.engine.device import CPU, CUDA, device_of, in_parts
from mechanisms.inference.language_model import Tokens


def padded(rows: Sequence[Tokens], length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows padded on the left to `length`: their tokens, and a mask with 1 where there is one, each (rows, length)."""
    tokens = torch.zeros((len(rows), length), dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for i, row in enumerate(rows):
        if len(row):
            tokens[i, -len(row) :] = torch.tensor(list(row))
            mask[i, -len(row) :] = 1
    return tokens, mask


@dataclass(repr=False)
class Chunk:
    """A chunk of rows: their cache, the tokens to feed next, and what they may attend to.

    Attributes:
        tokens: (rows, positions to compute).
        mask: (rows, all positions), 1 where there is a token, 0 where there is padding.
    """

    cache: GrowingCache
    tokens: torch.Tensor
    mask: torch.Tensor

    @classmethod
    def of(cls, cache: GrowingCache, rows: Sequence[Tokens], prefix: int, length: int) -> Chunk:
        """Rows padded on the left to `length`, after the `prefix` positions that the cache already has."""
        tokens, mask = padded(rows, length)
        return cls(cache, tokens, torch.cat([torch.ones((len(rows), prefix), dtype=torch.long), mask], dim=1))

    @classmethod
    def gathered(cls, chunks: Sequence[Chunk], rows: Sequence[int]) -> Chunk:
        """Some rows of several chunks of one shape, as a chunk; rows are numbered across all chunks."""
        size = chunks[0].rows
        places = [divmod(row, size) for row in rows]
        return cls(
            GrowingCache.gathered([chunk.cache for chunk in chunks], places),
            torch.stack([chunks[i].tokens[j] for i, j in places]),
            torch.stack([chunks[i].mask[j] for i, j in places]),
        )

    def part(self, rows: slice) -> Chunk:
        """Some of its rows, with their part of the same cache."""
        return Chunk(self.cache.part(rows), self.tokens[rows], self.mask[rows])

    @property
    def rows(self) -> int:
        return len(self.mask)

    def append(self, tokens: torch.Tensor) -> None:
        """Feed `tokens`, (rows, positions), next."""
        self.tokens = tokens
        self.mask = torch.cat([self.mask, torch.ones(tokens.shape, dtype=torch.long)], dim=1)


class Branches:
    """The tree; public.

    Attributes:
        continuations: at least one token each.
        paths: all distinct prefixes of continuations, without the continuations themselves; the first one is empty.
        tokens: the last token of every path but the empty one, (nodes,).
        depths: the number of tokens of its branch before each of them, (nodes,).
        seen: True for the tokens that a token attends to: those of its own branch up to itself, (nodes, nodes).
    """

    def __init__(self, continuations: Sequence[Tokens]) -> None:
        self.continuations = tuple(map(tuple, continuations))
        self.paths = tuple(dict.fromkeys(each[:i] for each in self.continuations for i in range(len(each))))
        nodes = self.paths[1:]
        self.tokens = torch.tensor([path[-1] for path in nodes], dtype=torch.long)
        self.depths = torch.tensor([len(path) - 1 for path in nodes], dtype=torch.long)
        seen = [[path[: len(other)] == other for other in nodes] for path in nodes]
        self.seen = torch.tensor(seen, dtype=torch.bool)

    def after(self, path: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """The continuations that follow a path: their places, and their next tokens."""
        here = len(path)
        going = [i for i, each in enumerate(self.continuations) if len(each) > here and each[:here] == path]
        return going, [self.continuations[i][here] for i in going]


class OutputHead:
    """From the last hidden states to logits.

    If the head is one matrix, K candidate columns cost K products per row, computed in float32: more precise than the
    model's own bfloat16 logits, whose spacing is up to 1/8. Models with further operations after the last layer
    (soft-capping, scaling) compute all columns themselves; a comparison at load detects them.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model: Any = model
        self._matrix: Any = model.get_output_embeddings()
        self.separable = self._is_one_matrix()

    def _is_one_matrix(self) -> bool:
        # The weights of a quantised head, and of a model in parts, are not accessible.
        if type(self._matrix) is not torch.nn.Linear or self._model.base_model is self._model or in_parts(self._model):
            return False
        inputs = {"input_ids": torch.tensor([[1, 2, 3]], device=self._model.device)}
        with torch.inference_mode():
            output = self._model.base_model(**inputs)
            if not hasattr(output, "last_hidden_state"):
                return False
            mine, own = self._matrix(output.last_hidden_state), self._model(**inputs).logits
        return mine.shape == own.shape and torch.allclose(mine.float(), own.float(), rtol=0.02, atol=0.02)

    def features(self, **inputs: Any) -> torch.Tensor:
        """The input of the last matrix for the last position, (rows, 1, width), or the logits themselves."""
        if self.separable:
            return self.states(**inputs)[:, -1:]
        logits: torch.Tensor = self._model(**inputs, logits_to_keep=1).logits[:, -1:]
        return logits

    def states(self, **inputs: Any) -> torch.Tensor:
        """The input of the last matrix for every position, (rows, positions, width)."""
        hidden: torch.Tensor = self._model.base_model(**inputs).last_hidden_state
        return hidden

    def logits(self, features: torch.Tensor, columns: torch.Tensor | None = None) -> torch.Tensor:
        """Logits of features (rows, positions, width): (rows, positions, vocabulary) or (rows, positions, columns)."""
        if not self.separable:
            return features if columns is None else features[..., columns]
        if columns is None:
            if features.dtype == torch.float16:  # a larger spacing than logits may have
                bias = self._matrix.bias
                return linear(features.float(), self._matrix.weight.float(), None if bias is None else bias.float())
            return linear(features, self._matrix.weight, self._matrix.bias)
        # One product per row: a single matrix product would choose its blocking, and so its rounding, by the row count.
        weights = self._matrix.weight[columns].float().t().expand(len(features), -1, -1)
        logits = torch.bmm(features.float(), weights)
        return logits if self._matrix.bias is None else logits + self._matrix.bias[columns].float()


_PART = 512
"""Positions of a prefix in one pass: attention's memory on a GPU grows with their number times that of all earlier
ones."""


class ForwardPass:
    """Runs a model on chunks.

    Attributes:
        head: turns the output of a pass into logits.
        branches: whether it can process continuations as a tree (`ahead`).
        shares: whether rows store a shared prefix once; determined at load.
        records: whether steps of one token are recorded; determined at load.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.device: torch.device = device_of(model)
        self.layers: int = model.config.get_text_config().num_hidden_layers
        self.head = OutputHead(model)
        self.branches: bool = self.head.separable and attends_to_everything(model.config)
        self._dtype: torch.dtype = model.dtype
        self.records = self.shares = False
        self.shares = self.device.type == CPU and self._can_share()
        self.records = self.device.type == CUDA and not in_parts(model) and self.branches and self._can_record()

    @torch.inference_mode()
    def _can_share(self) -> bool:
        """Whether a prefix that is stored once gives the same result as copies for each row; some models alter keys."""
        words = torch.arange(ALIGNED + 3) % 47 + 1
        try:
            prefix, seen = self.prefix(words[:-1].tolist()), torch.ones((2, len(words)), dtype=torch.long)
            chunks = (
                Chunk(prefix.expanded(2, len(words), behind), words[-1:].expand(2, 1), seen) for behind in (0, ALIGNED)
            )
            plain, sharing = (self(chunk).float() for chunk in chunks)
        except (RuntimeError, IndexError):  # altered keys, or so few positions or words
            return False
        return bool((sharing - plain).norm() < 0.05 * plain.norm())

    def shared(self, prefix: int, rows: int) -> int:
        """The number of positions of a prefix that `rows` rows share in memory."""
        return prefix // ALIGNED * ALIGNED if self.shares and rows > 1 else 0

    @torch.inference_mode()
    def _can_record(self) -> bool:
        """Whether a recorded step gives the same result as the step launched kernel by kernel."""
        words = torch.arange(8) % 97 + 1
        cache = self.prefix(words[:6].tolist()).expanded(4, 8)
        chunk = Chunk(cache, words[6:7].expand(4, 1), torch.ones((4, 7), dtype=torch.long))
        plain = self(chunk)
        try:
            found = chunk.cache.recorded(self.head.features)(chunk.tokens, chunk.mask)
        except RuntimeError:  # an operation that cannot be recorded
            return False
        return torch.allclose(found.float(), plain.float(), rtol=0.02, atol=0.02)

    def __call__(self, chunk: Chunk) -> torch.Tensor:
        """The features for logits of the last position, (rows, 1, width); fills the chunk's cache."""
        if self.records and chunk.tokens.shape[1] == 1 and chunk.cache.layers[0].is_initialized:
            found = chunk.cache.recorded(self.head.features)(chunk.tokens, chunk.mask)
            chunk.cache.fill(chunk.mask.shape[1])
            return found
        positions = (chunk.mask.cumsum(-1) - 1).clamp(min=0)[:, -chunk.tokens.shape[1] :]
        return self.head.features(
            input_ids=chunk.tokens.to(self.device),
            attention_mask=chunk.mask.to(self.device),
            position_ids=positions.to(self.device),
            past_key_values=chunk.cache,
            use_cache=True,
        )

    def ahead(self, chunk: Chunk, rows: slice, tree: Branches) -> torch.Tensor:
        """The features of every non-empty path of a tree after some rows of a chunk, which does not change.

        Returns:
            Shape (rows, nodes, width).
        """
        behind, seen = chunk.mask[rows].bool(), tree.seen
        count, nodes = len(behind), len(seen)
        allowed = torch.cat([behind[:, None].expand(-1, nodes, -1), seen.expand(count, -1, -1)], dim=2)[:, None]
        mask = torch.zeros(allowed.shape, dtype=self._dtype).masked_fill_(~allowed, torch.finfo(self._dtype).min)
        return self.head.states(
            input_ids=tree.tokens.expand(count, -1).to(self.device),
            attention_mask=mask.to(self.device),
            position_ids=(behind.sum(-1, keepdim=True) + tree.depths).to(self.device),
            past_key_values=chunk.cache.ahead(rows),
            use_cache=True,
        )

    def prefix(self, tokens: Sequence[int]) -> GrowingCache:
        """The one-row cache of these tokens."""
        # Without tokens, one token is fed to determine the shapes of keys and values, and then dropped.
        fed = torch.tensor([list(tokens) or [0]])
        cache = GrowingCache.empty(self.layers, fed.shape[1])
        for start in range(0, fed.shape[1], _PART):
            part = fed[:, start : start + _PART]
            self(Chunk(cache, part, torch.ones_like(fed[:, : start + part.shape[1]])))
        cache.fill(len(tokens))
        return cache
