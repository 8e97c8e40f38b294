"""Kinds of texts, and what is publicly known of each: by which words people call it, how its texts begin, and a few
exemplars, which were written for this project."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.files import bundled


@dataclass(frozen=True)
class Exemplar:
    """A public text of a kind.

    Attributes:
        about: its topic.
        writer: who writes it, with an article, and `reader` to whom; empty where that makes no difference.
    """

    about: str
    text: str
    writer: str = ""
    reader: str = ""


@dataclass(frozen=True)
class Kind:
    """What is publicly known of a kind of texts.

    Attributes:
        words: an owner who says one of them means this kind.
        akin: what begins like texts of this kind, and need not sound like them.
        exemplars: a few of its texts.
        openings: frequent beginnings, of one or two words.
    """

    words: Sequence[str]
    akin: Sequence[str]
    exemplars: Sequence[Exemplar]
    openings: Sequence[str]


def exemplars_of(said: str) -> Sequence[Exemplar]:
    """Texts of the kind that an owner's words for what one text is name; none where they name none."""
    return next((kind.exemplars for kind in _kinds() if _named(kind.words, said)), ())


def openings_of(said: str) -> tuple[str, ...]:
    """Frequent beginnings of texts of a kind; of all kinds where its words name none.

    An opening that clears the noise by chance is then one of such texts, and fewer compete.
    """
    named = [kind for kind in _kinds() if _named([*kind.words, *kind.akin], said)]
    return tuple(each for kind in named or _kinds() for each in kind.openings)


def _named(words: Sequence[str], said: str) -> bool:
    return any(word in said.casefold() for word in words)


@functools.cache
def _kinds() -> tuple[Kind, ...]:
    read: Mapping[str, Any] = json.loads(bundled("kinds.json").read_text(encoding="utf-8"))
    return tuple(Kind(**each | {"exemplars": [Exemplar(**one) for one in each["exemplars"]]}) for each in read.values())
