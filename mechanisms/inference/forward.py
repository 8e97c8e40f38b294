"""One forward pass over a chunk of rows."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from mechanisms.inference.cache import GrowingCache
from mechanisms.inference.chunk import Chunk
from mechanisms.inference.output_head import OutputHead


class ForwardPass:
    """Runs a model on chunks.

    Attributes:
        device: where the model is.
        layers: how many it has.
        head: makes logits of what a pass returns.
    """

    def __init__(self, model: PreTrainedModel, layers: int | None = None) -> None:
        self.device: torch.device = model.device
        self.layers: int = layers or model.config.get_text_config().num_hidden_layers
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


def first_layers(model: PreTrainedModel, count: int) -> ForwardPass:
    """Passes through the first few layers alone, which share their weights with the model's.

    All layers where the model does not keep them in a list.
    """
    whole = ForwardPass(model)
    base = model.base_model
    for name, child in base.named_children():
        if isinstance(child, torch.nn.ModuleList) and len(child) == whole.layers > count:
            return ForwardPass(_with(model, model.base_model_prefix, _with(base, name, child[:count])), count)
    return whole


def _with(module: torch.nn.Module, name: str, child: torch.nn.Module) -> torch.nn.Module:
    copied = copy.copy(module)
    copied._modules = {**module._modules, name: child}
    return copied
