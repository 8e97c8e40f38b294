"""A language model over bytes whose logits are a fixed pseudo-random function of the row's tokens: fast, and as
sensitive to every token as a model can be."""

from __future__ import annotations

import functools
import hashlib

import numpy as np

from mechanisms.inference.language_model import NO_TURN, Turn

VOCABULARY = 128


@functools.lru_cache(maxsize=2**14)
def _logits(tokens: bytes) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(tokens).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=VOCABULARY)


class ToySession:
    def __init__(self, rows: list[list[int]], sharpness: float) -> None:
        self.rows, self.sharpness = rows, sharpness

    def _row(self, tokens: list[int]) -> np.ndarray:
        return _logits(bytes(tokens)) * self.sharpness

    def logits(self, columns=None, rows=slice(None)):
        logits = np.stack([self._row(row) for row in self.rows[rows]])
        return logits if columns is None else logits[:, columns]

    def advance(self, tokens) -> None:
        self.rows = [[*row, token] for row, token in zip(self.rows, tokens, strict=True)]

    def keep(self, rows) -> None:
        self.rows = [self.rows[i] for i in rows]

    def score(self, continuation):
        total = np.zeros(len(self.rows))
        rows = [list(row) for row in self.rows]
        for token in continuation:
            for i, row in enumerate(rows):
                logits = self._row(row)
                total[i] += logits[token] - np.log(np.exp(logits).sum())
                row.append(token)
        return total


class ToyModel:
    name, sha256, arithmetic = "toy", "0" * 64, "toy"
    stop_tokens = frozenset({10})
    turn: Turn = NO_TURN
    writing_turn: Turn = NO_TURN

    def __init__(self, sharpness: float = 4.0, busy: int = 1) -> None:
        self.sharpness, self.busy = sharpness, busy
        self.opened: list[tuple[int, int, int]] = []
        """(rows, length, room) of every session: what must be public."""
        self.checked: list[tuple[int, int, int]] = []

    def rows_at_once(self, computed: int, held: int) -> int:
        return max(1, self.busy // computed)

    def encode(self, text: str) -> list[int]:
        return list(text.encode("ascii", "replace"))

    def decode(self, tokens) -> str:
        return bytes(t for t in tokens).decode("ascii", "replace")

    def check(self, prefix, rows, length, room) -> None:
        self.checked.append((rows, length, room))

    def alike(self, prefix, rows, length, room) -> bool:
        return True

    def open(self, prefix, rows, length, room) -> ToySession:
        assert all(len(row) <= length for row in rows)
        self.opened.append((len(rows), length, room))
        return ToySession([[*prefix, *row] for row in rows], self.sharpness)
