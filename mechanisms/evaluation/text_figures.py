"""Figures of a set's texts by themselves: lengths, distinct words, near repetitions. Public wherever the texts are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.errors import UsageError

NEAR = 0.7
"""Share of common words from which on a text is called a near repetition of another."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class TextFigures:
    """Figures of texts.

    Attributes:
        texts: how many there are.
        words: the least, the median and the most words of one text.
        vocabulary: distinct words of all texts, in lower case.
        repeated: texts of which at least `NEAR` of the words are those of an earlier text with the same label, by the
            Jaccard index of their sets of words.
    """

    texts: int
    words: tuple[int, float, int]
    vocabulary: int
    repeated: int


def text_figures(texts: Iterable[tuple[str, str]]) -> TextFigures:
    """The figures of texts with their labels.

    Args:
        texts: pairs of label and text.

    Raises:
        UsageError: there are none.
    """
    by_label: dict[str, list[frozenset[str]]] = {}
    lengths = list[int]()
    for label, text in texts:
        words = _WORD.findall(text.lower())
        lengths.append(len(words))
        by_label.setdefault(label, []).append(frozenset(words))
    if not lengths:
        raise UsageError("There are no texts to count.")
    return TextFigures(
        texts=len(lengths),
        words=(min(lengths), float(np.median(lengths)), max(lengths)),
        vocabulary=len({word for of_label in by_label.values() for words in of_label for word in words}),
        repeated=sum(map(_repeated, by_label.values())),
    )


def _repeated(texts: Sequence[frozenset[str]]) -> int:
    return sum(any(_common(text, before) >= NEAR for before in texts[:place]) for place, text in enumerate(texts))


def _common(one: frozenset[str], other: frozenset[str]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 1.0
