"""Common English words, which tell English from other languages, and their embeddings: public, computed once for each
machine, and stored in the cache."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.errors import UsageError
from mechanisms.files import atomic_write, bundled, cache_folder
from mechanisms.inference.language_model import Embedder

_AT_ONCE = 500
"""Words between two reports of progress."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Public words, most common first, and their unit vectors, shape (words, dimensions)."""

    words: tuple[str, ...]
    places: NDArray[np.float32]


@cache
def common_words() -> tuple[str, ...]:
    """The words of `assets/words.txt`; the file's head states their source."""
    lines = bundled("words.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


_PARTICLES = (
    "about after again all already also always am an and another any anything are aren as at back be because been "
    "before but by can cannot could couldn did didn do does doesn doing don down each even ever every everything few "
    "find first for found from full get give go had hadn has hasn have haven he her here hers him his how however if "
    "in into is isn it its just keep last least less ll made many may me might mine more most move much must my name "
    "never next no nobody none nor not nothing now of off often on once one only onto or other others our out over "
    "own part perhaps please put rather re same see seem seems several she should shouldn show side since so some "
    "someone something sometimes somewhere still such take than that the their them themselves then there therefore "
    "these they this those though three through to together too top towards two under until up upon us ve very was "
    "wasn we well were weren what whatever when where whether which while who whole whose why will with within "
    "without won would wouldn yet you your yours yourself"
)
"""Frequent words that `assets/words.txt` leaves out, and the parts of contractions beside the apostrophe."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def in_english(texts: Sequence[str]) -> bool:
    """Whether texts seem to be English: False if more than a third of them consist mostly of uncommon words.

    Such texts are 0 to 3% of eleven English sets, and all of 27 sentences in eight other languages. A short sentence
    full of loanwords can pass as English. A third suffices, because a model that is asked in another language writes
    some texts in its own.
    """
    known = {*_PARTICLES.split(), *common_words()}
    found = [words for text in texts if (words := _WORD.findall(text.casefold()))]
    other = sum(2 * sum(word in known for word in words) < len(words) for words in found)
    return 3 * other <= len(found)


_known: dict[str, Vocabulary] = {}


def vocabulary(embedder: Embedder, tell: Callable[[float], object] = lambda share: None) -> Vocabulary:
    """The result of `placing`; `tell` receives the shares that it yields."""
    placed = placing(embedder)
    while True:
        try:
            tell(next(placed))
        except StopIteration as ended:
            found: Vocabulary = ended.value
            return found


def placing(embedder: Embedder) -> Generator[float, None, Vocabulary]:
    """The words with their embeddings, from this process, from the cache, or computed now; yields the share that is
    done.

    If the cache cannot be written or is damaged, the words are embedded again.
    """
    words = common_words()
    key = hashlib.sha256("\n".join([embedder.sha256, *words]).encode()).hexdigest()[:16]
    if key not in _known:
        places = _cached(key, (len(words), embedder.dimensions))
        if places is None:
            parts = []
            for start in range(0, len(words), _AT_ONCE):
                yield start / len(words)
                parts.append(embedder.embed_together(words[start : start + _AT_ONCE]))
            places = np.concatenate(parts)
            with suppress(UsageError):
                content = BytesIO()
                np.save(content, places)
                atomic_write(_note(key), content.getvalue())
        _known[key] = Vocabulary(words, places)
    return _known[key]


def _note(key: str) -> Path:
    return cache_folder() / f"words-{key}.npy"


def _cached(key: str, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """The vectors in the cache; None if it has none, or the file is damaged."""
    try:
        with _note(key).open("rb") as file:
            places = np.lib.format.read_array(file, allow_pickle=False)
    except (UsageError, OSError, ValueError):
        return None
    whole = places.shape == shape and places.dtype == np.float32 and np.isfinite(places).all()
    return places if whole else None
