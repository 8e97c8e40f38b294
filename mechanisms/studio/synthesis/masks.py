"""Tokens that may not come next: rules that follow from released tokens, the public row and public numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mechanisms.inference import LanguageModel
from mechanisms.noise import Integers


def barred(written: Sequence[int], least: int, model: LanguageModel) -> set[int]:
    """Tokens that would end a text of fewer than `least` tokens, or an empty one, or write a run of three again."""
    ends = model.stop_tokens if len(written) < max(1, least) else frozenset()
    last = tuple(written[-2:])
    return set(ends) | {written[i + 2] for i in range(len(written) - 2) if tuple(written[i : i + 2]) == last}


def visible(written: Sequence[int], order: Integers, model: LanguageModel) -> Iterator[int]:
    """Those of `order` after which the text is not blank, in that order: a text has to begin with something to see."""
    begun = _shows(model.decode(written))
    return (token for token in map(int, order) if begun or _shows(model.decode([*written, token])))


def _shows(text: str) -> bool:
    return any(each.isprintable() and not each.isspace() for each in text)
