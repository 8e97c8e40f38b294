"""The memory that a model needs, before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil
import torch
from huggingface_hub import snapshot_download

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.engine.transformers_model import best_device, best_dtype
from mechanisms.inference.models.listing import (
    available_models,
    conversion_of,
    converted_before,
    located,
    parameters_in_folder,
    parameters_in_gguf,
)

_WHILE_CONVERTING = 5
"""Bytes a parameter while a GGUF file is converted; the embedded model's took 4.3."""


@dataclass(frozen=True)
class ModelNeeds:
    """What is known of a model that is not loaded.

    Attributes:
        parameters: how many numbers its weights are; None where that is not on this machine to be seen.
        on_disk: its weights are on this machine; others are fetched when it is loaded.
        converted: they can be read as they are; a GGUF file is converted once, which takes more memory than the model.
    """

    parameters: int | None
    on_disk: bool
    converted: bool = True

    @property
    def memory(self) -> int | None:
        """Bytes for its weights while it is loaded: what a run computes with them comes on top."""
        if self.parameters is None:
            return None
        item = best_dtype(best_device()).itemsize
        return self.parameters * (item if self.converted else max(item, _WHILE_CONVERTING))


def needs(name: str) -> ModelNeeds:
    """What a model needs, by the name that `load_model` takes.

    Raises:
        ModelUnavailable: a listed model that is not installed, a file or folder with no weights that may be read.
    """
    _, source = located(name)
    if isinstance(source, str):
        try:
            source = Path(snapshot_download(source, local_files_only=True))
        except (OSError, ValueError):  # not there, or no id
            return ModelNeeds(None, False)
        if not any(source.glob("*.safetensors")):
            return ModelNeeds(None, False)
    if source.is_file():
        folder = conversion_of(source)
        if not converted_before(folder):
            listed = next((each.parameters for each in available_models() if each.name == name), None)
            return ModelNeeds(listed or parameters_in_gguf(source), True, converted=False)
        source = folder
    return ModelNeeds(parameters_in_folder(source), True)


def available_memory() -> int:
    """Bytes that a model may take: of the machine, or of its accelerator where that has less."""
    free = int(psutil.virtual_memory().available)
    return min(free, torch.cuda.mem_get_info()[0]) if torch.cuda.is_available() else free


def refuse_too_large(name: str, freed: int = 0) -> ModelNeeds:
    """What a model needs; refuses one that does not fit.

    Args:
        name: what `load_model` takes; a model of unknown size passes.
        freed: bytes that will be free once the present model is gone.

    Raises:
        ModelUnavailable: its weights alone are larger than the free memory; or see `needs`.
    """
    found, free = needs(name), available_memory() + freed
    needed = found.memory
    if needed is not None and needed > free:
        raise ModelUnavailable(
            f"The model '{name}' needs {in_gigabytes(needed)} of memory, and {in_gigabytes(free)} are free here: "
            "choose a smaller one."
        )
    return found


def in_gigabytes(count: int) -> str:
    """Bytes in words."""
    return f"{count / 1e9:.2g} GB" if count < 1e10 else f"{count / 1e9:.0f} GB"
