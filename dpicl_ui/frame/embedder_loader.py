"""Loads the embedding model when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpicl_ui.frame.model_loader import ModelLoader
    from mechanisms.inference import Embedder


class InTurn:
    """See `Embedder`: never at work while a language model is being read (`ModelLoader.loading`)."""

    def __init__(self, embedder: Embedder, loading: threading.Lock) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self._embedder, self._loading = embedder, loading

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        with self._loading:
            return self._embedder.embed(texts)


class EmbedderLoader:
    """One embedding model for the whole app, loaded when it is first needed."""

    def __init__(self, loader: ModelLoader) -> None:
        self._loader = loader
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None

    def embedder(self) -> Embedder:
        """The model; waits for the language model to be loaded, or to have failed.

        Raises:
            ModelUnavailable: it is not on this machine.
        """
        self._loader.wait()
        with self._lock:
            if self._embedder is None:
                # torch and transformers take seconds to import: only here.
                from mechanisms.inference.models.embeddings import load_embedder
                from mechanisms.runs.forecast import measure_embedding

                with self._loader.loading:
                    embedder = load_embedder()
                    self._loader.embedding = measure_embedding(embedder)
                self._embedder = InTurn(embedder, self._loader.loading)
            return self._embedder
