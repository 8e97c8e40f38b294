"""The models that have a name here, without loading or importing what loads them."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.inference.models import embedded, gemma

EMBEDDED, GEMMA = "embedded", gemma.NAME


@dataclass(frozen=True)
class ModelListing:
    """A model that can be named here.

    Attributes:
        name: as `--model` takes it.
        description: in a few words, whether it was trained to chat among them.
        parameters: how many numbers it has.
        available: its weights are on this machine.
    """

    name: str
    description: str
    parameters: int
    available: bool


def available_models() -> list[ModelListing]:
    """What `--model` can name without a path, what is on this machine first."""
    every = [
        ModelListing(
            EMBEDDED,
            "SmolLM2-135M-Instruct, chat, asked in plain text (Apache-2.0)",
            embedded.PARAMETERS,
            embedded.gguf_in_wheel() is not None,
        ),
        ModelListing(
            GEMMA,
            "Gemma 3 270M, base, opt-in PyPI wheels (Gemma terms)",
            gemma.PARAMETERS,
            bool(gemma.gemma_parts()),
        ),
    ]
    return sorted(every, key=lambda each: not each.available)
