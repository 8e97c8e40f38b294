"""The expected work of the models in a run, and the speed at which this machine does it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mechanisms.inference import Embedder, LanguageModel
from mechanisms.runs.drafts import WRITTEN

_ROWS, _STEPS = 32, 4
_LENGTHS, _ENOUGH = (16, 64), 0.5
"""Positions of the measured rows; the longer rows are measured only if the shorter are read in less than so many
seconds. The overhead of a pass matters for a fast model, and a slow one would take a minute for the longer rows."""


@dataclass(frozen=True)
class Work:
    """The expected work of the models in a run; public numbers.

    Attributes:
        read: positions of prompts that the language model reads, over all rows.
        decoded: tokens that the language model decodes, over all rows.
        embedded: texts that the embedding model reads.
    """

    read: float = 0.0
    decoded: float = 0.0
    embedded: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.read + other.read, self.decoded + other.decoded, self.embedded + other.embedded)


def drafting_work(labels: int, count: int, tokens: int) -> Work:
    """The expected work of writing `count` drafts, of at most `tokens` tokens, for each label, and of embedding the
    usable ones."""
    written = WRITTEN * count * labels
    # Sampling a token takes half as long as the model's computation for it.
    return Work(read=8 * written, decoded=1.2 * written * tokens, embedded=1.5 * written)


@dataclass(frozen=True)
class Speed:
    """Seconds per position, per token and per text, measured on this machine."""

    position: float
    token: float
    text: float = 1 / 120

    def seconds(self, work: Work) -> float:
        return work.read * self.position + work.decoded * self.token + work.embedded * self.text


def measure_speed(model: LanguageModel, clock: Callable[[], float] = time.perf_counter) -> Speed:
    """Measure the speed of a language model on public text, in seconds, or half a minute for a large one on a CPU."""
    for length in _LENGTHS:
        words = (model.encode("the model is measured on public text ") * length)[:length]
        # The first pass with a shape is slower: it allocates memory, and an engine may check in it that all rows of a
        # batch are computed alike.
        model.open([], [words] * _ROWS, length, _STEPS).advance([words[0]] * _ROWS)
        started = clock()
        session = model.open([], [words] * _ROWS, length, _STEPS)
        read = clock() - started
        if read >= _ENOUGH:
            break
    started = clock()
    for _ in range(_STEPS):
        session.advance([words[0]] * _ROWS)
        _ = session.logits().max()
    return Speed(read / (_ROWS * length), (clock() - started) / (_ROWS * _STEPS))


def measure_embedder(embedder: Embedder) -> float:
    """The seconds that the embedding model needs for one text, measured on public texts."""
    embedder.embed(["public text"])
    started = time.perf_counter()
    embedder.embed(["a public text of usual length, as people write them " * 2] * 4)
    return (time.perf_counter() - started) / 4
