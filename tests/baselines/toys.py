"""Models that are the same to the bit on every machine: logits are bytes of a hash, sums of logarithms are rounded."""

from __future__ import annotations

import hashlib

import numpy as np

from mechanisms.errors import ModelUnavailable
from tests.runs.running import Speaking
from tests.toy_model import VOCABULARY, ToyModel, ToySession

_FINE = 2.0**20
"""Log-probabilities are multiples of its inverse: how a machine rounds an exponential is far below."""


class HashedSession(ToySession):
    """Logits from -2 to 2 times the sharpness, each a function of its row's tokens."""

    def _row(self, tokens):
        drawn = np.frombuffer(hashlib.shake_128(bytes(tokens)).digest(2 * VOCABULARY), dtype=">u2")
        return (drawn.astype(np.float64) - 2.0**15) * (2.0**-14 * self.sharpness)

    def score(self, continuation):
        return np.rint(super().score(continuation) * _FINE) / _FINE


class HashedModel(ToyModel):
    """Writes bytes; breaks down at one of its sessions, where it is told to.

    Attributes:
        breaks_at: the number of the session that cannot be opened, the first being 1; None for never.
    """

    def __init__(self, sharpness: float = 4.0, busy: int = 10**6) -> None:
        super().__init__(sharpness=sharpness, busy=busy)
        self.breaks_at: int | None = None

    def open(self, prefix, rows, length, room):
        if len(self.opened) + 1 == self.breaks_at:
            raise ModelUnavailable("The model is gone.")
        super().open(prefix, rows, length, room)
        return HashedSession([[*prefix, *row] for row in rows], self.sharpness)


class SpeakingModel(Speaking, HashedModel):
    """Its tokens are words, one in eight the last of its sentence."""

    name, sha256 = "toy-words", "1" * 64

    def __init__(self, busy: int = 10**6) -> None:
        super().__init__(sharpness=1.0, busy=busy)


MODELS = {"toy": HashedModel, "toy-words": SpeakingModel, "toy-alone": lambda: SpeakingModel(busy=1)}
"""By what `--model` calls them; the last writes one demonstration at a time."""
