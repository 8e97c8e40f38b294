"""What reads queries under demonstrations, here or elsewhere, and what it is given."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mechanisms.noise import Integers
from mechanisms.records import Demonstration, PromptTemplate

READINGS = RAW, CONTEXTUAL, PRIOR = "raw", "contextual", "prior"
NO_ANSWER = -1


@dataclass(frozen=True)
class Arm:
    """Demonstrations and how they are read.

    Attributes:
        prior: their measured correction; None where none was measured.
        template: the words in which they are put to the model; None: those of the set that is evaluated.
    """

    name: str
    demonstrations: Sequence[Demonstration]
    prior: Mapping[str, float] | None = None
    template: PromptTemplate | None = None


class QueryReader(Protocol):
    """Answers queries with labels. It can do much less than a `LanguageModel`: nothing private is read with it."""

    @property
    def name(self) -> str:
        """The model, and where it is if that is elsewhere."""
        ...

    def answers(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Generator[int, None, dict[str, Integers]]:
        """Classify texts under one prompt; tells how many are done.

        Returns:
            For each reading that it can give, `RAW` at least, the place of the answered label, or `NO_ANSWER`, shape
            (texts,).
        """
        ...
