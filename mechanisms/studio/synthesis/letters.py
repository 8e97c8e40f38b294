"""What a text says beyond the labels' own names, in any script."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def is_letter(character: str) -> bool:
    """A letter, or a sign that belongs to one, as the vowels of Hindi and Thai."""
    return character.isalpha() or unicodedata.category(character).startswith("M")


def without_labels(text: str, labels: Sequence[str]) -> str:
    """The text in lower case without the labels' names, which say nothing about how their texts are written."""
    rest = text.casefold()
    for each in sorted(labels, key=len, reverse=True):
        rest = rest.replace(each.casefold(), " ")
    return rest
