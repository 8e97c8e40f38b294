"""Kinds of texts, and what is publicly known of each: by which words people call it, how its texts begin, and a few
exemplars, which were written for this project."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
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
        exemplars: a few of its texts.
        openings: frequent beginnings, of one or two words.
    """

    words: tuple[str, ...]
    exemplars: tuple[Exemplar, ...]
    openings: tuple[str, ...]


def kinds_of(said: str) -> tuple[Kind, ...]:
    """The kinds that an owner's words for what one text is may mean; none where they name none."""
    return tuple(kind for kind in _kinds() if any(word in said.casefold() for word in kind.words))


def openings_of(said: str) -> tuple[str, ...]:
    """Frequent beginnings of texts of a kind; of all kinds where its words name none.

    An opening that clears the noise by chance is then one of such texts, and fewer compete.
    """
    return tuple(each for kind in kinds_of(said) or _kinds() for each in kind.openings)


@functools.cache
def _kinds() -> tuple[Kind, ...]:
    read: Mapping[str, Any] = json.loads(bundled("kinds.json").read_text(encoding="utf-8"))
    return tuple(
        Kind(tuple(each["words"]), tuple(Exemplar(**one) for one in each["exemplars"]), tuple(each["openings"]))
        for each in read.values()
    )
