"""Distinct-n: how much of what is written is not said twice (Li et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence

from research.measures.words import grams, words_of


def distinct(texts: Sequence[str], n: int) -> float:
    """Different n-grams over all n-grams of the texts together, in [0, 1]; 0 where there are none.

    It falls with the number of words, so that only texts of equal number and length compare.
    """
    found = [gram for text in texts for gram in grams(words_of(text), n)]
    return len(set(found)) / len(found) if found else 0.0
