"""The model's last matrix, applied to the columns that are asked for alone."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import linear
from transformers import PreTrainedModel


class OutputHead:
    """From the last hidden states to logits.

    Where the head is one matrix, K candidate columns cost K products a row, and are computed in float32: finer than the
    model's own bfloat16 logits, which lie up to 1/8 apart. Models that do more after their last layer (soft-capping,
    scaling) compute every column their own way; a comparison at load finds out.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model: Any = model
        self._matrix: Any = model.get_output_embeddings()
        self.separable = self._is_one_matrix()

    def _is_one_matrix(self) -> bool:
        if not isinstance(self._matrix, torch.nn.Linear) or self._model.base_model is self._model:
            return False
        inputs = {"input_ids": torch.tensor([[1, 2, 3]], device=self._model.device)}
        with torch.inference_mode():
            output = self._model.base_model(**inputs)
            if not hasattr(output, "last_hidden_state"):
                return False
            mine, own = self._matrix(output.last_hidden_state), self._model(**inputs).logits
        return mine.shape == own.shape and torch.allclose(mine.float(), own.float(), rtol=0.02, atol=0.02)

    def features(self, **inputs: Any) -> torch.Tensor:
        """What logits of the last position are made of: (rows, 1, width), or those logits themselves."""
        if self.separable:
            return self.states(**inputs)[:, -1:]
        logits: torch.Tensor = self._model(**inputs, logits_to_keep=1).logits[:, -1:]
        return logits

    def states(self, **inputs: Any) -> torch.Tensor:
        """What logits of every position are made of, (rows, positions, width), of a model whose head is one matrix."""
        hidden: torch.Tensor = self._model.base_model(**inputs).last_hidden_state
        return hidden

    def logits(self, features: torch.Tensor, columns: torch.Tensor | None = None) -> torch.Tensor:
        """Logits of features (rows, positions, width): (rows, positions, vocabulary) or (rows, positions, columns)."""
        if not self.separable:
            return features if columns is None else features[..., columns]
        if columns is None:
            return linear(features, self._matrix.weight, self._matrix.bias)
        # One product a row: a single matrix product would choose its blocking, and so its rounding, by the row count.
        weights = self._matrix.weight[columns].float().t().expand(len(features), -1, -1)
        logits = torch.bmm(features.float(), weights)
        return logits if self._matrix.bias is None else logits + self._matrix.bias[columns].float()
