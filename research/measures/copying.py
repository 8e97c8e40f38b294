"""The longest run of words that occurs both in a demonstration and in a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from research.measures.words import Gram, grams, words_of


@dataclass(frozen=True, repr=False)
class Copied:
    """The longest copied run; for private rows it is for the curator only, since it has no noise.

    Attributes:
        words: the length of the run; 0 if no word is shared.
        text: the position of the first text that contains it; None if there is none.
    """

    words: int
    text: int | None


def longest_copied(texts: Sequence[str], rows: Iterable[str]) -> Copied:
    """Find the longest n-gram of the texts in any row; a row is read again only if it has a longer one."""
    own = [words_of(text) for text in texts]
    found = Copied(0, None)
    wanted = _first_places(own, 1)
    for row in rows:
        words = words_of(row)
        while (place := _shared(words, found.words + 1, wanted)) is not None:
            found = Copied(found.words + 1, place)
            wanted = _first_places(own, found.words + 1)
    return found


def _first_places(texts: Sequence[Sequence[str]], n: int) -> dict[Gram, int]:
    """Each n-gram, with the first text that contains it."""
    places: dict[Gram, int] = {}
    for place, words in enumerate(texts):
        for gram in grams(words, n):
            places.setdefault(gram, place)
    return places


def _shared(words: Sequence[str], n: int, wanted: dict[Gram, int]) -> int | None:
    return min((wanted[gram] for gram in grams(words, n) if gram in wanted), default=None)
