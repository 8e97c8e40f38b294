"""A step of one token, recorded once on an NVIDIA GPU (a CUDA graph) and replayed for every later token.

Launched one by one, the thousand small kernels of a step take up to five times their computing time
(research/docs/gpu.md). A recording has fixed addresses and shapes: a step reads its tokens, their positions, their
mask, and the place to write to from tensors at fixed addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin


class _Placed(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of a layer, (rows, heads, capacity, width); a step writes at the position that `place` holds."""

    is_sliding = False

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, place: torch.Tensor) -> None:
        super().__init__()
        self.keys, self.values, self._place = keys, values, place
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Do nothing: the memory exists already."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        with _any_kernel():
            self.keys.index_copy_(2, self._place, key_states)
            self.values.index_copy_(2, self._place, value_states)
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.keys.shape[2], 0

    def get_seq_length(self) -> int:
        return int(self.keys.shape[2]) - 1

    def get_max_length(self) -> int:
        return int(self.keys.shape[2])


@contextmanager
def _any_kernel() -> Iterator[None]:
    """Allow any kernel for a write to a single position, which is always deterministic. Kernels for many positions sort
    first."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(deterministic, warn_only=only_warns)


Replay = Callable[[], None]


def recorded(work: Callable[[], torch.Tensor]) -> tuple[Replay, torch.Tensor]:
    """Record the GPU work of `work`: a call that repeats it, and the tensor of its result."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        work()  # libraries initialise themselves in a first call, which cannot be recorded
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = work()
    return graph.replay, result


class RecordedStep:
    """A step of one token of some rows, with their cache.

    Args:
        features: the model, with the keyword arguments of transformers.
        layers: keys and values of every layer, (rows, heads, capacity, width): the memory that the step works in.
        record: as `recorded`.
    """

    def __init__(
        self,
        features: Callable[..., torch.Tensor],
        layers: Sequence[tuple[torch.Tensor, torch.Tensor]],
        record: Callable[[Callable[[], torch.Tensor]], tuple[Replay, torch.Tensor]] = recorded,
    ) -> None:
        self._model, self._record = features, record
        keys = layers[0][0]
        rows, capacity, self._dtype = len(keys), keys.shape[2], keys.dtype
        self._tokens, self._positions = (torch.zeros((rows, 1), dtype=torch.long, device=keys.device) for _ in range(2))
        self._seen = torch.zeros((rows, capacity), dtype=torch.bool, device=keys.device)
        self._place = torch.zeros(1, dtype=torch.long, device=keys.device)
        self._cache = Cache(layers=[_Placed(*each, self._place) for each in layers])
        self._made: tuple[Replay, torch.Tensor] | None = None

    def __call__(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """What `features` returns for `tokens`, (rows, 1), at the last position of `mask`, (rows, positions)."""
        here = mask.shape[1]
        self._tokens.copy_(tokens)
        self._positions.copy_(mask.sum(-1, keepdim=True) - 1)
        self._seen.zero_()[:, :here].copy_(mask)
        self._place.fill_(here - 1)
        if self._made is None:
            self._made = self._record(self._step)
        replay, features = self._made
        replay()
        return features.clone()

    def _step(self) -> torch.Tensor:
        hidden = torch.zeros(self._seen.shape, dtype=self._dtype, device=self._seen.device)
        hidden.masked_fill_(~self._seen, torch.finfo(self._dtype).min)
        return self._model(
            input_ids=self._tokens,
            attention_mask=hidden[:, None, None],
            position_ids=self._positions,
            past_key_values=self._cache,
            use_cache=True,
        )
