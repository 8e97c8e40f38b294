"""Attention whose result for a row does not depend on the other rows of the batch, to the bit.

Scaled-dot-product kernels choose their blocking by slot and batch; plain batched matrix products do not. Query heads
that share a key head are stacked along the query axis, so that keys and values are never repeated in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask, remap_positions_for_packed_sequence

NAME = "row-independent"
_BLOCK = 2**20
"""Weights that are held at once on a CPU, where more than its caches hold are slow: a tenth of a label's tokens behind
eighty demonstrations. Other devices have them all."""


def row_independent_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention in the form that transformers calls.

    Args:
        query: (rows, heads, positions, width); key and value: (rows, key heads, all positions, width).
        attention_mask: additive, (rows, 1, positions, all positions).

    Returns:
        Output of shape (rows, positions, heads, width), and no weights.
    """
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    softcap, (_, heads, positions, _) = kwargs.get("softcap"), query.shape
    mask = None if attention_mask is None else attention_mask.expand(len(query), 1, positions, -1)
    # All rows at once, or some positions of a row at a time: which follows from the shape of one row alone.
    block = max(1, _BLOCK // (heads * key.shape[2]))
    if positions <= block or query.device.type != "cpu":
        return _attend(query, key, value, mask, scale, softcap).transpose(1, 2).contiguous(), None
    output = query.new_empty(*query.shape[:3], value.shape[-1])
    for row in range(len(query)):
        one = slice(row, row + 1)
        for start in range(0, positions, block):
            part = slice(start, start + block)
            seen = None if mask is None else mask[one, :, part]
            output[one, :, part] = _attend(query[one, :, part], key[one], value[one], seen, scale, softcap)
    return output.transpose(1, 2).contiguous(), None


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    rows, heads, positions, width = query.shape
    key_heads = key.shape[1]
    groups = heads // key_heads
    stacked = query.reshape(rows, key_heads, groups * positions, width)
    weights = torch.matmul(stacked, key.transpose(2, 3)).float().mul_(scale)
    if softcap is not None:
        weights = torch.tanh(weights / softcap) * softcap
    if mask is not None:
        weights.view(rows, key_heads, groups, positions, -1).add_(mask[:, :, None])
    weights = torch.softmax(weights, dim=-1).to(query.dtype)
    return torch.matmul(weights, value).view(rows, heads, positions, -1)


def mask_by_position(
    mask_function: Callable[..., torch.Tensor],
    kv_length: int,
    attention_mask: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """The additive mask in the form that transformers calls, with distances between tokens instead of between slots.

    A sliding window would otherwise count the padding between a public prefix and a short row.
    """
    if attention_mask is not None:
        attention_mask = pad(attention_mask, (0, kv_length - attention_mask.shape[1]))
        positions = attention_mask.long().cumsum(-1) - 1
        mask_function = remap_positions_for_packed_sequence(mask_function, positions)
    mask: torch.Tensor = eager_mask(
        mask_function=mask_function, kv_length=kv_length, attention_mask=attention_mask, **kwargs
    )
    return mask


def register() -> None:
    """Make the attention known to transformers under `NAME`."""
    AttentionInterface.register(NAME, row_independent_attention)
    AttentionMaskInterface.register(NAME, mask_by_position)
