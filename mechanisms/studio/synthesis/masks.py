"""Tokens that may not come next: rules that follow from released tokens, the public row and public values alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mechanisms.inference import Grammar, LanguageModel
from mechanisms.noise import Integers


def barred(written: Sequence[int], least: int, model: LanguageModel) -> set[int]:
    """Tokens that would end a text of fewer than `least` tokens, or an empty one, or write a run of three again."""
    ends = model.stop_tokens if len(written) < max(1, least) else frozenset()
    return set(ends) | _again(written)


def barred_by(grammar: Grammar, value: Sequence[int], size: int) -> Integers:
    """Those of the first `size` tokens that the schema does not allow here, or that write a run of three again.

    Args:
        grammar: of the record in the making, where no token is forced.
        value: what has been written since the last forced token: elsewhere a record may well repeat itself.
        size: of the vocabulary.
    """
    allowed = grammar.allowed(size)
    fresh = allowed.copy()
    fresh[list(_again(value))] = False
    return np.flatnonzero(~(fresh if fresh.sum() > 1 else allowed))


def visible(written: Sequence[int], order: Integers, model: LanguageModel) -> Iterator[int]:
    """Those of `order` after which the text is not blank, in that order: a text has to begin with something to see."""
    begun = _shows(model.decode(written))
    return (token for token in map(int, order) if begun or _shows(model.decode([*written, token])))


def _again(written: Sequence[int]) -> set[int]:
    last = tuple(written[-2:])
    return {written[i + 2] for i in range(len(written) - 2) if tuple(written[i : i + 2]) == last}


def _shows(text: str) -> bool:
    return any(each.isprintable() and not each.isspace() for each in text)
