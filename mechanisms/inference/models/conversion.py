"""A GGUF file, converted once to safetensors."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models.weights import conversion_of, converted_before, kept_in, remembered_digest


def converted(gguf: Path) -> Path:
    """A folder with the model of a GGUF file, dequantised to bfloat16; made on first use (about 20 s).

    Raises:
        ModelUnavailable: transformers cannot read the file, or the cache has no room for the model.
    """
    folder = conversion_of(gguf)
    if converted_before(folder):
        return folder
    with kept_in(folder.parent):
        partial = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        model, tokenizer = _read(gguf)
        with kept_in(folder.parent):
            model.save_pretrained(partial)
            tokenizer.save_pretrained(partial)
            (partial / "source.sha256").write_text(remembered_digest(gguf))
            os.replace(partial, folder)
    except ModelUnavailable:
        if not converted_before(folder):  # another process was faster
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _read(gguf: Path) -> tuple[Any, Any]:
    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
            trust_remote_code=False,
        )
        model.config.quantization_config = None
        return model, AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, trust_remote_code=False)
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        raise ModelUnavailable(f"{gguf.name} cannot be read as a GGUF language model.") from error
