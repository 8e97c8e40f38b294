"""An embedder with a memory, for benchmarks that embed the same texts repeatedly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference import Embedder


class Remembering:
    """An embedder that embeds each text only once, and stores the vectors in memory."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.sha256, self.dimensions = embedder.name, embedder.sha256, embedder.dimensions
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        missing = [each for each in texts if each not in self._known]
        self._known.update(zip(missing, self._embedder.embed(missing), strict=True))
        return np.array([self._known[each] for each in texts], np.float32).reshape(len(texts), self.dimensions)

    def embed_together(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embedder.embed_together(texts)
