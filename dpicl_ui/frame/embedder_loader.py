"""Loads the embedding model when it is first needed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpicl_ui.frame.model_loader import ModelLoader
    from mechanisms.inference import Embedder


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
        # transformers sets the default dtype and device while it loads: two models at once would get each other's.
        self._loader.wait()
        with self._lock:
            if self._embedder is None:
                # torch and transformers take seconds to import: only here.
                from mechanisms.inference.models.embeddings import load_embedder

                self._embedder = load_embedder()
            return self._embedder
