"""What a run asks of the models, in rows that are read and tokens that are written; and the time that is left of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from mechanisms.inference import Embedder, LanguageModel

_ROWS, _LENGTH, _STEPS = 16, 64, 4


@dataclass(frozen=True)
class Work:
    """Public numbers, expected.

    Attributes:
        read: rows of prompts that are computed, in positions.
        written: tokens of rows that are decoded.
        embedded: texts that the embedding model reads.
    """

    read: float = 0.0
    written: float = 0.0
    embedded: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.read + other.read, self.written + other.written, self.embedded + other.embedded)


@dataclass(frozen=True)
class Speed:
    """Seconds of a position, of a token, and of a text; measured here."""

    position: float
    token: float
    text: float = 1 / 250

    def seconds(self, work: Work) -> float:
        """The time of some work."""
        return work.read * self.position + work.written * self.token + work.embedded * self.text


def measure(
    model: LanguageModel, embedder: Embedder | None = None, clock: Callable[[], float] = time.perf_counter
) -> Speed:
    """Measure the models on public text, in a few seconds."""
    words = (model.encode("the model is measured on public text ") * _LENGTH)[:_LENGTH]
    # The first pass of a shape takes memory, and an engine may look whether rows are computed alike in it.
    model.open([], [words] * _ROWS, _LENGTH, _STEPS).advance([words[0]] * _ROWS)
    started = clock()
    session = model.open([], [words] * _ROWS, _LENGTH, _STEPS)
    read = clock()
    for _ in range(_STEPS):
        session.advance([words[0]] * _ROWS)
        _ = session.logits().max()
    written = clock()
    speed = Speed((read - started) / (_ROWS * _LENGTH), (written - read) / (_ROWS * _STEPS))
    return speed if embedder is None else replace(speed, text=measure_embedder(embedder, clock))


def measure_embedder(embedder: Embedder, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds in which the embedding model reads a text, measured on public ones."""
    embedder.embed(["public text"])
    begun = clock()
    embedder.embed(["a public text of usual length, as people write them " * 2] * 4)
    return (clock() - begun) / 4
