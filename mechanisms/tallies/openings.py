"""How private texts begin: a one-hot vote of each unit among public openings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.noise import Floats
from mechanisms.tallies.tally import WholeVotes


@dataclass(frozen=True)
class Openings(WholeVotes):
    """A one-hot vector a row, for the longest public opening that its text begins with, or nothing; the mean a user.

    The whole noisy histogram is released, pooled over labels or by label: a row is in one cell either way.
    """

    name: ClassVar[str] = "openings"
    proof: ClassVar[str] = "docs/tallies.md#openings"


class Beginnings:
    """Finds the public opening that a text begins with: one or two words; case and signs do not count."""

    def __init__(self, openings: Sequence[str]) -> None:
        self._places: dict[tuple[str, ...], int] = {}
        for place, opening in enumerate(openings):
            self._places.setdefault(_words(opening, 2), place)

    def place(self, text: str) -> int | None:
        """The position of the longest opening that fits; None where none does."""
        words = _words(text, 2)
        for length in range(len(words), 0, -1):
            if (found := self._places.get(words[:length])) is not None:
                return found
        return None

    def vote(self, text: str, places: int, start: int = 0) -> Floats:
        """The one-hot vote of a text, shape (places,); zeros where no opening fits.

        Its label's cells begin at `start`, where labels have cells of their own.
        """
        vote = np.zeros(places)
        if (found := self.place(text)) is not None:
            vote[start + found] = 1.0
        return vote


def distinct(openings: Sequence[str]) -> tuple[str, ...]:
    """Openings of one or two words, each once, in their order; blank ones are none."""
    found: dict[tuple[str, ...], str] = {}
    for opening in (" ".join(each[:_LONGEST].split()) for each in openings):
        if (words := _words(opening, 3)) and len(words) <= 2:
            found.setdefault(words, opening)
    return tuple(found.values())


def _words(text: str, most: int) -> tuple[str, ...]:
    """The first words of a text in small letters, without the signs around them."""
    bare = (word.casefold().strip(_SIGNS) for word in text[:_LONGEST].split()[:_LOOKED_AT])
    return tuple(filter(None, bare))[:most]


_LONGEST, _LOOKED_AT = 400, 4
"""Characters and words of a text that are looked at, however many are wanted: no text may take long."""
_SIGNS = ".,;:!?\"'“”‘’()[]{}<>*_-–—…«»¿¡#@/\\|"


TALLY = Openings
