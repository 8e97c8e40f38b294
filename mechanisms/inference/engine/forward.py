"""One forward pass: attention, a cache of fixed size, a chunk of rows, branches of continuations, selected columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear, pad, scaled_dot_product_attention
from transformers import AttentionInterface, Cache, PreTrainedModel
from transformers.cache_utils import CacheLayerMixin
from transformers.masking_utils import AttentionMaskInterface, eager_mask, remap_positions_for_packed_sequence

from mechanisms.inference.engine.device import CPU, CUDA, device_of, in_parts
from mechanisms.inference.engine.recorded import RecordedStep
from mechanisms.inference.language_model import Tokens

# Attention whose result for a row does not depend on the other rows of the batch, to the bit.
#
# On a GPU scaled-dot-product kernels choose their blocking by slot and batch; plain batched matrix products do not.
# Query heads that share a key head are stacked along the query axis, so keys and values are never repeated in memory.
# On a CPU torch's kernel processes one row's head at a time and stores no weights, so longer passes use it.

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


# A key-value cache of fixed size: it appends in place and can be truncated; unfilled positions are finite and masked.


_ALIGNED = 64
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


# Rows that go through the model together.


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


# Several continuations of the same rows as a tree: one pass processes all of them, and shared parts once.
#
# Otherwise eighty labels of five tokens each would need a pass for each token of each label. A token attends to its row
# and to the tokens of its own branch, at its position within that branch (tree attention, Miao et al. 2024).


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


def attends_to_everything(config: Any) -> bool:
    """Whether every layer of a transformers config attends to all positions, without a sliding window."""
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None)
    return set(kinds) == {"full_attention"} if kinds else getattr(text, "sliding_window", None) is None


# The model's last matrix, applied only to the requested columns.


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


# One forward pass over a chunk of rows.

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
        words = torch.arange(_ALIGNED + 3) % 47 + 1
        try:
            prefix, seen = self.prefix(words[:-1].tolist()), torch.ones((2, len(words)), dtype=torch.long)
            chunks = (
                Chunk(prefix.expanded(2, len(words), behind), words[-1:].expand(2, 1), seen) for behind in (0, _ALIGNED)
            )
            plain, sharing = (self(chunk).float() for chunk in chunks)
        except (RuntimeError, IndexError):  # altered keys, or so few positions or words
            return False
        return bool((sharing - plain).norm() < 0.05 * plain.norm())

    def shared(self, prefix: int, rows: int) -> int:
        """The number of positions of a prefix that `rows` rows share in memory."""
        return prefix // _ALIGNED * _ALIGNED if self.shares and rows > 1 else 0

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
