"""For benchmarks that embed the same texts again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference import Embedder


class Remembering:
    """An embedder that embeds a text once; in memory."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimensions, self._embedder = embedder.name, embedder.dimensions, embedder
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        missing = [each for each in texts if each not in self._known]
        self._known.update(zip(missing, self._embedder.embed(missing), strict=True))
        return np.array([self._known[each] for each in texts], np.float32).reshape(len(texts), self.dimensions)
