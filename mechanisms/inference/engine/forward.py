"""One forward pass over a chunk of rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from mechanisms.inference.engine.branches import Branches, attends_to_everything
from mechanisms.inference.engine.cache import GrowingCache
from mechanisms.inference.engine.chunk import Chunk
from mechanisms.inference.engine.output_head import OutputHead

_PART = 512
"""Positions of a prefix that are fed at once: what attention holds grows with their number times all before, and on a
CPU large blocks are slow (a prompt of 3,000 tokens took five times as long whole)."""


class ForwardPass:
    """Runs a model on chunks.

    Attributes:
        device: where the model is.
        layers: how many it has.
        head: makes logits of what a pass returns.
        branches: whether it can look at continuations as a tree (`ahead`).
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.device: torch.device = model.device
        self.layers: int = model.config.get_text_config().num_hidden_layers
        self.head = OutputHead(model)
        self.branches: bool = self.head.separable and attends_to_everything(model.config)
        self._dtype: torch.dtype = model.dtype

    def __call__(self, chunk: Chunk) -> torch.Tensor:
        """What logits of the last position are made of, (rows, 1, width); the chunk's cache is filled."""
        positions = (chunk.mask.cumsum(-1) - 1).clamp(min=0)[:, -chunk.tokens.shape[1] :]
        return self.head.features(
            input_ids=chunk.tokens.to(self.device),
            attention_mask=chunk.mask.to(self.device),
            position_ids=positions.to(self.device),
            past_key_values=chunk.cache,
            use_cache=True,
        )

    def ahead(self, chunk: Chunk, rows: slice, tree: Branches) -> torch.Tensor:
        """The same of every path of a tree but the empty one, after some rows of a chunk, which stays where it was.

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
        """The cache of one row that holds these tokens."""
        # Without any, one tells the shapes of keys and values, and is forgotten.
        fed = torch.tensor([list(tokens) or [0]])
        cache = GrowingCache(self.layers, fed.shape[1])
        for start in range(0, fed.shape[1], _PART):
            part = fed[:, start : start + _PART]
            self(Chunk(cache, part, torch.ones_like(fed[:, : start + part.shape[1]])))
        cache.fill(len(tokens))
        return cache
