"""One forward pass over a chunk of rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from mechanisms.inference.engine.cache import GrowingCache
from mechanisms.inference.engine.chunk import Chunk
from mechanisms.inference.engine.output_head import OutputHead


class ForwardPass:
    """Runs a model on chunks.

    Attributes:
        device: where the model is.
        layers: how many it has.
        head: makes logits of what a pass returns.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.device: torch.device = model.device
        self.layers: int = model.config.get_text_config().num_hidden_layers
        self.head = OutputHead(model)

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

    def prefix(self, tokens: Sequence[int]) -> GrowingCache:
        """The cache of one row that holds these tokens."""
        # Without any, one tells the shapes of keys and values, and is forgotten.
        fed = torch.tensor([list(tokens) or [0]])
        cache = GrowingCache(self.layers, fed.shape[1])
        self(Chunk(cache, fed, torch.ones_like(fed)))
        cache.fill(len(tokens))
        return cache
