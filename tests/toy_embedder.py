"""An embedder without a model: words at pseudo-random places of the sphere, so that texts that share words are near."""

from __future__ import annotations

import functools
import hashlib

import numpy as np

from mechanisms.queries import retrieval


@functools.lru_cache(maxsize=2**14)
def _word(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=dimensions)


class ToyEmbedder:
    name, sha256 = "toy", "e" * 64

    def __init__(self, dimensions: int = 16) -> None:
        self.dimensions = dimensions
        if dimensions != 16:  # another model: what is kept of one is of no use to the other
            self.sha256 = f"{dimensions:064x}"

    def embed(self, texts):
        sums = [
            sum((_word(w, self.dimensions) for w in text.split()), np.full(self.dimensions, 1e-9)) for text in texts
        ]
        vectors = np.array(sums, dtype=np.float32).reshape(-1, self.dimensions)
        return retrieval.on_grid(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def embed_together(self, texts):
        return ToyEmbedder.embed(self, texts)
