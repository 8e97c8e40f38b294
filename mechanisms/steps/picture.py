"""What a mechanism shows of a demonstration in a picture of its own, as values that any screen can draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Span = tuple[float, float]
"""From where to where."""

_NOTHING = 1e-30
MOST_LINES = 8
"""A picture is to be read beside text that is being written."""


class Told(Protocol):
    """What is told of a released token; see `TokenReleased`."""

    @property
    def public(self) -> Sequence[float]:
        """The public distribution over the candidates, in expected rows."""
        ...

    @property
    def free(self) -> bool:
        """Public text alone decided."""
        ...

    @property
    def trail(self) -> Sequence[tuple[float, float]]:
        """See `TokenRelease.trail`."""
        ...


@dataclass(frozen=True)
class Line:
    """One line of a picture, on the axis that all its lines share.

    Attributes:
        words: what it is of; empty where it is of a candidate.
        candidate: position of the candidate that it is of; None where it is of none.
        spans: bars.
        marks: strokes.
        note: its number in words.
        pale: it was looked at, and not taken.
    """

    words: str = ""
    candidate: int | None = None
    spans: tuple[Span, ...] = ()
    marks: tuple[float, ...] = ()
    note: str = ""
    pale: bool = False


@dataclass(frozen=True)
class Picture:
    """A few lines.

    Attributes:
        axis: what the lines' numbers are.
        span, mark: what a bar and a stroke mean; empty where none is drawn, or where the lines say so.
        upto: the axis goes at least so far.
    """

    title: str
    lines: tuple[Line, ...]
    axis: str
    span: str = ""
    mark: str = ""
    upto: float = 0.0


def likeliest(public: Sequence[float]) -> list[int]:
    """Positions of the candidates that a picture has room for, likeliest in public first."""
    return sorted(range(len(public)), key=lambda i: -public[i])[:MOST_LINES]


def below_largest(public: Sequence[float]) -> list[float]:
    """The public logits of the candidates, less the largest of them; a probability of nothing is as good as 1e-30."""
    largest = max(*public, _NOTHING)
    return [math.log(max(each / largest, _NOTHING)) for each in public]
