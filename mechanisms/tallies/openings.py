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
    """A row votes for the longest public opening with which its text begins, or for none; a user has the mean vote.

    The whole noisy histogram is released. Whether cells are per label or pooled, a row is in at most one cell.
    """

    name: ClassVar[str] = "openings"
    proof: ClassVar[str] = "docs/tallies.md#openings"


class OpeningFinder:
    """Finds the public opening with which a text begins, ignoring letter case and punctuation.

    Args:
        openings: one or two words each; of openings that differ only in case and punctuation, the first counts.
    """

    def __init__(self, openings: Sequence[str]) -> None:
        self._places: dict[tuple[str, ...], int] = {}
        for place, opening in enumerate(openings):
            self._places.setdefault(_words(opening, 2), place)

    def index(self, text: str) -> int | None:
        """The position of the longest opening with which the text begins; None if it begins with none."""
        words = _words(text, 2)
        for length in range(len(words), 0, -1):
            if (found := self._places.get(words[:length])) is not None:
                return found
        return None

    def vote(self, text: str, places: int, start: int = 0) -> Floats:
        """The one-hot vote of a text, shape (places,); zeros if the text begins with no opening.

        Args:
            places: the number of cells of the histogram.
            start: the first cell of the text's label, if labels have cells of their own.
        """
        vote = np.zeros(places)
        if (found := self.index(text)) is not None:
            vote[start + found] = 1.0
        return vote


def distinct(openings: Sequence[str]) -> tuple[str, ...]:
    """The openings of one or two words in their order, without repetitions; all others are omitted."""
    found: dict[tuple[str, ...], str] = {}
    for opening in (" ".join(each[:_LONGEST].split()) for each in openings):
        if (words := _words(opening, 3)) and len(words) <= 2:
            found.setdefault(words, opening)
    return tuple(found.values())


def _words(text: str, most: int) -> tuple[str, ...]:
    """The first words of a text, at most `most`, in lower case and without surrounding punctuation."""
    bare = (word.casefold().strip(_SIGNS) for word in text[:_LONGEST].split()[:_LOOKED_AT])
    return tuple(filter(None, bare))[:most]


_LONGEST, _LOOKED_AT = 400, 4
"""The search for openings is limited to the first characters of a text, and to the first words among them, so that no
text takes long."""
_SIGNS = ".,;:!?\"'“”‘’()[]{}<>*_-–—…«»¿¡#@/\\|"


TALLY = Openings
