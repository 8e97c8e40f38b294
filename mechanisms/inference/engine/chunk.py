"""Rows that go through the model together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mechanisms.inference.engine.cache import GrowingCache
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
        cache: keys and values so far.
        tokens: (rows, positions to compute).
        mask: (rows, all positions), 1 where there is a token, 0 where there is padding.
    """

    cache: GrowingCache
    tokens: torch.Tensor
    mask: torch.Tensor

    @classmethod
    def of(cls, cache: GrowingCache, rows: Sequence[Tokens], prefix: int, length: int) -> Chunk:
        """Rows padded on the left to `length`, behind `prefix` positions that the cache holds already."""
        tokens, mask = padded(rows, length)
        return cls(cache, tokens, torch.cat([torch.ones((len(rows), prefix), dtype=torch.long), mask], dim=1))

    @classmethod
    def gathered(cls, chunks: Sequence[Chunk], rows: Sequence[int]) -> Chunk:
        """Some rows of several chunks of one shape, as a chunk; rows are counted through all of them."""
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
        """How many rows."""
        return len(self.mask)

    def append(self, tokens: torch.Tensor) -> None:
        """Feed `tokens`, (rows, positions), next."""
        self.tokens = tokens
        self.mask = torch.cat([self.mask, torch.ones(tokens.shape, dtype=torch.long)], dim=1)
