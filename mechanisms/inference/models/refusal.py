"""Refusal of models whose result for one row can depend on the other rows of a batch.

The privacy proof needs row independence: one unit may change only its own row. It holds by construction for dense
models with fixed position embeddings and the attention used here; a test on the actual device detects remaining
violations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
)

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.language_model import LanguageModel

_ROPE_OF_THE_BATCH = {"dynamic", "longrope"}
"""Position embeddings that are scaled by the longest row of the batch."""
_EXPERT_FIELDS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_ATTENTION = {"full_attention", "sliding_attention"}
"""Kinds of layers that the engine's cache and masks support."""


def refuse_by_config(config: Any) -> None:
    """Refuse mixtures of experts, whose rows compete for capacity; position embeddings that depend on the batch; and
    layers with state other than keys and values, for which we have no proof of row independence."""
    text = config.get_text_config()
    layers = {*(getattr(text, "layer_types", None) or ())}
    other = sorted(each.replace("_", " ") for each in layers - _ATTENTION)
    if not layers and getattr(MODEL_FOR_CAUSAL_LM_MAPPING.get(type(text), None), "_is_stateful", False):
        other = ["recurrent"]
    if other:
        raise ModelUnavailable(
            f"Layers of '{text.model_type}' models are refused ({', '.join(other)}): the engine supports only "
            "attention. Use another model."
        )
    if any((getattr(text, field, None) or 0) > 1 for field in _EXPERT_FIELDS):
        raise ModelUnavailable(
            "Mixtures of experts are refused: a row's result can depend on the others. Use a dense model."
        )
    rope = getattr(text, "rope_parameters", None) or {}
    kinds = {each.get("rope_type") for each in (rope, *rope.values()) if isinstance(each, dict)}
    if kinds & _ROPE_OF_THE_BATCH:
        raise ModelUnavailable(
            "Models whose position embeddings depend on the longest row (dynamic, longrope) are refused."
        )


def refuse_by_test(model: LanguageModel) -> None:
    """Run one row among different other rows and in another place, and refuse the model if any bit differs."""
    words = (model.encode("one row must not touch another one ") * 8)[:32]
    row, short, full = words[:9], words[:1], words
    seen = []
    for rows, place in (([row, short, short, short], 0), ([full, full, row, short], 2), ([full, row, full, full], 1)):
        session = model.open(words[:4], rows, len(words), 2)
        session.advance([words[5]] * len(rows))
        whole, some = session.logits()[place], session.logits(np.arange(9))[place]
        session.keep([place, (place + 1) % len(rows)])
        session.advance([words[6]] * 2)
        seen.append((whole, some, session.logits(np.arange(9))[0]))
    if not all(np.array_equal(a, b) for each in seen for a, b in zip(each, seen[0], strict=True)):
        raise ModelUnavailable(
            "On this device the model's result for a row depends on the other rows, which breaks the privacy proof. "
            "Use another model, or the CPU."
        )
