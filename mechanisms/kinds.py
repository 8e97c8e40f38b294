"""Kinds of texts, and what is publicly known of each: by which words people call it, how its texts begin, and a few
exemplars, which were written for this project."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.files import bundled

_JOINS = re.compile(r"\b(?:of|from|to|on|about|for|in|by|with)\b")
_PARTS = ("sentence", "line", "paragraph", "part", "excerpt")


@dataclass(frozen=True)
class Exemplar:
    """A public text of a kind.

    Attributes:
        about: its topic, and `words` of it, which stand in the text.
        writer: who writes it, with an article, and `reader` to whom; empty where that makes no difference.
    """

    about: str
    words: Sequence[str]
    text: str
    writer: str = ""
    reader: str = ""


@dataclass(frozen=True)
class Kind:
    """What is publicly known of a kind of texts.

    Attributes:
        named: what such a text is called; its exemplars are shown where an owner calls it so.
        exemplars: a few of its texts.
        words: what may begin like such a text, where one of them stands anywhere in an owner's words.
        openings: frequent beginnings, of one or two words.
    """

    named: Sequence[str]
    exemplars: Sequence[Exemplar]
    words: Sequence[str]
    openings: Sequence[str]


def exemplars_of(owner_words: str) -> Sequence[Exemplar]:
    """Texts of the kind that an owner's words for what one text is name; none where they name none.

    The name has to end the words, or their part before "of" and the like, as in "short question to a bank": an answer
    to a question is none. A sentence of a review sounds like a review.
    """
    parts = [part.split() for part in _JOINS.split(owner_words.casefold())]
    head = " ".join(next((part for part in parts if part and part[-1] not in _PARTS), ()))
    return next((kind.exemplars for kind in _kinds() if any(_ends(head, each) for each in kind.named)), ())


def openings_of(owner_words: str) -> tuple[str, ...]:
    """Frequent beginnings of texts of a kind; of all kinds where its words name none.

    An opening that clears the noise by chance is then one of such texts, and fewer compete.
    """
    named = [kind for kind in _kinds() if any(word in owner_words.casefold() for word in kind.words)]
    return tuple(each for kind in named or _kinds() for each in kind.openings)


def _ends(head: str, name: str) -> bool:
    return f" {head}".endswith((f" {name}", f" {name}s"))


@functools.cache
def _kinds() -> tuple[Kind, ...]:
    read: Mapping[str, Any] = json.loads(bundled("kinds.json").read_text(encoding="utf-8"))
    return tuple(Kind(**each | {"exemplars": [Exemplar(**one) for one in each["exemplars"]]}) for each in read.values())
