"""What the rest of the project asks of an embedding model: texts in, unit vectors on a grid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """A model that places texts of similar meaning near each other."""

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The texts' unit vectors on the grid of `mechanisms.queries.similarity`, shape (texts, dimensions).

        A text's vector depends, to the bit, on that text alone. Texts can be guessed from vectors: they are as private
        as the texts, and are never stored.
        """
        ...
