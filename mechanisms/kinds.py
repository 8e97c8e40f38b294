"""Kinds of texts, each with public knowledge: its names, frequent openings, and a few exemplars, which were written for
this project."""

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
        about: its topic; `words` are words of the topic that occur in the text.
        writer: the writer, with an article, and `reader` the reader; empty if irrelevant.
    """

    about: str
    words: Sequence[str]
    text: str
    writer: str = ""
    reader: str = ""


@dataclass(frozen=True)
class Kind:
    """Public knowledge of a kind of texts.

    Attributes:
        named: names of such a text; its exemplars are used if an owner uses one of these names.
        exemplars: a few of its texts.
        words: if one of these occurs in an owner's words, the openings of this kind apply.
        openings: frequent beginnings, of one or two words.
    """

    named: Sequence[str]
    exemplars: Sequence[Exemplar]
    words: Sequence[str]
    openings: Sequence[str]


def exemplars_of(owner_words: str) -> Sequence[Exemplar]:
    """The exemplars of the kind that an owner's words name; none if they name no kind.

    The name has to end the words, or their part before "of" and similar words, as in "short question to a bank":
    "answer to a question" is not a question. A sentence of a review counts as a review.
    """
    parts = [part.split() for part in _JOINS.split(owner_words.casefold())]
    head = " ".join(next((part for part in parts if part and part[-1] not in _PARTS), ()))
    return next((kind.exemplars for kind in _kinds() if any(_ends(head, each) for each in kind.named)), ())


def openings_of(owner_words: str) -> tuple[str, ...]:
    """Frequent beginnings of texts of a kind; of all kinds if the words name none.

    Then an opening that exceeds the noise by chance fits such texts, and fewer openings compete.
    """
    named = [kind for kind in _kinds() if any(word in owner_words.casefold() for word in kind.words)]
    return tuple(each for kind in named or _kinds() for each in kind.openings)


def _ends(head: str, name: str) -> bool:
    return f" {head}".endswith((f" {name}", f" {name}s"))


@functools.cache
def _kinds() -> tuple[Kind, ...]:
    read: Mapping[str, Any] = json.loads(bundled("kinds.json").read_text(encoding="utf-8"))
    return tuple(Kind(**each | {"exemplars": [Exemplar(**one) for one in each["exemplars"]]}) for each in read.values())
