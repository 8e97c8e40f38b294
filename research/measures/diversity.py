"""Distinct-n: the share of distinct n-grams (Li et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence

from research.measures.words import grams, words_of


def distinct(texts: Sequence[str], n: int) -> float:
    """Distinct n-grams over all n-grams of all texts, in [0, 1]; 0 if there are none.

    It falls with the number of words, so only texts of equal number and length are comparable.
    """
    found = [gram for text in texts for gram in grams(words_of(text), n)]
    return len(set(found)) / len(found) if found else 0.0
