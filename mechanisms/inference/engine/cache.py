"""A key-value cache of fixed size: appends in place, and can step back; what is not filled is finite, and masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin


class _Layer(CacheLayerMixin):  # type: ignore[misc]
    is_sliding = False  # sliding-window models mask by position instead

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity, self.filled = capacity, 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        rows, heads = key_states.shape[:2]
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys = key_states.new_zeros((rows, heads, self.capacity, key_states.shape[-1]))
        self.values = value_states.new_zeros((rows, heads, self.capacity, value_states.shape[-1]))
        self.is_initialized = True

    def share(self, source: _Layer, rows: slice) -> None:
        """Hold some rows of another layer, in its memory."""
        self.keys, self.values, self.filled = source.keys[rows], source.values[rows], source.filled
        self.dtype, self.device, self.is_initialized = source.dtype, source.device, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, end = self.filled, self.filled + key_states.shape[-2]
        self.keys[:, :, start:end] = key_states
        self.values[:, :, start:end] = value_states
        seen, _ = self.get_mask_sizes(end - start)
        self.filled = end
        return self.keys[:, :, :seen], self.values[:, :, :seen]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        # A single token sees the whole buffer, its end masked: a part of it would be copied for every matrix product,
        # and be of another shape at every step.
        return (self.capacity if query_length == 1 else self.filled + query_length), 0

    def get_seq_length(self) -> int:
        return self.filled

    def get_max_length(self) -> int:
        return self.capacity


class _Ahead(_Layer):
    """Rows of another layer, and behind them what is only looked at and not kept."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self.keys[:, :, : self.filled], self.values[:, :, : self.filled]
        return torch.cat([keys, key_states], dim=2), torch.cat([values, value_states], dim=2)


class GrowingCache(Cache):  # type: ignore[misc]
    """Keys and values of one chunk of rows, for up to `capacity` positions."""

    def __init__(self, layers: int, capacity: int) -> None:
        super().__init__(layers=[_Layer(capacity) for _ in range(layers)])

    def fill(self, length: int) -> None:
        """Say how many positions count: fewer than before forgets the rest, more takes in what parts have written."""
        for layer in self.layers:
            layer.filled = length

    def part(self, rows: slice) -> GrowingCache:
        """Some of the rows, in the same memory; what it fills has to be told to this cache (`fill`)."""
        part = GrowingCache(len(self.layers), self.layers[0].capacity)
        for source, target in zip(self.layers, part.layers, strict=True):
            target.share(source, rows)
        return part

    def ahead(self, rows: slice) -> Cache:
        """Some of the rows, for a pass that leaves this cache as it is."""
        layers = [_Ahead(layer.capacity) for layer in self.layers]
        for source, target in zip(self.layers, layers, strict=True):
            target.share(source, rows)
        return Cache(layers=layers)

    def expanded(self, rows: int, capacity: int) -> GrowingCache:
        """This one-row cache, copied for `rows` rows and a larger capacity."""
        copy = GrowingCache(len(self.layers), capacity)
        for source, target in zip(self.layers, copy.layers, strict=True):
            target.update(
                source.keys[:, :, : source.filled].expand(rows, -1, -1, -1),
                source.values[:, :, : source.filled].expand(rows, -1, -1, -1),
            )
        return copy

    @classmethod
    def gathered(cls, caches: Sequence[GrowingCache], places: Sequence[tuple[int, int]]) -> GrowingCache:
        """Rows of several caches of one shape, as a cache; a place is (cache, row)."""
        filled = caches[0].get_seq_length()
        result = cls(len(caches[0].layers), caches[0].layers[0].capacity)
        for number, layer in enumerate(result.layers):
            sources = [cache.layers[number] for cache in caches]
            keys, values = (
                torch.stack([getattr(sources[i], name)[j, :, :filled] for i, j in places])
                for name in ("keys", "values")
            )
            layer.update(keys, values)
        return result
