"""Refusing models whose result for one row can depend on the other rows of a batch.

The privacy proof needs it: one unit may change its own row only. By construction that holds for dense models with fixed
position embeddings and the attention used here; a test on the actual device notices what construction overlooks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.language_model import LanguageModel

_ROPE_OF_THE_BATCH = {"dynamic", "longrope"}
"""Position embeddings that are scaled by the longest row of the batch."""
_EXPERT_FIELDS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


def refuse_by_config(config: Any) -> None:
    """Look at a transformers config.

    Raises:
        ModelUnavailable: mixture of experts (rows compete for capacity), or positions that depend on the batch.
    """
    text = config.get_text_config()
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
    """Run one row among different others, in another place, and compare bits.

    Raises:
        ModelUnavailable: the row's logits moved.
    """
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
