"""Common English words and their places among texts: public, embedded once a machine, and kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from mechanisms.files import bundled, cache_folder, write_once
from mechanisms.inference.language_model import Embedder

_AT_ONCE = 500
"""Words between two reports of progress."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Public words, the commonest first, and the unit vectors of their places, shape (words, dimensions)."""

    words: tuple[str, ...]
    places: NDArray[np.float32]


@cache
def common_words() -> tuple[str, ...]:
    """The words of `assets/words.txt`, whose head says where they come from."""
    lines = bundled("words.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


_known: dict[str, Vocabulary] = {}


def vocabulary(embedder: Embedder, tell: Callable[[float], object] = lambda share: None) -> Vocabulary:
    """The words, placed by a model: from this process, from the cache, or embedded now, which `tell` hears of.

    Where the cache cannot be written the words are embedded again by the next process.
    """
    words = common_words()
    key = hashlib.sha256("\n".join([embedder.sha256, *words]).encode()).hexdigest()[:16]
    if key not in _known:
        note = cache_folder() / f"words-{key}.npy"
        if note.exists():
            places = np.load(note)
        else:
            parts = []
            for start in range(0, len(words), _AT_ONCE):
                tell(start / len(words))
                parts.append(embedder.embed_together(words[start : start + _AT_ONCE]))
            places = np.concatenate(parts)
            with suppress(OSError):
                content = BytesIO()
                np.save(content, places)
                write_once(note, content.getvalue())
        _known[key] = Vocabulary(words, places)
    return _known[key]
