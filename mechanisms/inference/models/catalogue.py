"""From a model's name to the model: `embedded`, `gemma-3-270m`, a local folder, a GGUF file, or a hub id."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from huggingface_hub.utils import logging as hub_logging
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from mechanisms.errors import ModelUnavailable
from mechanisms.home import cache_folder
from mechanisms.inference.engine.independence import refuse_by_config, refuse_by_test
from mechanisms.inference.engine.threads import prepared
from mechanisms.inference.engine.transformers_model import TransformersModel, best_device, best_dtype
from mechanisms.inference.models.conversion import converted
from mechanisms.inference.models.embedded import HUB_ID, gguf_in_wheel
from mechanisms.inference.models.gemma import gemma_gguf
from mechanisms.inference.models.listing import EMBEDDED, GEMMA, available_models
from mechanisms.inference.models.needs import refuse_too_large
from mechanisms.inference.models.weights import file_digest

FETCHING, CONVERTING, READING, TESTING = "fetching it", "converting it once", "reading it", "testing rows"
"""What `load_model` tells of its progress."""


def _silently(stage: str) -> None:
    pass


def load_model(
    name: str = EMBEDDED, threads: int | None = None, tell: Callable[[str], None] = _silently
) -> TransformersModel:
    """Load a model onto the best device: from safetensors or GGUF alone, and without any code that comes with it.

    Args:
        name: what the command line takes as `--model`.
        threads: that a CPU computes with; unless given, what the environment sets, else as many as the load leaves.
        tell: hears how far it is.

    Raises:
        ModelUnavailable: it is not on this machine and cannot be fetched, does not fit in its memory, is not a causal
            language model, or lets one row of a batch touch another.
        UsageError: the environment's number of threads is none.
    """
    logging.disable_progress_bar()
    hub_logging.set_verbosity_error()  # without a network it would tell of every try
    known = refuse_too_large(name)
    following = prepared(threads)
    tell(READING if known.converted else CONVERTING)
    source, label = _locate(name)
    tell(READING if known.on_disk else FETCHING)
    device = best_device()
    model, tokenizer = _read(name, source)
    refuse_by_config(model.config)
    # The embedded model learns more from examples in plain text than in its chat template (docs/engine.md).
    chat = name != EMBEDDED
    loaded = TransformersModel(label, _digest(source, model), model.to(device), tokenizer, chat=chat)
    if following is not None:
        following.settle()
    tell(TESTING)
    refuse_by_test(loaded)  # with one number of threads: it compares bits
    if device.type == "cpu":
        loaded.threads = following
    return loaded


def listed_as(label: str) -> str | None:
    """The name of a listed model on this machine whose label this is: what a set's file calls its writer by."""
    here = (each.name for each in available_models() if each.available)
    return next((name for name in here if _locate(name)[1] == label), None)


def _read(name: str, source: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    local = _is_local(source)
    try:
        model = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=best_dtype(best_device()),
            local_files_only=local,
            use_safetensors=True,  # pickles run code
            trust_remote_code=False,  # unless told so, transformers asks on the terminal
            attn_implementation="eager",  # a config may name another to be fetched; the engine sets its own
        )
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local, trust_remote_code=False)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise ModelUnavailable(
            f"The model '{name}' is not available: give a local folder, a GGUF file, a hub id, or '{EMBEDDED}'."
        ) from error
    return model, tokenizer


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
    if folder.parent == cache_folder():  # its own word counts where this program wrote it
        return (folder / "source.sha256").read_text()
    parts = [file_digest(path) for path in sorted(folder.glob("*.safetensors"))]
    return hashlib.sha256("".join(parts).encode()).hexdigest()
