"""Embeddings of a tab's rows: computed a few at a time, so that a page can show progress, and kept in memory only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mechanisms.inference import Embedder

_AT_ONCE = 16
"""Texts between two reports: about a tenth of a second."""


class RowVectors:
    """An `Embedder` that remembers what it has learned: a text's vector depends on that text alone. Private."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}

    def learn(self, texts: Iterable[str]) -> Iterator[tuple[int, int]]:
        """Embed and remember the texts that are new, a few at a time; gives how many of how many are done."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            self._known.update(zip(some, self._embedder.embed(some), strict=True))
            yield start + len(some), len(new)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed`; texts that were not learned are embedded and not remembered."""
        if len(texts) == 1:  # a question: the time it takes must not tell whether a row says the same
            return self._embedder.embed(texts)
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for i, text in enumerate(texts):
            found[i] = self._known[text] if text in self._known else self._embedder.embed([text])[0]
        return found
