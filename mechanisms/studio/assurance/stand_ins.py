"""Stand-ins for the models of an audit: under them a canary is as visible as a row can be, and nothing else matters.

A claim holds for every model and every text. So an audit may choose those that betray most, and needs no weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from llguidance import LLTokenizer
from numpy.typing import NDArray

from mechanisms.errors import UsageError
from mechanisms.inference import Session, Tokens
from mechanisms.noise import Floats, Integers

_CANARY = re.compile(r"canary (\d+)")
_BYTES = 256
"""Tokens below are bytes of a prompt, tokens from here on the canaries' own."""
_CERTAIN = 50.0
"""Logits by which a row is sure: more than any clipping leaves."""
_LETTERS = "bcdfghjklmnpqrstvwxz"
_VOWELS = "aeiou"
_SYLLABLES = len(_LETTERS) * len(_VOWELS)


def canary(number: int) -> str:
    """The text of a canary."""
    return f"canary {number}"


def word(number: int) -> str:
    """A canary's own word: a sentence of letters alone, which no rule for drafts refuses."""
    places = (number % _SYLLABLES, number // _SYLLABLES, (7 * number + 3) % _SYLLABLES)
    return "".join(_LETTERS[place % len(_LETTERS)] + _VOWELS[place // len(_LETTERS)] for place in places) + "."


class CanaryModel:
    """See `LanguageModel`: a row with a canary is certain of the canary's own word, all others hold all words alike."""

    name, sha256 = "stand-in for an audit", "0" * 64
    stop_tokens = frozenset({ord("\n")})
    turn: tuple[list[int], list[int]] = ([], [])
    writing_turn: tuple[list[int], list[int]] = ([], [])

    def __init__(self, words: int) -> None:
        """Know the words of so many canaries."""
        self.words = words

    @property
    def vocabulary(self) -> LLTokenizer:
        """See `LanguageModel.vocabulary`: audits write no records."""
        raise UsageError("A stand-in for an audit writes no records.")

    def rows_at_once(self, computed: int, held: int) -> int:
        """See `LanguageModel.rows_at_once`: it holds next to nothing."""
        return 2**20

    def encode(self, text: str) -> list[int]:
        """See `LanguageModel.encode`: a canary is one token, everything else bytes."""
        pieces = _CANARY.split(text)
        tokens = list(pieces[0].encode())
        for number, rest in zip(pieces[1::2], pieces[2::2], strict=True):
            tokens += [_BYTES + int(number), *rest.encode()]
        return tokens

    def decode(self, tokens: Tokens) -> str:
        """See `LanguageModel.decode`."""
        return "".join(f" {word(each - _BYTES)}" if each >= _BYTES else chr(each) for each in tokens)

    def check(self, prefix: Tokens, rows: int, length: int, room: int) -> None:
        """See `LanguageModel.check`: nothing is too long."""

    def alike(self, prefix: Tokens, rows: int, length: int, room: int) -> bool:
        """See `LanguageModel.alike`."""
        return True

    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> Session:
        """See `LanguageModel.open`."""
        return _Sure([next(_own(row), None) for row in rows], self.words)


def _own(row: Tokens) -> Iterator[int]:
    return (token for token in row if token >= _BYTES)


class _Sure:
    """A session that knows of each row the first canary in it, and forgets what is appended."""

    def __init__(self, known: list[int | None], words: int) -> None:
        self._known, self._words = known, words

    def logits(self, columns: Integers | None = None, rows: slice = slice(None)) -> Floats:
        """See `Session.logits`."""
        known = self._known[rows]
        found = np.full((len(known), _BYTES + self._words), -_CERTAIN)
        found[:, _BYTES:] = 0.0
        for row, token in enumerate(known):
            if token is not None:
                found[row, token] = _CERTAIN
        return found if columns is None else found[:, columns]

    def advance(self, tokens: Tokens) -> None:
        """See `Session.advance`."""

    def keep(self, rows: Sequence[int]) -> None:
        """See `Session.keep`."""
        self._known = [self._known[row] for row in rows]

    def score(self, continuation: Tokens) -> Floats:
        """See `Session.score`: all continuations are alike."""
        return np.zeros(len(self._known))


class CanaryEmbedder:
    """See `Embedder`: canary i is near to nothing but the draft in place i of a ballot."""

    name = "stand-in for an audit"

    def __init__(self, places: int) -> None:
        """Have a direction for each of so many drafts."""
        self.dimensions = places

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The canary's own direction; of other texts, which come as a whole ballot, that of their place."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for place, text in enumerate(texts):
            own = _CANARY.fullmatch(text)
            found[place, int(own[1]) if own else place % self.dimensions] = 1.0
        return found
