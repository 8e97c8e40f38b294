"""Attention whose result for a row does not depend on the other rows of the batch, to the bit, and its cache.

On a GPU scaled-dot-product kernels choose their blocking by slot and batch; plain batched matrix products do not. Query
heads that share a key head are stacked along the query axis, so keys and values are never repeated in memory. On a CPU
torch's kernel processes one row's head at a time and stores no weights, so longer passes use it.

The key-value cache has a fixed size: it appends in place and can be truncated. Unfilled positions are finite and
masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, Cache
from transformers.cache_utils import CacheLayerMixin
from transformers.masking_utils import AttentionMaskInterface, eager_mask, remap_positions_for_packed_sequence

from mechanisms.inference.engine.device import CPU
from mechanisms.inference.engine.recorded import RecordedStep

ATTENTION = "row-independent"
FEW = 16
"""The most positions of a pass in which all rows attend to one shared prefix; in longer passes each row attends to a
copy."""


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
        query: (rows, heads, positions, width).
        key, value: (rows, key heads, all positions, width); with a shared prefix (`_Shared`), only each row's own
            positions.
        attention_mask: additive, (rows, 1, positions, all positions), including those of the prefix.

    Returns:
        Output of shape (rows, positions, heads, width), and no weights.
    """
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    softcap, (rows, _, positions, _) = kwargs.get("softcap"), query.shape
    mask = None if attention_mask is None else attention_mask.expand(rows, 1, positions, -1)
    shared: _Shared | None = getattr(key, "shared", None)
    apart = positions > FEW or rows == 1
    if shared is not None and apart:
        key, value, shared = *shared.before(key, value), None
    if apart and query.device.type == CPU and softcap is None:
        output = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=True)
    else:
        output = _attend(query * scale, key, value, mask, softcap, shared)
    return output.transpose(1, 2).contiguous(), None


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    softcap: float | None,
    shared: _Shared | None,
) -> torch.Tensor:
    rows, heads, positions, width = query.shape
    key_heads = key.shape[1]
    groups = heads // key_heads
    stacked = query.reshape(rows, key_heads, groups * positions, width)
    # In the model's own format, and in place: this is the largest tensor of a pass, and memory is slow. Softmax itself
    # sums in float32.
    weights = torch.matmul(stacked, key.transpose(2, 3))
    if shared is not None:
        weights = torch.cat([shared.times(stacked, shared.keys.transpose(1, 2)), weights], dim=-1)
    if softcap is not None:
        weights.div_(softcap).tanh_().mul_(softcap)
    if mask is not None:
        weights.view(rows, key_heads, groups, positions, -1).add_(mask[:, :, None])
    weights = torch.softmax(weights, dim=-1)
    if shared is None:
        output = torch.matmul(weights, value)
    else:
        before, own = weights.split([shared.positions, key.shape[2]], dim=-1)
        output = shared.times(before, shared.values) + torch.matmul(own, value)
    return output.reshape(rows, heads, positions, -1)


def mask_by_position(
    mask_function: Callable[..., torch.Tensor],
    kv_length: int,
    attention_mask: torch.Tensor | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """The additive mask in the form that transformers calls, with distances between tokens instead of between slots.

    Otherwise a sliding window would include the padding between a public prefix and a short row.
    """
    if attention_mask is not None:
        attention_mask = pad(attention_mask, (0, kv_length - attention_mask.shape[1]))
        positions = attention_mask.long().cumsum(-1) - 1
        mask_function = remap_positions_for_packed_sequence(mask_function, positions)
    mask: torch.Tensor = eager_mask(
        mask_function=mask_function, kv_length=kv_length, attention_mask=attention_mask, **kwargs
    )
    # The smallest number plus a negative score would be minus infinity, and padding that sees nothing else would be
    # NaN.
    return mask.clamp_(min=torch.finfo(mask.dtype).min / 2)


AttentionInterface.register(ATTENTION, row_independent_attention)
AttentionMaskInterface.register(ATTENTION, mask_by_position)

ALIGNED = 64
"""The number of shared positions of a prefix is a multiple of this: kernels are faster, and prefixes of nearly equal
length, such as those of the labels, have one shape."""


class _Shared:
    """Keys and values of a prefix, stored once for all rows, each (key heads, positions, width)."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys, self.values, self.positions = keys, values, keys.shape[1]

    def before(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of all positions, from each row's own."""
        copies = len(keys), -1, -1, -1
        return (
            torch.cat([self.keys.expand(copies), keys], dim=2),
            torch.cat([self.values.expand(copies), values], dim=2),
        )

    @staticmethod
    def times(of_rows: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
        """The product of (rows, key heads, n, k) and (key heads, k, m): one large product per head."""
        rows, heads, n, _ = of_rows.shape
        product = torch.bmm(of_rows.transpose(0, 1).reshape(heads, rows * n, -1), shared)
        return product.view(heads, rows, n, -1).transpose(0, 1)


class _Layer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of a layer: those that the rows share, then each row's own; positions count both."""

    is_sliding = False  # sliding-window models mask by position instead

    def __init__(self, capacity: int, shared: _Shared | None = None) -> None:
        super().__init__()
        self.capacity, self.shared = capacity, shared
        self.filled = self.behind = shared.positions if shared else 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        (rows, heads), own = key_states.shape[:2], self.capacity - self.behind
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys = key_states.new_zeros((rows, heads, own, key_states.shape[-1]))
        self.values = value_states.new_zeros((rows, heads, own, value_states.shape[-1]))
        self.is_initialized = True

    def part(self, rows: slice, kind: type[_Layer]) -> _Layer:
        """Some of the rows, in the same memory."""
        part = kind(self.capacity, self.shared)
        part.keys, part.values, part.filled = self.keys[rows], self.values[rows], self.filled
        part.dtype, part.device, part.is_initialized = self.dtype, self.device, True
        return part

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        fed = key_states.shape[-2]
        start = self.filled - self.behind
        self.keys[:, :, start : start + fed] = key_states
        self.values[:, :, start : start + fed] = value_states
        seen = self.get_mask_sizes(fed)[0] - self.behind
        self.filled += fed
        return self._with_shared(self.keys[:, :, :seen], self.values[:, :, :seen])

    def _with_shared(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # Models pass to attention only what a cache returns.
        keys.shared = self.shared  # type: ignore[attr-defined]
        return keys, values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        # A single token attends to the whole buffer, with its end masked: a part of the buffer would be copied for
        # every matrix product, and its shape would change at every step.
        return (self.capacity if query_length == 1 else self.filled + query_length), 0

    def get_seq_length(self) -> int:
        return self.filled

    def get_max_length(self) -> int:
        return self.capacity


class _Ahead(_Layer):
    """Rows of another layer, followed by positions that are attended to but not stored."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        own = self.filled - self.behind
        keys, values = self.keys[:, :, :own], self.values[:, :, :own]
        return self._with_shared(torch.cat([keys, key_states], dim=2), torch.cat([values, value_states], dim=2))


class GrowingCache(Cache):  # type: ignore[misc]
    """Keys and values of one chunk of rows, for up to a number of positions."""

    def __init__(self, layers: Sequence[_Layer], steps: dict[tuple[int, int], RecordedStep] | None = None) -> None:
        super().__init__(layers=list(layers))
        self._steps = {} if steps is None else steps

    @classmethod
    def empty(cls, layers: int, capacity: int) -> GrowingCache:
        return cls([_Layer(capacity) for _ in range(layers)])

    def fill(self, length: int) -> None:
        """Set the number of valid positions: a smaller one drops the rest, a larger one includes what parts have
        written."""
        for layer in self.layers:
            layer.filled = length

    def part(self, rows: slice) -> GrowingCache:
        """Some of the rows, in the same memory; `fill` makes this cache include what the part has written."""
        return GrowingCache([layer.part(rows, _Layer) for layer in self.layers], self._steps)

    def recorded(self, features: Callable[..., torch.Tensor]) -> RecordedStep:
        """A recorded step of one token in this memory; parts of a cache share their recordings."""
        keys = self.layers[0].keys
        where = (keys.data_ptr(), len(keys))
        if where not in self._steps:
            self._steps[where] = RecordedStep(features, [(layer.keys, layer.values) for layer in self.layers])
        return self._steps[where]

    def ahead(self, rows: slice) -> GrowingCache:
        """Some of the rows, for a pass that does not change this cache."""
        return GrowingCache([layer.part(rows, _Ahead) for layer in self.layers])

    @property
    def behind(self) -> int:
        """The number of positions that its rows share."""
        return int(self.layers[0].behind)

    def expanded(self, rows: int, capacity: int, behind: int = 0) -> GrowingCache:
        """This one-row cache for `rows` rows and a larger capacity: `behind` positions are shared, the rest copied."""
        layers = []
        for source in self.layers:
            shared = _Shared(source.keys[0, :, :behind], source.values[0, :, :behind]) if behind else None
            own = (each[:, :, behind : source.filled].expand(rows, -1, -1, -1) for each in (source.keys, source.values))
            layers.append(_Layer(capacity, shared))
            layers[-1].update(*own)
        return GrowingCache(layers)

    @classmethod
    def gathered(cls, caches: Sequence[GrowingCache], places: Sequence[tuple[int, int]]) -> GrowingCache:
        """Rows of several caches of one shape, as a cache; a place is (cache, row)."""
        own = caches[0].get_seq_length() - caches[0].behind
        result = cls([_Layer(layer.capacity, layer.shared) for layer in caches[0].layers])
        for number, layer in enumerate(result.layers):
            sources = [cache.layers[number] for cache in caches]
            keys, values = (
                torch.stack([getattr(sources[i], name)[j, :, :own] for i, j in places]) for name in ("keys", "values")
            )
            layer.update(keys, values)
        return result


def attends_to_everything(config: Any) -> bool:
    """Whether every layer of a transformers config attends to all positions, without a sliding window."""
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None)
    return set(kinds) == {"full_attention"} if kinds else getattr(text, "sliding_window", None) is None
